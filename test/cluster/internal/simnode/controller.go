package simnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/test/cluster/internal/deviceplugin"
	"github.com/dramigrate/dramigrate/test/cluster/internal/dradriver"
)

// byNode indexes pods and slices by the name of their node.
const byNode = "node"

// A controller brings the objects of the simulated nodes to what their machines
// decide. The queue hands one node to one worker at a time, so a machine needs
// no lock of its own.
type controller struct {
	client   kubernetes.Interface
	clock    clock.WithTicker
	log      *slog.Logger
	nodes    map[string]*simulated
	pods     cache.Indexer
	slices   cache.Indexer
	nodeList cache.Store
	queue    workqueue.TypedRateLimitingInterface[string]
}

// A simulated node is its configuration and its memory.
type simulated struct {
	config  Node
	machine *machine
}

// work decides for nodes until the queue is shut down.
func (c *controller) work(ctx context.Context) {
	for {
		name, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if err := c.sync(ctx, name); err != nil {
			if ctx.Err() == nil && !apierrors.IsConflict(err) {
				c.log.Warn("retrying", "node", name, "error", err)
			}
			c.queue.AddRateLimited(name)
		} else {
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}

// sync decides once for the node and does what was decided.
func (c *controller) sync(ctx context.Context, name string) error {
	item, exists, err := c.nodeList.GetByKey(name)
	if err != nil || !exists {
		return err // a deleted node stays away, as without a restart of its kubelet
	}
	node := item.(*corev1.Node)
	pods, err := fromIndex[*corev1.Pod](c.pods, name)
	if err != nil {
		return err
	}
	now := c.clock.Now()
	d := c.nodes[name].machine.decide(now, pods)
	if !d.next.IsZero() {
		c.queue.AddAfter(name, d.next.Sub(now))
	}
	errs := []error{c.report(ctx, node, d.resource), c.publish(ctx, node, d.slices)}
	for _, p := range d.start {
		errs = append(errs, c.setStatus(ctx, p, runningStatus(p, now)))
	}
	for _, p := range d.succeed {
		errs = append(errs, c.setStatus(ctx, p, succeededStatus(p, now)))
	}
	for _, p := range d.reject {
		errs = append(errs, c.setStatus(ctx, p, rejectedStatus(p, now)))
	}
	for _, p := range d.remove {
		errs = append(errs, c.remove(ctx, p))
	}
	return errors.Join(errs...)
}

// report writes the plugin's resource into the node's status if it differs.
func (c *controller) report(ctx context.Context, node *corev1.Node, want *advertised) error {
	if want == nil {
		return nil
	}
	capacity, known := node.Status.Capacity[deviceplugin.ResourceName]
	allocatable := node.Status.Allocatable[deviceplugin.ResourceName]
	if known && capacity.Value() == want.capacity && allocatable.Value() == want.allocatable {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"capacity":    map[string]string{deviceplugin.ResourceName: fmt.Sprint(want.capacity)},
		"allocatable": map[string]string{deviceplugin.ResourceName: fmt.Sprint(want.allocatable)},
	}})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("node/%s: status: %w", node.Name, err)
	}
	return nil
}

// publish makes the driver's slices of the node be there, or not.
func (c *controller) publish(ctx context.Context, node *corev1.Node, want bool) error {
	present, err := fromIndex[*resourceapi.ResourceSlice](c.slices, node.Name)
	if err != nil {
		return err
	}
	api := c.client.ResourceV1().ResourceSlices()
	if !want {
		var errs []error
		for _, s := range present {
			if err := api.Delete(ctx, s.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				errs = append(errs, fmt.Errorf("resourceslice/%s: %w", s.Name, err))
			}
		}
		return errors.Join(errs...)
	}
	if len(present) > 0 {
		return nil
	}
	slice, err := sliceObject(node, c.nodes[node.Name].config.GPUs)
	if err != nil {
		return fmt.Errorf("node/%s: slice: %w", node.Name, err)
	}
	created, err := api.Create(ctx, slice, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("node/%s: slice: %w", node.Name, err)
	}
	// Known at once: the next decision may come before the watch tells.
	return c.slices.Add(created)
}

func (c *controller) setStatus(ctx context.Context, p *corev1.Pod, status corev1.PodStatus) error {
	changed := p.DeepCopy()
	changed.Status = status
	_, err := c.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("pod/%s/%s: status: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// remove deletes the pod's object, as a kubelet does when all has ended.
func (c *controller) remove(ctx context.Context, p *corev1.Pod) error {
	now := int64(0)
	err := c.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      &metav1.Preconditions{UID: &p.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("pod/%s/%s: delete: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// heartbeat renews the node's lease until ctx ends.
func (c *controller) heartbeat(ctx context.Context, node *corev1.Node) {
	ticker := c.clock.NewTicker(leaseRenewal)
	defer ticker.Stop()
	for {
		if err := c.renew(ctx, node); err != nil && ctx.Err() == nil {
			c.log.Warn("no heartbeat", "node", node.Name, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (c *controller) renew(ctx context.Context, node *corev1.Node) error {
	lease := leaseObject(node, c.clock.Now())
	api := c.client.CoordinationV1().Leases(lease.Namespace)
	// The server takes no update of a Lease without its version, and a merge patch
	// needs none: nobody else writes the lease of a node.
	patch, err := json.Marshal(map[string]any{"spec": lease.Spec})
	if err != nil {
		return err
	}
	_, err = api.Patch(ctx, lease.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = api.Create(ctx, lease, metav1.CreateOptions{})
	}
	return err
}

// register makes the Node exist and be ready. One that is there already keeps
// its labels, taints and annotations: they are no longer the kubelet's.
func (c *controller) register(ctx context.Context, n Node, version string) (*corev1.Node, error) {
	want := nodeObject(n, version, c.clock.Now())
	api := c.client.CoreV1().Nodes()
	node, err := api.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		patch, marshalErr := json.Marshal(map[string]any{"status": map[string]any{"conditions": want.Status.Conditions}})
		if marshalErr != nil {
			return nil, marshalErr
		}
		node, err = api.Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		return nil, fmt.Errorf("node/%s: register: %w", n.Name, err)
	}
	return node, nil
}

func fromIndex[T any](indexer cache.Indexer, node string) ([]T, error) {
	items, err := indexer.ByIndex(byNode, node)
	if err != nil {
		return nil, err
	}
	typed := make([]T, len(items))
	for i, item := range items {
		typed[i] = item.(T)
	}
	return typed, nil
}

// nodeOf is the simulated node that the object belongs to, if it is one.
func (c *controller) nodeOf(object any) (string, bool) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	var name string
	switch o := object.(type) {
	case *corev1.Pod:
		name = o.Spec.NodeName
	case *corev1.Node:
		name = o.Name
	case *resourceapi.ResourceSlice:
		if o.Spec.NodeName != nil && o.Spec.Driver == dradriver.DriverName {
			name = *o.Spec.NodeName
		}
	}
	_, ours := c.nodes[name]
	return name, ours
}

// changed has the object's node decided for.
func (c *controller) changed(object any) {
	if name, ours := c.nodeOf(object); ours {
		c.queue.Add(name)
	}
}

// index is the index function of byNode.
func (c *controller) index(object any) ([]string, error) {
	if name, ours := c.nodeOf(object); ours {
		return []string{name}, nil
	}
	return nil, nil
}

// resyncNever: everything that happens without an event has a time of its own.
const resyncNever = time.Duration(0)
