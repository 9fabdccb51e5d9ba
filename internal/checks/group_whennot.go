package checks

// whenNot: whether the pool has anything to gain.
func whenNot() []Check {
	return []Check{
		drm150(),
	}
}
