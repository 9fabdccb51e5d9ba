package checks

import "slices"

// BeforeMapping are the findings that speak against mapping the extended resource to
// a DeviceClass now. The mapping is live for every pool of the cluster at once, so
// a run looks once more right before it creates the class.
func BeforeMapping(in Input) []Finding {
	decisive := []string{"DRM001", "DRM005", "DRM006", "DRM011"}
	return slices.DeleteFunc(Run(in), func(f Finding) bool { return !slices.Contains(decisive, f.Code) })
}
