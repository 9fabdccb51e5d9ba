package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// look is the cluster as a verb sees it once, with the records of the tool's
// namespace that it names. With --from it is what the files hold.
func (a *app) look(ctx context.Context, namespace string) (*cluster.Snapshot, error) {
	if a.offline() {
		return a.lookAtFiles(ctx, namespace)
	}
	client, err := a.Client()
	if err != nil {
		return nil, err
	}
	s, err := cluster.Load(ctx, client, cluster.LoadOptions{Namespace: namespace})
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
