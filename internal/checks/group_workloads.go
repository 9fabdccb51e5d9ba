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
		drm100(),
		drm101(),
		drm102(),
		drm103(),
		drm104(),
		drm105(),
		drm106(),
		drm107(),
		drm108(),
		drm109(),
		drm110(),
		drm111(),
		drm112(),
		drm114(),
	}
}
