package dradriver

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// FaultFile is where a node keeps the fault that its driver has to show.
const FaultFile = gpu.NodeDir + "/driver-fault"

// A Fault is one way in which the driver is wired wrong on purpose, so that a
// verification which cannot fail is found out. The empty value is no fault.
type Fault string

const (
	// FaultNone is a driver as it should be.
	FaultNone Fault = ""
	// FaultWrongDevice prepares a claim with the GPU next to the allocated one:
	// what the API says and what the container sees differ. Read at each prepare.
	FaultWrongDevice Fault = "wrong-device"
	// FaultMissingDevice publishes all GPUs but the one with the highest index.
	// Read at the start.
	FaultMissingDevice Fault = "missing-device"
	// FaultCrashLoop ends the driver with an error before it registers. Read at
	// the start.
	FaultCrashLoop Fault = "crash-loop"
	// FaultPrepareError fails to prepare any claim. Read at each prepare.
	FaultPrepareError Fault = "prepare-error"
)

// known are all values that a fault file may hold.
func known() []Fault {
	return []Fault{FaultNone, FaultWrongDevice, FaultMissingDevice, FaultCrashLoop, FaultPrepareError}
}

// faultDocument is the long form of a fault file.
type faultDocument struct {
	Fault Fault `json:"fault"`
}

// ReadFault reads a fault file: the fault's word, or {"fault": "<word>"}. An
// absent or empty file is no fault; an unknown word is an error, because a test
// that relies on a fault must not run without it.
func ReadFault(path string) (Fault, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return FaultNone, nil
	}
	if err != nil {
		return FaultNone, fmt.Errorf("driver fault: %w", err)
	}
	text := strings.TrimSpace(string(data))
	doc := faultDocument{Fault: Fault(text)}
	if strings.HasPrefix(text, "{") {
		doc = faultDocument{}
		if err := json.Unmarshal(data, &doc); err != nil {
			return FaultNone, fmt.Errorf("driver fault: %s: %w", path, err)
		}
	}
	if !slices.Contains(known(), doc.Fault) {
		return FaultNone, fmt.Errorf("driver fault: %s: unknown fault %q", path, doc.Fault)
	}
	return doc.Fault, nil
}

// WriteFault makes the fault file hold f; no fault removes the file.
func WriteFault(path string, f Fault) error {
	if !slices.Contains(known(), f) {
		return fmt.Errorf("driver fault: unknown fault %q", f)
	}
	var err error
	if f == FaultNone {
		if err = os.Remove(path); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	} else {
		err = os.WriteFile(path, []byte(f+"\n"), 0o644)
	}
	if err != nil {
		return fmt.Errorf("driver fault: %w", err)
	}
	return nil
}
