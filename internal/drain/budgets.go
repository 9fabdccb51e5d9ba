package drain

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// budgetsFor is how long a namespace's budgets are remembered.
const budgetsFor = 5 * time.Second

// budgets finds the PodDisruptionBudgets of pods, by the rule of the eviction API:
// every budget of the pod's namespace whose selector matches; an empty selector
// matches all, none at all matches nothing
// (pkg/registry/core/pod/storage/eviction.go, getPodDisruptionBudgets, v1.37.2).
type budgets struct {
	client kubernetes.Interface
	clock  clock.PassiveClock

	mu    sync.Mutex
	known map[string]knownBudgets
}

type knownBudgets struct {
	at   time.Time
	list []policyv1.PodDisruptionBudget
	err  error
}

// of names the budgets of a pod as namespace/name, sorted. The error says that
// they could not be read.
func (b *budgets) of(ctx context.Context, p *corev1.Pod) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	k, ok := b.known[p.Namespace]
	if !ok || now.Sub(k.at) >= budgetsFor {
		k = knownBudgets{at: now}
		list, err := b.client.PolicyV1().PodDisruptionBudgets(p.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			k.err = err
		} else {
			k.list = list.Items
		}
		if b.known == nil {
			b.known = map[string]knownBudgets{}
		}
		b.known[p.Namespace] = k
	}
	if k.err != nil {
		return nil, k.err
	}
	var names []string
	for i := range k.list {
		s, err := metav1.LabelSelectorAsSelector(k.list[i].Spec.Selector)
		if err == nil && s.Matches(labels.Set(p.Labels)) {
			names = append(names, p.Namespace+"/"+k.list[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// ignoresBudgets says that the eviction API does not ask any budget for the pod
// (pkg/registry/core/pod/storage/eviction.go, canIgnorePDB, v1.37.2).
func ignoresBudgets(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending ||
		p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
