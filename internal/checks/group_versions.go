package checks

// versions: whether Kubernetes does what the move rests on.
func versions() []Check {
	return []Check{
		drm001(),
		drm002(),
		drm031(),
		drm032(),
		drm033(),
		drm034(),
		drm035(),
		drm036(),
		drm037(),
		drm097(),
	}
}
