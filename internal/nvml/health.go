package nvml

import "fmt"

// Health is what the library hints at about a GPU. A field that is null, or empty, is
// unknown and named in Unknown; the library is not asked to vouch for anything, and a
// GPU about which it has no complaint may be broken all the same.
type Health struct {
	// Lost: the GPU has fallen off the bus.
	Lost *bool `json:"lost,omitempty"`
	// ResetRequired: the GPU refuses calls before a reset, or asks for one.
	ResetRequired *bool `json:"resetRequired,omitempty"`
	// RecoveryAction is what the driver asks for, such as "none" or "gpu-reset".
	RecoveryAction string `json:"recoveryAction,omitempty"`
	// ECCUncorrected counts memory errors that could not be corrected, since the driver
	// was loaded; ECCUncorrectedLifetime over the board's life.
	ECCUncorrected         *uint64 `json:"eccUncorrected,omitempty"`
	ECCUncorrectedLifetime *uint64 `json:"eccUncorrectedLifetime,omitempty"`
	// RowsRemapped counts memory rows replaced after errors that could not be
	// corrected. RemapPending: one is to be replaced at the next reset. RemapFailure:
	// one could not be, because the spare rows are used up.
	RowsRemapped *int  `json:"rowsRemapped,omitempty"`
	RemapPending *bool `json:"remapPending,omitempty"`
	RemapFailure *bool `json:"remapFailure,omitempty"`
	// XIDs are the Xid errors that came while this program watched, see
	// [Options.WatchXIDs]. Null if it did not. Those of before are always unknown.
	XIDs []uint64 `json:"xids"`
	// Unknown are the hints that there are none of, and why.
	Unknown []Unknown `json:"unknown,omitempty"`
}

// Unknown is a hint that the library does not give.
type Unknown struct {
	Part string `json:"part"`
	Kind Kind   `json:"kind"`
	// Detail is more about it; often empty.
	Detail string `json:"detail,omitempty"`
}

// readHealth asks for the hints. What a board does not have is unknown about it and no
// error of the look; so is what a driver is too old for.
func (l *look) readHealth(g gpu, h *Health) {
	before := len(l.errs)
	h.ECCUncorrected = askPtr(l, "eccUncorrected", "nvmlDeviceGetTotalEccErrors",
		func() (uint64, Code) { return g.eccUncorrected(false) })
	h.ECCUncorrectedLifetime = askPtr(l, "eccUncorrectedLifetime", "nvmlDeviceGetTotalEccErrors",
		func() (uint64, Code) { return g.eccUncorrected(true) })
	if rows, ok := ask(l, "rowRemap", "nvmlDeviceGetRemappedRows", g.remappedRows); ok {
		h.RowsRemapped, h.RemapPending, h.RemapFailure = &rows.uncorrectable, &rows.pending, &rows.failure
	}
	if action, ok := ask(l, "recoveryAction", "nvmlDeviceGetFieldValues", g.recoveryAction); ok {
		h.RecoveryAction = recoveryAction(action)
	}
	kept := l.errs[:before]
	for _, e := range l.errs[before:] {
		h.Unknown = append(h.Unknown, Unknown{Part: e.Part, Kind: e.Kind, Detail: e.Detail})
		if e.Kind != KindNotSupported && e.Kind != KindFunctionMissing {
			kept = append(kept, e)
		}
	}
	l.errs = kept
	// The library reports an Xid only to who waits for it at that moment, never later.
	h.Unknown = append(h.Unknown, Unknown{
		Part: "xid", Kind: KindNotSupported,
		Detail: "NVML does not tell of Xid errors of the past; the kernel's log does",
	})
}

// unread is a GPU of which not even the handle was to be had.
func (h *Health) unread(why Error) {
	for _, part := range []string{"eccUncorrected", "eccUncorrectedLifetime", "rowRemap", "recoveryAction", "xid"} {
		h.Unknown = append(h.Unknown, Unknown{Part: part, Kind: why.Kind, Detail: why.Detail})
	}
}

// judge concludes from how the calls went. Where the library says that a GPU is lost it
// is; where all calls came back and none says so it is not; a call that hung proves
// nothing.
func (h *Health) judge(errs []Error) {
	yes, no := true, false
	silent := false
	for _, e := range errs {
		switch e.Kind {
		case KindGPULost:
			h.Lost = &yes
		case KindResetRequired:
			h.ResetRequired = &yes
		case KindTimeout:
			silent = true
		}
		silent = silent || e.Part == "device"
	}
	if h.RecoveryAction != "" && h.ResetRequired == nil {
		asks := asksForReset(h.RecoveryAction)
		h.ResetRequired = &asks
	}
	unknown := Unknown{Kind: KindFailed, Detail: "the GPU does not answer"}
	if h.Lost == nil {
		if silent {
			unknown.Part = "lost"
			h.Unknown = append(h.Unknown, unknown)
		} else {
			h.Lost = &no
		}
	}
	if h.ResetRequired == nil {
		unknown.Part = "resetRequired"
		if !silent {
			unknown.Kind, unknown.Detail = KindNotSupported, "the driver does not tell whether it asks for one"
		}
		h.Unknown = append(h.Unknown, unknown)
	}
}

// asksForReset: a reboot is a reset too; a drain of peers alone is none.
func asksForReset(action string) bool {
	switch action {
	case "gpu-reset", "drain-and-reset", "bus-reset", "node-reboot", "system-reboot":
		return true
	}
	return false
}

// recoveryAction names the library's number (nvml.h, nvmlDeviceGpuRecoveryAction_t).
func recoveryAction(n int) string {
	names := []string{
		"none", "gpu-reset", "node-reboot", "drain-p2p", "drain-and-reset",
		"recover-imex-domain", "bus-reset", "system-reboot",
	}
	if n < 0 || n >= len(names) {
		return fmt.Sprintf("action-%d", n)
	}
	return names[n]
}
