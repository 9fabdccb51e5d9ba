package checks

import (
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// floorMinor is the oldest minor version of Kubernetes 1 on which the tool migrates.
// In 1.36 the feature DRAExtendedResource is on by default; a kubelet without it
// starts a container that was given a GPU through DRA without the GPU (KEP-5004;
// pkg/features/kube_features.go, v1.36.3).
const floorMinor = 36

const floor = "1.36"

// newestMinor is the newest minor version of Kubernetes 1 whose rules the checks know:
// the last column of TestSeverityByVersion.
const newestMinor = 38

const newest = "1.38"

// belowFloor compares a version such as "v1.36.2-gke.100" with the floor.
func belowFloor(v string) (bool, error) {
	parsed, err := version.ParseGeneric(v)
	if err != nil {
		return false, err
	}
	return parsed.LessThan(version.MajorMinor(1, floorMinor)), nil
}

// since says whether a version is of a minor release of Kubernetes 1 or of a later one.
// A pre-release counts as the release that it leads to: it has that release's code.
func since(v string, minor uint) (bool, error) {
	parsed, err := version.ParseGeneric(v)
	if err != nil {
		return false, err
	}
	return parsed.AtLeast(version.MajorMinor(1, minor)), nil
}

// acts is the version as which the API server acts: feature gates have the defaults of
// the version that it emulates.
func acts(id cluster.Identity) string {
	if id.EmulationVersion != "" {
		return id.EmulationVersion
	}
	return id.ServerVersion
}
