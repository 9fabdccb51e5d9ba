package checks

// accounting: who counts the devices, and what they count from then on.
func accounting() []Check {
	return []Check{
		drm130(),
		drm131(),
		drm132(),
		drm133(),
		drm134(),
		drm135(),
		drm136(),
		drm137(),
		drm138(),
	}
}
