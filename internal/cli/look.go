package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// look is the cluster as a verb sees it once, with what the options ask for. With
// --from it is what the files hold.
func (a *app) look(ctx context.Context, o cluster.LoadOptions) (*cluster.Snapshot, error) {
	if a.offline() {
		if o.ProbeGate {
			return nil, usageError("--probe-gate asks a server, and --from is given instead of one")
		}
		return a.lookAtFiles(ctx, o)
	}
	client, err := a.Client()
	if err != nil {
		return nil, err
	}
	if o.Advice {
		if o.Dynamic, err = a.Dynamic(); err != nil {
			return nil, err
		}
	}
	s, err := cluster.Load(ctx, client, o)
	return s, nothingSeen(err)
}

// nothingSeen tells a cluster whose nodes may not be read from one that does not answer:
// without nodes there is nothing to say, whatever rights there are beside.
func nothingSeen(err error) error {
	if apierrors.IsForbidden(err) {
		return &codeError{ExitUnknown, fmt.Errorf("nothing can be said: %w", err)}
	}
	return err
}
