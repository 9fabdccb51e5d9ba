package nodeprobe

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// readSockets lists the sockets of plugins and drivers. The kubelet makes all three
// folders when it starts.
func readSockets(root string) (*Sockets, error) {
	devicePlugins, err := socketsIn(filepath.Join(root, devicePluginsDir))
	if err != nil {
		return nil, errors.New(fileReason(err))
	}
	registrations, err := socketsIn(filepath.Join(root, registryDir))
	if err != nil {
		return nil, errors.New(fileReason(err))
	}
	s := &Sockets{DevicePlugins: []string{}, Registrations: registrations, Drivers: []string{}, Others: []string{}}
	for _, name := range devicePlugins {
		if name != "kubelet.sock" {
			s.DevicePlugins = append(s.DevicePlugins, name)
		}
	}
	folders, err := readFolder(filepath.Join(root, pluginsDir))
	if err != nil {
		return nil, errors.New(fileReason(err))
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		names, err := socketsIn(filepath.Join(root, pluginsDir, folder.Name()))
		if err != nil {
			return nil, errors.New(fileReason(err))
		}
		switch {
		case slices.ContainsFunc(names, isDRASocket):
			s.Drivers = append(s.Drivers, folder.Name())
		case len(names) > 0:
			s.Others = append(s.Others, folder.Name())
		}
	}
	slices.Sort(s.Drivers)
	slices.Sort(s.Others)
	return s, nil
}

// isDRASocket knows the names that the library of all drivers gives: dra.sock, and
// dra-<pod UID>.sock where a driver is replaced by its next version without a gap
// (k8s.io/dynamic-resource-allocation/kubeletplugin/draplugin.go, v0.37.2).
func isDRASocket(name string) bool {
	return name == "dra.sock" || strings.HasPrefix(name, "dra-")
}

func socketsIn(dir string) ([]string, error) {
	entries, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, e := range entries {
		if e.Type() == fs.ModeSocket {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}

// noDRADriver says that no DRA driver can have registered: each socket of the registry
// is that of a plugin of another kind, such as a storage driver, which has its own
// folder under the same name.
func (s *Sockets) noDRADriver() bool {
	if len(s.Drivers) > 0 {
		return false
	}
	for _, r := range s.Registrations {
		if !slices.ContainsFunc(s.Others, func(name string) bool { return strings.HasPrefix(r, name) }) {
			return false
		}
	}
	return true
}
