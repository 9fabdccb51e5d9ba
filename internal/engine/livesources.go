package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/follow"
)

const pageSize = 500

func (l *Live) nodeSources(name string) (*liveNode, error) {
	n := &liveNode{changed: make(chan struct{})}
	changed := func(...any) { l.notify(name) }
	byNode := fields.OneTermEqualSelector("spec.nodeName", name).String()
	var err error
	n.node, err = follow.New(follow.Spec{
		What: "node " + name, Client: l.client, Example: &corev1.Node{}, Changed: changed,
		Selector: fields.OneTermEqualSelector("metadata.name", name).String(),
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return l.client.CoreV1().Nodes().List(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return l.client.CoreV1().Nodes().Watch(ctx, o)
		},
		Transform: transform(func(o *corev1.Node) any { s := cluster.SlimNode(o); return &s }),
	})
	if err != nil {
		return nil, err
	}
	n.pods, err = follow.New(follow.Spec{
		What: "pods of node " + name, Client: l.client, Example: &corev1.Pod{}, Changed: changed,
		Selector: byNode,
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return l.client.CoreV1().Pods("").List(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return l.client.CoreV1().Pods("").Watch(ctx, o)
		},
		Transform: transform(func(o *corev1.Pod) any { return cluster.CachePod(o) }),
		Indexers:  cache.Indexers{byUser: func(o any) ([]string, error) { return []string{userKey(string(o.(*cluster.CachedPod).UID))}, nil }},
	})
	if err != nil {
		return nil, err
	}
	n.slices, err = follow.New(follow.Spec{
		What: "resourceslices of node " + name, Client: l.client, Example: &resourcev1.ResourceSlice{}, Changed: changed,
		Selector: byNode,
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return l.client.ResourceV1().ResourceSlices().List(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return l.client.ResourceV1().ResourceSlices().Watch(ctx, o)
		},
		Transform: transform(func(o *resourcev1.ResourceSlice) any { s := cluster.SlimSlice(o); return &s }),
		Indexers: cache.Indexers{byUser: func(o any) ([]string, error) {
			s := o.(*resourcev1.ResourceSlice)
			return []string{poolKey(s.Spec.Driver, s.Spec.Pool.Name)}, nil
		}},
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (l *Live) claimSource() (*follow.Source, error) {
	return follow.New(follow.Spec{
		What: "resourceclaims", Client: l.client, Example: &resourcev1.ResourceClaim{}, Changed: l.claimsChanged,
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return l.client.ResourceV1().ResourceClaims("").List(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return l.client.ResourceV1().ResourceClaims("").Watch(ctx, o)
		},
		Transform: transform(func(o *resourcev1.ResourceClaim) any { s := cluster.SlimClaim(o); return &s }),
		Indexers:  cache.Indexers{byUser: func(o any) ([]string, error) { return claimKeys(o.(*resourcev1.ResourceClaim)), nil }},
	})
}

// transform applies slim to objects of its type and leaves others, which are
// slimmed already, alone.
func transform[T any](slim func(*T) any) cache.TransformFunc {
	return func(o any) (any, error) {
		if full, ok := o.(*T); ok {
			return slim(full), nil
		}
		return o, nil
	}
}

// byUser is the index that ties claims to what they may hold devices of: nodes by
// name, pools, and pods by UID. It finds at least the claims that cluster.Snapshot's
// View would find for a node, so that no view has to go through all of them.
const byUser = "user"

func nodeKey(name string) string         { return "node/" + name }
func userKey(uid string) string          { return "pod/" + uid }
func poolKey(driver, pool string) string { return "pool/" + driver + "/" + pool }

func claimKeys(c *resourcev1.ResourceClaim) []string {
	var keys []string
	for _, r := range c.Status.ReservedFor {
		keys = append(keys, userKey(string(r.UID)))
	}
	if a := c.Status.Allocation; a != nil {
		for _, r := range a.Devices.Results {
			keys = append(keys, poolKey(r.Driver, r.Pool), nodeKey(r.Pool))
		}
		if a.NodeSelector != nil {
			for _, term := range a.NodeSelector.NodeSelectorTerms {
				for _, f := range term.MatchFields {
					for _, v := range f.Values {
						keys = append(keys, nodeKey(v))
					}
				}
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// claimsChanged wakes the nodes that a claim is, or was, tied to.
func (l *Live) claimsChanged(objects ...any) {
	var keys []string
	for _, o := range objects {
		if c, ok := o.(*resourcev1.ResourceClaim); ok {
			keys = append(keys, claimKeys(c)...)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, n := range l.nodes {
		if slices.ContainsFunc(keys, func(key string) bool {
			return key == nodeKey(name) || indexed(n.pods, key) || indexed(n.slices, key)
		}) {
			l.notifyLocked(name)
		}
	}
}

func indexed(s *follow.Source, key string) bool {
	found, err := s.Informer.GetIndexer().IndexKeys(byUser, key)
	return err == nil && len(found) > 0
}

// claimsFor collects the claims of a node's pods, pools and name, each once.
func claimsFor(claims cache.Indexer, node string, snap *cluster.Snapshot) []resourcev1.ResourceClaim {
	keys := []string{nodeKey(node)}
	for i := range snap.Pods {
		keys = append(keys, userKey(string(snap.Pods[i].UID)))
	}
	for i := range snap.Slices {
		keys = append(keys, poolKey(snap.Slices[i].Spec.Driver, snap.Slices[i].Spec.Pool.Name))
	}
	found := map[*resourcev1.ResourceClaim]bool{}
	var out []resourcev1.ResourceClaim
	for _, key := range keys {
		list, err := claims.ByIndex(byUser, key)
		if err != nil {
			continue // the index exists: newSource was given it
		}
		for _, o := range list {
			if c := o.(*resourcev1.ResourceClaim); !found[c] {
				found[c] = true
				out = append(out, *c)
			}
		}
	}
	return out
}

func sortSnapshot(s *cluster.Snapshot) {
	slices.SortFunc(s.Pods, func(a, b cluster.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(s.Slices, func(a, b resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Claims, func(a, b resourcev1.ResourceClaim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Fresh is a node as the server knows it now, by lists that no cache may answer
// with something older. It reads all claims of the cluster: it confirms a step that
// cannot be taken back, it is not for waiting.
func (l *Live) Fresh(ctx context.Context, node string) (cluster.NodeView, error) {
	var snap cluster.Snapshot
	byName := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", node).String()}
	byNode := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}
	nodes, err := l.client.CoreV1().Nodes().List(ctx, byName)
	if err != nil {
		return cluster.NodeView{}, fmt.Errorf("node/%s: read: %w", node, err)
	}
	for i := range nodes.Items {
		snap.Nodes = append(snap.Nodes, cluster.SlimNode(&nodes.Items[i]))
	}
	err = pages(ctx, byNode, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.CoreV1().Pods("").List(ctx, o)
	}, func(p *corev1.Pod) { snap.Pods = append(snap.Pods, cluster.ProjectPod(p)) })
	if err != nil {
		return cluster.NodeView{}, fmt.Errorf("node/%s: list pods: %w", node, err)
	}
	err = pages(ctx, byNode, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.ResourceV1().ResourceSlices().List(ctx, o)
	}, func(s *resourcev1.ResourceSlice) { snap.Slices = append(snap.Slices, cluster.SlimSlice(s)) })
	if err != nil {
		return cluster.NodeView{}, fmt.Errorf("node/%s: list resourceslices: %w", node, err)
	}
	err = pages(ctx, metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.ResourceV1().ResourceClaims("").List(ctx, o)
	}, func(c *resourcev1.ResourceClaim) { snap.Claims = append(snap.Claims, cluster.SlimClaim(c)) })
	if err != nil {
		return cluster.NodeView{}, fmt.Errorf("node/%s: list resourceclaims: %w", node, err)
	}
	return viewOf(&snap, node)
}

// pages goes through a list page by page.
func pages[T any](ctx context.Context, o metav1.ListOptions, list pager.ListPageFunc, each func(*T)) error {
	p := pager.New(list)
	p.PageSize = pageSize
	return p.EachListItem(ctx, o, func(item runtime.Object) error {
		typed, ok := any(item).(*T)
		if !ok {
			return fmt.Errorf("the server sent a %T", item)
		}
		each(typed)
		return nil
	})
}
