package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"

	"github.com/dramigrate/dramigrate/test/cluster/internal/process"
)

// nodesTimeout covers kubelets that start on a machine which is busy with a
// build. 500 simulated nodes take about a minute.
const nodesTimeout = 3 * time.Minute

// taintUninitialized is set by a kubelet with an external cloud provider and
// removed by that provider (k8s.io/cloud-provider/api, TaintExternalCloudProvider).
const taintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// waitReady waits until all nodes are ready and a pod can be made in the
// default namespace. Real nodes get what a cloud provider would give them.
func (c *Cluster) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, nodesTimeout, fmt.Errorf("not ready within %s", nodesTimeout))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c.failOnEnd(ctx, fail)

	pending := map[string]string{} // node to what is missing
	for _, list := range [][]NodeSpec{c.options.Nodes, c.options.SimNodes} {
		for _, n := range list {
			pending[n.Name] = "not registered"
		}
	}
	if len(pending) > 0 {
		nodes := cache.NewListWatchFromClient(c.client.CoreV1().RESTClient(), "nodes", metav1.NamespaceAll, fields.Everything())
		_, err := toolswatch.UntilWithSync(ctx, nodes, &corev1.Node{}, nil, func(e watch.Event) (bool, error) {
			n, ok := e.Object.(*corev1.Node)
			if _, ours := pending[nameOf(n)]; !ok || !ours {
				return false, nil
			}
			missing, err := c.advance(ctx, n)
			if err != nil {
				return false, err
			}
			if missing == "" {
				delete(pending, n.Name)
			} else {
				pending[n.Name] = missing
			}
			return len(pending) == 0, nil
		})
		if err != nil {
			return errors.Join(cause(ctx, err), describePending(pending))
		}
	}
	return c.waitServiceAccount(ctx)
}

func nameOf(n *corev1.Node) string {
	if n == nil {
		return ""
	}
	return n.Name
}

// failOnEnd makes ctx end when a program of the cluster ends.
func (c *Cluster) failOnEnd(ctx context.Context, fail context.CancelCauseFunc) {
	all := slices.Clone(c.plane.Processes)
	for _, n := range c.nodes {
		all = append(all, n.Process)
	}
	if c.sim != nil {
		all = append(all, c.sim)
	}
	for _, p := range all {
		go func(p *process.Process) {
			select {
			case <-p.Done():
				fail(p.Failure())
			case <-ctx.Done():
			}
		}(p)
	}
}

// advance does what can be done for a node and says what is still missing.
func (c *Cluster) advance(ctx context.Context, n *corev1.Node) (missing string, err error) {
	if i := slices.IndexFunc(c.options.Nodes, func(s NodeSpec) bool { return s.Name == n.Name }); i >= 0 {
		if err := c.initialize(ctx, n, c.options.Nodes[i], c.nodes[i].Addr.String()); err != nil {
			return "", fmt.Errorf("node/%s: %w", n.Name, err)
		}
	}
	for _, t := range n.Spec.Taints {
		if t.Key == taintUninitialized || t.Key == corev1.TaintNodeNotReady {
			return "has the taint " + t.Key, nil
		}
	}
	for _, cond := range n.Status.Conditions {
		if cond.Type != corev1.NodeReady {
			continue
		}
		if cond.Status != corev1.ConditionTrue {
			return fmt.Sprintf("not ready: %s: %s", cond.Reason, cond.Message), nil
		}
		return "", nil
	}
	return "no Ready condition yet", nil
}

// initialize does for a node what an external cloud provider does, and sets the
// labels of its spec, which a kubelet may in part not set for itself.
func (c *Cluster) initialize(ctx context.Context, n *corev1.Node, spec NodeSpec, addr string) error {
	if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintUninitialized }) {
		return nil
	}
	nodes := c.client.CoreV1().Nodes()
	// The kubelet keeps addresses that another has set (v1.37.2,
	// pkg/kubelet/nodestatus/setters.go, NodeAddress).
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: addr},
			{Type: corev1.NodeHostName, Address: n.Name},
		}
		_, err = nodes.UpdateStatus(ctx, current, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("set addresses: %w", err)
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Spec.Taints = slices.DeleteFunc(current.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintUninitialized })
		if current.Labels == nil {
			current.Labels = map[string]string{}
		}
		maps.Copy(current.Labels, spec.Labels)
		_, err = nodes.Update(ctx, current, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("set labels: %w", err)
	}
	return nil
}

// waitServiceAccount waits until the controller manager has made the account
// without which no pod is admitted.
func (c *Cluster) waitServiceAccount(ctx context.Context) error {
	accounts := cache.NewListWatchFromClient(c.client.CoreV1().RESTClient(), "serviceaccounts", metav1.NamespaceDefault,
		fields.OneTermEqualSelector(metav1.ObjectNameField, "default"))
	_, err := toolswatch.UntilWithSync(ctx, accounts, &corev1.ServiceAccount{}, nil, func(e watch.Event) (bool, error) {
		_, ok := e.Object.(*corev1.ServiceAccount)
		return ok && e.Type != watch.Deleted, nil
	})
	if err != nil {
		return fmt.Errorf("serviceaccount default/default: %w", cause(ctx, err))
	}
	return nil
}

// cause prefers the reason for which ctx ended to the error that this led to.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

func describePending(pending map[string]string) error {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(pending)) {
		lines = append(lines, fmt.Sprintf("node/%s: %s", name, pending[name]))
		if len(lines) == 10 && len(pending) > 10 {
			lines = append(lines, fmt.Sprintf("and %d more", len(pending)-10))
			break
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}
