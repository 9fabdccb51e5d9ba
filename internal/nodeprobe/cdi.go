package nodeprobe

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// DefaultCDIDirs are the folders of the Container Device Interface, for specifications
// that stay and for those that are made anew after a start.
func DefaultCDIDirs() []string { return []string{"/etc/cdi", "/var/run/cdi"} }

// readCDI lists kinds and devices of the folders' specifications. A node need not have
// the folders.
func readCDI(dirs []string) ([]CDISpec, error) {
	out := []CDISpec{}
	var gaps []error
	for _, dir := range dirs {
		entries, err := readFolder(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errors.New(fileReason(err))
		}
		for _, e := range entries {
			if ext := filepath.Ext(e.Name()); e.IsDir() || ext != ".json" && ext != ".yaml" {
				continue
			}
			path := filepath.Join(dir, e.Name())
			spec, err := readSpec(path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				// It went between the two looks, with its claim.
			case err != nil:
				gaps = append(gaps, err)
			default:
				out = append(out, spec)
			}
		}
	}
	slices.SortFunc(out, func(a, b CDISpec) int { return cmp.Compare(a.Path, b.Path) })
	return out, errors.Join(gaps...)
}

func readSpec(path string) (CDISpec, error) {
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return CDISpec{}, err
	}
	if err != nil {
		return CDISpec{}, errors.New(fileReason(err))
	}
	var spec struct {
		Kind    string `json:"kind"`
		Devices []struct {
			Name string `json:"name"`
		} `json:"devices"`
	}
	if err := yaml.Unmarshal(data, &spec); err != nil {
		return CDISpec{}, errors.New(parseReason(path, err))
	}
	if spec.Kind == "" {
		return CDISpec{}, errors.New(parseReason(path, fmt.Errorf("it names no kind")))
	}
	out := CDISpec{Path: path, CDIKind: spec.Kind, Devices: []string{}}
	for _, d := range spec.Devices {
		out.Devices = append(out.Devices, d.Name)
	}
	slices.Sort(out.Devices)
	return out, nil
}
