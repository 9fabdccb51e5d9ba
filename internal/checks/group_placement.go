package checks

// placement: where plugin and driver run, and who decides about that.
func placement() []Check {
	return []Check{
		drm003(),
		drm013(),
		drm015(),
		drm017(),
		drm022(),
		drm025(),
		drm060(),
		drm061(),
	}
}
