package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm001() Check {
	return Check{
		Code:        "DRM001",
		Title:       "The control plane is too old, or emulates a version that is, or is newer than what is known",
		Why:         "Below Kubernetes 1.36 the feature DRAExtendedResource is off by default: the API server drops DeviceClass.spec.extendedResourceName without a word, so no pod that asks for the extended resource would ever be served by DRA. A newer server that emulates an older version can have it off as well. What a release after " + newest + " does differently no check knows: its rules are taken to be those of " + newest + ".",
		Fix:         "Upgrade the control plane to 1.36 or later, and take --emulated-version away. With a newer release than " + newest + " take a version of the tool that knows it, or try the move on a pool that nobody needs.",
		Sources:     []string{"KEP-5004", "pkg/registry/resource/deviceclass/strategy.go, v1.37.2", "pkg/features/kube_features.go, v1.36.3"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate, MigrateInto},
		Mapping:     true,
		Needs:       []string{cluster.PartVersion},
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
			if newer, err := since(acts(id), newestMinor+1); err == nil && newer {
				return []Finding{{
					Code:     "DRM001",
					Severity: Warning,
					Object:   "server",
					Message:  "the API server acts as Kubernetes " + acts(id) + "; the checks know the rules of releases up to " + newest + ", and take these for its own",
					Remedy:   "see whether a newer version of the tool knows that release; else try the move on a pool that nobody needs first",
				}}
			}
			return nil
		},
	}
}
