package checks

// permissions: whether the tool may see and do what it has to.
func permissions() []Check {
	return []Check{
		drm011(),
		drm030(),
	}
}
