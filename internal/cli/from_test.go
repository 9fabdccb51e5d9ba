package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/dramigrate/dramigrate/internal/engine"
)

// noWorld is a Factory for those who must not ask for a cluster.
type noWorld struct{ t *testing.T }

func (w noWorld) Config() (*rest.Config, error) {
	w.t.Error("asks for the kubeconfig")
	return nil, errInterrupted
}

func (w noWorld) Client() (kubernetes.Interface, error) {
	w.t.Error("asks for a client")
	return nil, errInterrupted
}

func (w noWorld) Dynamic() (dynamic.Interface, error) {
	w.t.Error("asks for a client")
	return nil, errInterrupted
}

func (w noWorld) PodNamespace() (string, error) {
	w.t.Error("asks for the kubeconfig")
	return "", errInterrupted
}

func (w noWorld) Clock() clock.WithTicker { return clocktesting.NewFakeClock(time.Unix(0, 0)) }

// A verb that reads files opens no connection, and does not even look for a kubeconfig.
func TestFromOpensNoConnection(t *testing.T) {
	t.Parallel()
	live := invoke(t, preparedCluster(), nil, done, "snapshot")
	if live.code != ExitOK {
		t.Fatal(live.err)
	}
	for _, c := range []struct {
		args string
		code int
	}{
		{"pools", ExitOK},
		{"pools -o name", ExitOK},
		{"status", ExitOK},
		{"status gpu-a -o json", ExitOK},
		{"plan gpu-a", ExitOK},
		{"plan gpu-a --detailed-exitcode", ExitChanges},
		{"plan --for prepare", ExitOK},
		{"plan gpu-a --for rollback", ExitOK},
		{"verify gpu-a", ExitError},
		{"apply gpu-a --dry-run=client", ExitOK},
		{"rollback gpu-a --dry-run=client", ExitOK},
		{"prepare --dry-run=client", ExitOK},
		{"unprepare --dry-run=client", ExitOK},
		{"apply gpu-a --dry-run=server", ExitUsage},
		{"apply gpu-a --yes --helper-image x", ExitUsage},
		{"unprepare --yes", ExitUsage},
		{"verify gpu-a --canary --helper-image x", ExitUsage},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			var out, err bytes.Buffer
			a := &app{
				Streams: Streams{In: strings.NewReader(live.stdout), Out: &out, Err: &err}, Factory: noWorld{t}, build: Build{Version: "v0"},
				newRunner: func(engine.Deps) (Runner, error) {
					t.Error("makes an engine")
					return nil, errInterrupted
				},
			}
			code := runRoot(t.Context(), newRoot(a, "dramigrate"), append(strings.Fields(c.args), "--from", "-"), a.Streams)
			if code != c.code {
				t.Errorf("exit code %d, want %d\n%s%s", code, c.code, out.String(), err.String())
			}
		})
	}
}
