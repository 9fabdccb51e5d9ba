package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// drm001: below the floor the API server drops DeviceClass.spec.extendedResourceName
// without a word (pkg/registry/resource/deviceclass/strategy.go), and an emulated
// older version can switch the feature off even on a newer server.
func drm001() Check {
	return Check{
		Code:       "DRM001",
		Title:      "The control plane is too old, or emulates a version that is",
		Operations: []string{Prepare, Migrate},
		Mapping:    true,
		Needs:      []string{cluster.PartVersion},
		Run: func(in Input) []Finding {
			id := in.Snapshot.Identity
			versions := []struct{ version, is string }{{id.ServerVersion, "the API server is " + id.ServerVersion}}
			if id.EmulationVersion != "" {
				versions = append(versions, struct{ version, is string }{id.EmulationVersion, "the API server emulates Kubernetes " + id.EmulationVersion})
			}
			for _, v := range versions {
				switch below, err := belowFloor(v.version); {
				case err != nil:
					return []Finding{{
						Code:     "DRM001",
						Severity: Unknown,
						Object:   "server",
						Message:  fmt.Sprintf("the API server's version %q cannot be read: %v", v.version, err),
						Remedy:   "see `kubectl version`",
					}}
				case below:
					return []Finding{{
						Code:     "DRM001",
						Severity: Blocker,
						Object:   "server",
						Message:  v.is + ", below " + floor + ": extended resources by DRA are off by default there",
						Remedy:   "upgrade the control plane to Kubernetes " + floor + " or later",
					}}
				}
			}
			return nil
		},
	}
}
