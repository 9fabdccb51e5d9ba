package checks

// otherPool: whether the workloads of a pool can go into another, and come back.
func otherPool() []Check {
	return []Check{
		drm050(),
		drm051(),
		drm052(),
		drm053(),
		drm054(),
		drm055(),
		drm056(),
	}
}
