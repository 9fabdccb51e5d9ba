package engine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// alone refuses what must not run beside another run: unprepare takes away what every
// pool's run stands on, so that it runs while no pool is locked, and no pool's run
// begins while the shared objects are prepared or unprepared. Each side holds its own
// lock before it looks for the other's, so that at least one of two sees the other.
func (s *session) alone(ctx context.Context, pool string) error {
	if pool != "" {
		info, err := Inspect(ctx, s.bare, s.deps.Namespace, cluster.RecordName(""))
		if err != nil {
			return err
		}
		switch op := plan.Operation(info.Info["operation"]); {
		case op != plan.Prepare && op != plan.Unprepare, !info.Held(), info.Expired(s.deps.Clock.Now()):
			return nil
		}
		return &LockedError{info}
	}
	if s.plan.Operation != plan.Unprepare {
		return nil
	}
	list, err := s.bare.CoordinationV1().Leases(s.deps.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("whether a pool's run is under way: %w", err)
	}
	for i := range list.Items {
		info := cluster.LockOf(&list.Items[i])
		if info.Name != cluster.RecordName("") && info.Held() && !info.Expired(s.deps.Clock.Now()) {
			return &LockedError{info}
		}
	}
	return nil
}

// nodeEpoch is the highest epoch that the pool's nodes record. It outlives the Lease
// and the journal, which go with the tool's namespace.
func (s *session) nodeEpoch(ctx context.Context) (int64, error) {
	if s.plan.Pool == nil {
		return 0, nil
	}
	var last int64
	list := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) {
		return s.bare.CoreV1().Nodes().List(ctx, o)
	}))
	err := list.EachListItem(ctx, metav1.ListOptions{Limit: pageSize}, func(o runtime.Object) error {
		node, ok := o.(*corev1.Node)
		if !ok {
			return fmt.Errorf("a list of nodes holds a %T", o)
		}
		// One that cannot be read is a blocker of the plan.
		if mark, err := cluster.ParseNodeState(node); err == nil && mark != nil && mark.Pool == s.plan.Pool.Name {
			last = max(last, mark.Epoch)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("epochs of the pool's nodes: %w", err)
	}
	return last, nil
}
