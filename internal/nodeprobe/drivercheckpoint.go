package nodeprobe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/gpuid"
	"github.com/dramigrate/dramigrate/internal/nodeprobe/checkpoint"
)

// nvidiaDriver is the name of the DRA driver whose checkpoint is known.
const nvidiaDriver = "gpu.nvidia.com"

const driverCheckpointFile = "checkpoint.json"

// readDriverCheckpoints reads the checkpoint of NVIDIA's driver. Another driver's, and
// that of a stand-in with the driver's name, is its own matter: the claims are in the
// kubelet's state as well.
func readDriverCheckpoints(root string) ([]DriverCheckpoint, error) {
	path := filepath.Join(root, pluginsDir, nvidiaDriver, driverCheckpointFile)
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, folderErr := readFolder(filepath.Join(root, pluginsDir)); folderErr != nil {
			return nil, errors.New(fileReason(folderErr))
		}
		return []DriverCheckpoint{}, nil
	}
	if err != nil {
		return nil, errors.New(fileReason(err))
	}
	claims, known, err := parseDriverCheckpoint(data)
	if err != nil {
		return nil, errors.New(parseReason(path, err))
	}
	if !known {
		return []DriverCheckpoint{{Driver: nvidiaDriver, Path: path, Reason: "of a format that is not known"}}, nil
	}
	return []DriverCheckpoint{{Driver: nvidiaDriver, Path: path, Claims: claims}}, nil
}

// The driver's checkpoint (dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin: checkpoint.go,
// checkpointv.go, prepared.go, mig.go of 2026-08). The first version has its checksum
// outside of it, the second one inside.
type driverCheckpoint struct {
	Checksum *uint64         `json:"checksum"`
	V1       json.RawMessage `json:"v1"`
	V2       json.RawMessage `json:"v2"`
}

type driverClaims struct {
	Checksum       uint64 `json:"checksum"`
	PreparedClaims map[string]struct {
		State           string                         `json:"checkpointState"`
		Status          resourcev1.ResourceClaimStatus `json:"status"`
		PreparedDevices []struct {
			Devices []driverDevice `json:"devices"`
		} `json:"preparedDevices"`
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"preparedClaims"`
}

type driverDevice struct {
	GPU *struct {
		Info   *struct{ UUID string } `json:"info"`
		Device *driverDeviceName      `json:"device"`
	} `json:"gpu"`
	MIG *struct {
		Concrete *struct{ MigUUID, ParentUUID, ParentPCIBusID string } `json:"concrete"`
		Device   *driverDeviceName                                     `json:"device"`
	} `json:"mig"`
	VFIO *struct {
		Info   *struct{ UUID, PCIBusID string } `json:"info"`
		Device *driverDeviceName                `json:"device"`
	} `json:"vfio"`
}

type driverDeviceName struct{ PoolName, DeviceName string }

// parseDriverCheckpoint is false if the file is in order and of another format.
func parseDriverCheckpoint(file []byte) (out []PreparedClaim, known bool, err error) {
	var c driverCheckpoint
	if err := json.Unmarshal(file, &c); err != nil {
		return nil, false, err
	}
	if c.Checksum == nil || c.V1 == nil && c.V2 == nil {
		return nil, false, nil
	}
	if c.V1 != nil {
		if err := verify(*c.Checksum, append(append([]byte(`{"checksum":0,"v1":`), c.V1...), '}')); err != nil {
			return nil, true, err
		}
	}
	newest := c.V1
	if c.V2 != nil {
		newest = c.V2
	}
	var claims driverClaims
	if err := json.Unmarshal(newest, &claims); err != nil {
		return nil, true, err
	}
	if c.V2 != nil {
		if err := verify(claims.Checksum, withoutChecksum.ReplaceAll(c.V2, []byte(`{"checksum":0`))); err != nil {
			return nil, true, err
		}
	}
	out = []PreparedClaim{}
	for _, uid := range sortedKeys(claims.PreparedClaims) {
		c := claims.PreparedClaims[uid]
		p := PreparedClaim{UID: uid, State: c.State, Devices: []PreparedDevice{}}
		if c.Name != "" {
			p.Claim = c.Namespace + "/" + c.Name
		}
		admin := adminDevices(c.Status.Allocation)
		for _, group := range c.PreparedDevices {
			for _, d := range group.Devices {
				device := d.prepared()
				device.Admin = admin[device.Name]
				p.Devices = append(p.Devices, device)
			}
		}
		out = append(out, p)
	}
	return out, true, nil
}

// withoutChecksum is the head of the second version, whose checksum was taken with a 0
// in its place. The bytes are compared and not the values: the driver's are those that
// encoding/json makes of its types, some of whose fields are not known here.
var withoutChecksum = regexp.MustCompile(`^\{"checksum":[0-9]+`)

func verify(want uint64, text []byte) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return err
	}
	if sum := checkpoint.Checksum(compact.Bytes()); sum != want {
		return fmt.Errorf("its checksum is %d, and that of its data %d", want, sum)
	}
	return nil
}

// adminDevices are those that a claim only looks at.
func adminDevices(a *resourcev1.AllocationResult) map[string]bool {
	out := map[string]bool{}
	if a == nil {
		return out
	}
	for _, r := range a.Devices.Results {
		if r.Driver == nvidiaDriver && r.AdminAccess != nil && *r.AdminAccess {
			out[r.Device] = true
		}
	}
	return out
}

func (d driverDevice) prepared() PreparedDevice {
	var p PreparedDevice
	name := func(n *driverDeviceName) {
		if n != nil {
			p.Pool, p.Name = n.PoolName, n.DeviceName
		}
	}
	switch {
	case d.GPU != nil:
		p.Type = "gpu"
		name(d.GPU.Device)
		if d.GPU.Info != nil {
			p.UUID = d.GPU.Info.UUID
		}
	case d.MIG != nil:
		p.Type = "mig"
		name(d.MIG.Device)
		if c := d.MIG.Concrete; c != nil {
			p.UUID, p.ParentUUID = c.MigUUID, c.ParentUUID
			p.PCIBusID, _ = gpuid.PCI(strings.ToLower(c.ParentPCIBusID))
		}
	case d.VFIO != nil:
		p.Type = "vfio"
		name(d.VFIO.Device)
		if i := d.VFIO.Info; i != nil {
			p.UUID = i.UUID
			p.PCIBusID, _ = gpuid.PCI(i.PCIBusID)
		}
	}
	return p
}
