package cli

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/engine"
)

// look is the cluster as a verb sees it once.
type look struct {
	client   kubernetes.Interface
	snapshot *cluster.Snapshot
}

func (a *app) look(ctx context.Context) (*look, error) {
	client, err := a.Client()
	if err != nil {
		return nil, err
	}
	snapshot, err := cluster.Load(ctx, client, cluster.LoadOptions{})
	if err != nil {
		return nil, err
	}
	return &look{client: client, snapshot: snapshot}, nil
}

func (a *app) journals(client kubernetes.Interface) *engine.Journals {
	return a.journalsIn(client, a.namespace)
}

func (a *app) journalsIn(client kubernetes.Interface, namespace string) *engine.Journals {
	return &engine.Journals{Client: client, Namespace: namespace, Clock: a.Clock()}
}
