package dradriver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// checkpointFile lies in the driver's own folder below the kubelet's plugins.
const checkpointFile = "checkpoint.json"

// States of a claim, named as in the vendor's checkpoint.
const (
	prepareStarted   = "PrepareStarted"
	prepareCompleted = "PrepareCompleted"
)

// preparedDevice is one device of a prepared claim.
type preparedDevice struct {
	Request string `json:"request"`
	Device  string `json:"device"`
	// CDIDevice is the qualified name under which the runtime finds the device.
	CDIDevice string `json:"cdiDevice"`
	// Admin tells that the claim only looks at the device and does not hold it.
	Admin bool `json:"admin,omitempty"`
}

// preparedClaim is what the driver has to remember of a claim: to unprepare it
// the kubelet gives no more than its name, and maybe to another process.
type preparedClaim struct {
	Namespace string           `json:"namespace"`
	Name      string           `json:"name"`
	State     string           `json:"state"`
	Devices   []preparedDevice `json:"devices"`
}

// A checkpoint is the claims that are prepared on the node, kept in a file so
// that a driver which starts again knows them.
type checkpoint struct {
	path   string
	Claims map[types.UID]preparedClaim `json:"claims"`
}

// loadCheckpoint reads the checkpoint in dir. An absent one is empty; one that
// cannot be understood is an error: which devices are in use is then unknown.
func loadCheckpoint(dir string) (*checkpoint, error) {
	c := &checkpoint{path: filepath.Join(dir, checkpointFile)}
	data, err := os.ReadFile(c.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("checkpoint: %w", err)
	default:
		if err := json.Unmarshal(data, c); err != nil {
			return nil, fmt.Errorf("checkpoint %s: %w", c.path, err)
		}
	}
	if c.Claims == nil {
		c.Claims = map[types.UID]preparedClaim{}
	}
	return c, nil
}

// put records a claim on disk and only then in memory.
func (c *checkpoint) put(uid types.UID, claim preparedClaim) error {
	next := maps.Clone(c.Claims)
	next[uid] = claim
	return c.replace(next)
}

// remove forgets a claim on disk and only then in memory.
func (c *checkpoint) remove(uid types.UID) error {
	next := maps.Clone(c.Claims)
	delete(next, uid)
	return c.replace(next)
}

func (c *checkpoint) replace(claims map[types.UID]preparedClaim) error {
	data, err := json.Marshal(checkpoint{Claims: claims})
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	tmp := c.path + ".tmp"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := os.Rename(tmp, c.path); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	c.Claims = claims
	return nil
}

// holder finds the claim, other than the one asking, that holds the device.
func (c *checkpoint) holder(device string, asking types.UID) (preparedClaim, bool) {
	for _, uid := range slices.Sorted(maps.Keys(c.Claims)) {
		if uid == asking {
			continue
		}
		for _, d := range c.Claims[uid].Devices {
			if d.Device == device && !d.Admin {
				return c.Claims[uid], true
			}
		}
	}
	return preparedClaim{}, false
}
