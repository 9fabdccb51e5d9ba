package checks

// advertisement: who offers the devices now.
func advertisement() []Check {
	return []Check{
		drm004(),
		drm010(),
		drm026(),
		drm027(),
		drm038(),
		drm039(),
		drm040(),
		drm041(),
		drm042(),
		drm043(),
		drm044(),
		drm057(),
		drm058(),
		drm059(),
		drm093(),
		drm094(),
		drm095(),
	}
}
