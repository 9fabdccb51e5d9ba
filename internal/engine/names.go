package engine

import "github.com/dramigrate/dramigrate/internal/gate"

// Names on everything that the engine writes.
const (
	FieldManager   = gate.FieldManager
	ManagedByLabel = gate.ManagedByLabel
)
