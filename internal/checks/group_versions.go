package checks

// versions: whether Kubernetes does what the move rests on.
func versions() []Check {
	return []Check{
		drm001(),
		drm002(),
	}
}
