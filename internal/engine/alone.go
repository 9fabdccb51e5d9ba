package engine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
	others, err := s.excluding(ctx, pool)
	if err != nil {
		return err
	}
	for _, name := range others {
		// Whether a holder is dead is for the lock to tell, and never for a clock alone.
		// Taking the Lease proves it, and a holder that was paused writes no more.
		lock, err := s.acquireLease(ctx, name, 0, 0)
		if err != nil {
			return err
		}
		if err := lock.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}

// excluding are the held Leases that this run must not run beside.
func (s *session) excluding(ctx context.Context, pool string) ([]string, error) {
	shared := cluster.RecordName("")
	if pool != "" {
		info, err := Inspect(ctx, s.bare, s.deps.Namespace, shared)
		if err != nil || !info.Held() {
			return nil, err
		}
		if op := plan.Operation(info.Info["operation"]); op != plan.Prepare && op != plan.Unprepare {
			return nil, nil // a pool's run that makes the DeviceClass
		}
		return []string{shared}, nil
	}
	if s.plan.Operation != plan.Unprepare {
		return nil, nil
	}
	// Others may keep Leases in the namespace as well.
	own := labels.Set{ManagedByLabel: FieldManager}.String()
	list, err := s.bare.CoordinationV1().Leases(s.deps.Namespace).List(ctx, metav1.ListOptions{LabelSelector: own})
	if err != nil {
		return nil, fmt.Errorf("whether a pool's run is under way: %w", err)
	}
	var out []string
	for i := range list.Items {
		if info := cluster.LockOf(&list.Items[i]); info.Name != shared && info.Held() {
			out = append(out, info.Name)
		}
	}
	return out, nil
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
