package nvml

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is the class of a failure. Every return code of the library has one.
type Kind string

// The kinds. A caller decides by them; Error.Code is for people to look up.
const (
	// KindNotBuiltIn: this program was built without the binding to the library.
	KindNotBuiltIn Kind = "not-built-in"
	// KindLibraryNotFound: there is no libnvidia-ml.so.1 where it was looked for.
	KindLibraryNotFound Kind = "library-not-found"
	// KindLibraryUnusable: the file is there and the dynamic linker refuses it.
	KindLibraryUnusable Kind = "library-unusable"
	// KindFunctionMissing: the library is too old, or too new, to have the function.
	KindFunctionMissing Kind = "function-missing"
	// KindVersionMismatch: library and kernel driver are of different versions, as
	// after an upgrade without a reboot.
	KindVersionMismatch Kind = "version-mismatch"
	// KindNoPermission: the driver, or the device cgroup, refuses this process.
	KindNoPermission Kind = "no-permission"
	// KindDriverNotLoaded: the kernel has no NVIDIA driver.
	KindDriverNotLoaded Kind = "driver-not-loaded"
	// KindGPULost: the GPU has fallen off the bus.
	KindGPULost Kind = "gpu-lost"
	// KindResetRequired: the GPU answers nothing before it is reset.
	KindResetRequired Kind = "reset-required"
	// KindTimeout: the call did not come back in time, or was not made because an
	// earlier one on the same GPU had not.
	KindTimeout Kind = "timeout"
	// KindNotSupported: the board has no such thing.
	KindNotSupported Kind = "not-supported"
	// KindNotFound: the library knows no such object (any more).
	KindNotFound Kind = "not-found"
	// KindPartial: some was read and some was not; see [Host.Err].
	KindPartial Kind = "partial"
	// KindFailed: any other return code.
	KindFailed Kind = "failed"
)

// Code is a return code of the library (nvmlReturn_t in nvml.h).
type Code int

// The codes that this package tells apart.
const (
	codeSuccess          Code = 0
	codeNotSupported     Code = 3
	codeNoPermission     Code = 4
	codeNotFound         Code = 6
	codeDriverNotLoaded  Code = 9
	codeTimeout          Code = 10
	codeLibraryNotFound  Code = 12
	codeFunctionNotFound Code = 13
	codeGPULost          Code = 15
	codeResetRequired    Code = 16
	codeOperatingSystem  Code = 17
	codeVersionMismatch  Code = 18
	codeGPUNotFound      Code = 28
)

// Kind classifies a code other than success.
func (c Code) Kind() Kind {
	switch c {
	case codeNotSupported:
		return KindNotSupported
	// The operating system blocks the device by its cgroup: to a container that is
	// the same as a missing permission.
	case codeNoPermission, codeOperatingSystem:
		return KindNoPermission
	case codeNotFound, codeGPUNotFound:
		return KindNotFound
	case codeDriverNotLoaded:
		return KindDriverNotLoaded
	case codeTimeout:
		return KindTimeout
	case codeLibraryNotFound:
		return KindLibraryNotFound
	case codeFunctionNotFound:
		return KindFunctionMissing
	case codeGPULost:
		return KindGPULost
	case codeResetRequired:
		return KindResetRequired
	case codeVersionMismatch:
		return KindVersionMismatch
	}
	return KindFailed
}

// Error is why something could not be read.
type Error struct {
	Kind Kind `json:"kind"`
	// Part is what is missing for it, named as the field is, such as "uuid".
	Part string `json:"part,omitempty"`
	// Call is the library's function.
	Call string `json:"call,omitempty"`
	// Code is the function's return code, if it returned.
	Code Code `json:"code,omitempty"`
	// Detail is more about it, such as the dynamic linker's words.
	Detail string `json:"detail,omitempty"`
}

// Error says what failed and what to do about it.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("NVML")
	if e.Call != "" {
		b.WriteString(": " + e.Call)
	}
	fmt.Fprintf(&b, ": %s", e.Kind)
	if e.Code != codeSuccess {
		fmt.Fprintf(&b, " (code %d)", e.Code)
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if remedy := e.Kind.remedy(); remedy != "" {
		b.WriteString("; " + remedy)
	}
	return b.String()
}

// KindOf is the kind of an error from this package; empty for any other and for nil.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// remedy is the next thing to do; empty where there is nothing general to say.
func (k Kind) remedy() string {
	switch k {
	case KindNotBuiltIn:
		return "use the helper image, whose build has it"
	case KindLibraryNotFound:
		return "give the pod the driver: RuntimeClass nvidia, CDI nvidia.com/gpu=all, or the driver's root folder"
	case KindLibraryUnusable:
		return "use an image with a C library as new as the driver's root has"
	case KindFunctionMissing:
		return "the driver does not have it; a newer one may"
	case KindVersionMismatch:
		return "reboot the node, or reload its driver"
	case KindNoPermission:
		return "run privileged, or with the device nodes and, on a GPU in MIG mode, NVIDIA_MIG_MONITOR_DEVICES=all"
	case KindDriverNotLoaded:
		return "look at the node's driver: lsmod, the driver's pod"
	case KindGPULost:
		return "look for Xid 79 in the kernel's log and reboot the node"
	case KindResetRequired:
		return "drain the GPU and reset it, or reboot the node"
	case KindTimeout:
		return "look for hung tasks and Xid in the kernel's log"
	}
	return ""
}
