package checks

// draining: whether nodes can be emptied.
func draining() []Check {
	return []Check{
		drm018(),
		drm019(),
		drm021(),
		drm023(),
		drm096(),
		drm120(),
		drm121(),
		drm122(),
	}
}
