package checks

// workloads: what pods that ask for devices will meet.
func workloads() []Check {
	return []Check{
		drm006(),
		drm007(),
		drm008(),
		drm009(),
		drm016(),
		drm020(),
	}
}
