package cri

import (
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The real-time signals of Linux as libc counts them: it keeps 32 and 33 for itself.
const (
	sigRTMin = 34
	sigRTMax = 64
)

// unixSignal turns a CRI signal (enum Signal of cri-api's api.proto) into the system's.
// The runtime's default is SIGTERM.
func unixSignal(s runtimeapi.Signal) (syscall.Signal, error) {
	if s == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return syscall.SIGTERM, nil
	}
	name := strings.TrimPrefix(s.String(), "SIGNAL_")
	if n := unix.SignalNum(name); n != 0 {
		return n, nil
	}
	var offset int
	switch {
	case name == "SIGRTMIN":
		return sigRTMin, nil
	case name == "SIGRTMAX":
		return sigRTMax, nil
	case scan(name, "SIGRTMINPLUS%d", &offset):
		return syscall.Signal(sigRTMin + offset), nil
	case scan(name, "SIGRTMAXMINUS%d", &offset):
		return syscall.Signal(sigRTMax - offset), nil
	}
	return 0, fmt.Errorf("stop signal %s is unknown on this system", s)
}

func scan(s, format string, n *int) bool {
	_, err := fmt.Sscanf(s, format, n)
	return err == nil
}

// criSignal is the reverse of unixSignal.
func criSignal(sig syscall.Signal) runtimeapi.Signal {
	for n := range runtimeapi.Signal_name {
		s := runtimeapi.Signal(n)
		if s == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
			continue
		}
		if u, err := unixSignal(s); err == nil && u == sig && !alias(s) {
			return s
		}
	}
	return runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT
}

// alias says whether a signal is another one's second name.
func alias(s runtimeapi.Signal) bool {
	switch s {
	case runtimeapi.Signal_SIGNAL_SIGCLD, runtimeapi.Signal_SIGNAL_SIGIOT, runtimeapi.Signal_SIGNAL_SIGPOLL:
		return true
	}
	return false
}
