package checks

// records: what earlier runs have left.
func records() []Check {
	return []Check{
		drm012(),
		drm024(),
		drm029(),
	}
}
