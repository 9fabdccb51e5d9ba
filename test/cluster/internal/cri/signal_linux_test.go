package cri

import (
	"syscall"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The numbers are those of signal(7) for x86 and ARM.
func TestSignals(t *testing.T) {
	for signal, want := range map[runtimeapi.Signal]syscall.Signal{
		runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT: 15,
		runtimeapi.Signal_SIGNAL_SIGTERM:         15,
		runtimeapi.Signal_SIGNAL_SIGQUIT:         3,
		runtimeapi.Signal_SIGNAL_SIGRTMIN:        34,
		runtimeapi.Signal_SIGNAL_SIGRTMINPLUS3:   37,
		runtimeapi.Signal_SIGNAL_SIGRTMAXMINUS14: 50,
		runtimeapi.Signal_SIGNAL_SIGRTMAX:        64,
	} {
		if got, err := unixSignal(signal); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", signal, got, err, want)
		}
	}
	for signal, want := range map[syscall.Signal]runtimeapi.Signal{
		6:  runtimeapi.Signal_SIGNAL_SIGABRT, // also called SIGIOT
		15: runtimeapi.Signal_SIGNAL_SIGTERM,
		17: runtimeapi.Signal_SIGNAL_SIGCHLD, // also called SIGCLD
		29: runtimeapi.Signal_SIGNAL_SIGIO,   // also called SIGPOLL
	} {
		if got := criSignal(signal); got != want {
			t.Errorf("signal %d: %s, want %s", signal, got, want)
		}
	}
}
