package nodeprobe

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/dramigrate/dramigrate/internal/gpuid"
	"github.com/dramigrate/dramigrate/internal/nodeprobe/checkpoint"
)

// DefaultKubeletRoot is the kubelet's --root-dir if none is set.
const DefaultKubeletRoot = "/var/lib/kubelet"

// Places below the kubelet's root (pkg/kubelet/config/defaults.go, cm/dra/manager.go and
// apis/deviceplugin/v1beta1/constants.go, v1.37.2).
const (
	devicePluginsDir  = "device-plugins"
	deviceManagerFile = "kubelet_internal_checkpoint"
	claimStateFile    = "dra_manager_state"
	podsDir           = "pods"
	registryDir       = "plugins_registry"
	pluginsDir        = "plugins"
)

// readDeviceManager reads the device manager's checkpoint. The kubelet makes the file
// when the first plugin registers, so that a folder without it is an answer too; whether
// that is a likely one is for the caller to say.
func readDeviceManager(root string) (*DeviceManager, error) {
	path := filepath.Join(root, devicePluginsDir, deviceManagerFile)
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, folderErr := readFolder(filepath.Dir(path)); folderErr != nil {
			return nil, errors.New(fileReason(folderErr))
		}
		return &DeviceManager{Absent: true, Entries: []DeviceEntry{}, Registered: map[string][]string{}}, nil
	}
	if err != nil {
		return nil, errors.New(fileReason(err))
	}
	entries, registered, err := checkpoint.Parse(data)
	if err != nil {
		return nil, errors.New(parseReason(path, err))
	}
	d := &DeviceManager{Entries: []DeviceEntry{}, Registered: map[string][]string{}}
	for _, e := range entries {
		var ids []string
		for _, perNode := range e.DeviceIDs {
			ids = append(ids, perNode...)
		}
		d.Entries = append(d.Entries, DeviceEntry{
			PodUID: e.PodUID, Container: e.ContainerName, Resource: e.ResourceName, IDs: devicesOf(ids),
		})
	}
	for resource, ids := range registered {
		d.Registered[resource] = devicesOf(ids)
	}
	return d, nil
}

// devicesOf are the devices behind a plugin's ids, sorted, each once.
func devicesOf(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = gpuid.Device(id)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// claimState is the kubelet's file of prepared claims (pkg/kubelet/cm/dra/state, the
// same in v1.35.4, v1.36.3 and v1.37.2 but for fields that are of no use here).
type claimState struct {
	Data     string
	Checksum uint32
}

const (
	claimStateKind    = "DRACheckpoint"
	claimStateVersion = "checkpoint.dra.kubelet.k8s.io/v1"
)

type claimStateData struct {
	Kind               string `json:"kind"`
	APIVersion         string `json:"apiVersion"`
	ClaimInfoStateList []struct {
		ClaimUID, ClaimName, Namespace string
		PodUIDs                        map[string]struct{}
		DriverState                    map[string]struct {
			Devices []struct{ PoolName, DeviceName string }
		}
	}
}

// readClaimState reads the claims that the kubelet has prepared. A kubelet with DRA
// makes the file when it starts.
func readClaimState(root string) ([]ClaimRecord, error) {
	path := filepath.Join(root, claimStateFile)
	file, err := readFile(path)
	if err != nil {
		return nil, errors.New(fileReason(err))
	}
	out, err := parseClaimState(file)
	if err != nil {
		return nil, errors.New(parseReason(path, err))
	}
	return out, nil
}

func parseClaimState(file []byte) ([]ClaimRecord, error) {
	var state claimState
	if err := json.Unmarshal(file, &state); err != nil {
		return nil, err
	}
	if sum := crc32.ChecksumIEEE([]byte(state.Data)); sum != state.Checksum {
		return nil, fmt.Errorf("its checksum is %d, and that of its data %d", state.Checksum, sum)
	}
	var data claimStateData
	if err := json.Unmarshal([]byte(state.Data), &data); err != nil {
		return nil, err
	}
	if data.Kind != claimStateKind || data.APIVersion != claimStateVersion {
		return nil, fmt.Errorf("it is a %q of %q, and %s of %s is known", data.Kind, data.APIVersion, claimStateKind, claimStateVersion)
	}
	out := []ClaimRecord{}
	for _, c := range data.ClaimInfoStateList {
		r := ClaimRecord{Claim: c.Namespace + "/" + c.ClaimName, UID: c.ClaimUID, PodUIDs: sortedKeys(c.PodUIDs), Devices: []Device{}}
		for _, driver := range sortedKeys(c.DriverState) {
			for _, d := range c.DriverState[driver].Devices {
				r.Devices = append(r.Devices, Device{Driver: driver, Pool: d.PoolName, Name: d.DeviceName})
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// readPodFolders lists the pods that the kubelet has a folder of.
func readPodFolders(root string) ([]string, error) {
	entries, err := readFolder(filepath.Join(root, podsDir))
	if err != nil {
		return nil, errors.New(fileReason(err))
	}
	out := []string{}
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}
