package checks

// actors: what else acts on the nodes while they are moved, and afterwards.
func actors() []Check {
	return []Check{
		drm080(),
		drm081(),
		drm082(),
		drm083(),
		drm084(),
		drm085(),
		drm086(),
		drm087(),
		drm088(),
		drm089(),
		drm090(),
		drm091(),
		drm092(),
	}
}
