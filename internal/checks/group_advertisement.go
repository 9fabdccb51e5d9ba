package checks

// advertisement: who offers the devices now.
func advertisement() []Check {
	return []Check{
		drm004(),
		drm010(),
		drm026(),
		drm027(),
	}
}
