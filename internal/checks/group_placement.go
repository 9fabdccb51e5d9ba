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
		drm062(),
		drm063(),
		drm064(),
		drm065(),
		drm066(),
		drm067(),
		drm068(),
		drm069(),
		drm070(),
		drm071(),
		drm072(),
		drm073(),
		drm074(),
		drm075(),
		drm076(),
		drm077(),
		drm078(),
		drm079(),
	}
}
