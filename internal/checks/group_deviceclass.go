package checks

// deviceClass: the mapping from the extended resource to devices.
func deviceClass() []Check {
	return []Check{
		drm005(),
		drm014(),
		drm028(),
		drm045(),
		drm046(),
		drm047(),
		drm048(),
		drm049(),
	}
}
