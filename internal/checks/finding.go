// Package checks is the catalogue of what can go wrong: one small pure function a
// check, over a Snapshot and what is intended with it.
package checks

// Severity is how much a finding matters.
type Severity string

// The severities. A blocker stops apply; unknown stops it as well, because what
// could not be seen is never taken for fine.
const (
	Blocker Severity = "blocker"
	Warning Severity = "warning"
	Info    Severity = "info"
	Unknown Severity = "unknown"
)

// Finding is what a check reports about one object.
type Finding struct {
	// Code is stable and never reused ("DRM004").
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Object names the object ("node/gpu-7", "daemonset/kube-system/x").
	Object string `json:"object"`
	// Message says what was found, with the evidence a person can verify.
	Message string `json:"message"`
	// Remedy names the next thing to do, as a command where there is one.
	Remedy string `json:"remedy,omitempty"`
	// Skipped is the reason that a person gave for not being stopped by it.
	Skipped string `json:"skipped,omitempty"`
}

// Stops says whether apply has to refuse because of the finding.
func (f Finding) Stops() bool {
	return f.Skipped == "" && (f.Severity == Blocker || f.Severity == Unknown)
}
