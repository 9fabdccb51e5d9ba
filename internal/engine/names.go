package engine

// Names on everything that the tool writes.
const (
	FieldManager   = "dramigrate"
	ManagedByLabel = "app.kubernetes.io/managed-by"
)
