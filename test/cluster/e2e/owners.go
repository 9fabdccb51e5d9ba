package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Owner stands in for whatever owns the plugin's DaemonSet: it puts an edit of the pod
// template back as soon as it sees one, and labels nodes if it has something to say
// about them.
type Owner struct {
	// Manager is the field manager under which it writes.
	Manager string
	// Label says what to make of a node's labels; nil if it leaves nodes alone.
	Label func(*corev1.Node) map[string]string

	client          kubernetes.Interface
	namespace, name string

	mu      sync.Mutex
	want    appsv1.DaemonSetSpec
	reverts int
	trouble error
}

// Own begins to keep a DaemonSet as it is now, until ctx ends.
func (o *Owner) Own(ctx context.Context, client kubernetes.Interface, namespace, name string) error {
	o.client, o.namespace, o.name = client, namespace, name
	ds, err := client.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	o.want = ds.Spec
	sets, err := client.AppsV1().DaemonSets(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	go o.run(ctx, sets, nodes)
	return nil
}

// Reverts is how often it has put the DaemonSet back, and what went wrong with it.
func (o *Owner) Reverts() (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reverts, o.trouble
}

// Want makes a change that the owner wants: what a release or a repository has now.
func (o *Owner) Want(ctx context.Context, change func(*appsv1.DaemonSetSpec)) error {
	o.mu.Lock()
	change(&o.want)
	o.mu.Unlock()
	return o.keep(ctx)
}

func (o *Owner) run(ctx context.Context, sets, nodes watch.Interface) {
	defer sets.Stop()
	defer nodes.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case _, open := <-sets.ResultChan():
			if !open {
				o.failed(fmt.Errorf("the watch of DaemonSets has ended"))
				return
			}
			err = o.keep(ctx)
		case e, open := <-nodes.ResultChan():
			if !open {
				o.failed(fmt.Errorf("the watch of Nodes has ended"))
				return
			}
			if node, ok := e.Object.(*corev1.Node); ok && o.Label != nil {
				err = o.label(ctx, node)
			}
		}
		if err != nil && ctx.Err() == nil {
			o.failed(err)
		}
	}
}

func (o *Owner) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trouble = err
}

// keep writes the DaemonSet if its template is not as it has to be.
func (o *Owner) keep(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	sets := o.client.AppsV1().DaemonSets(o.namespace)
	for {
		ds, err := sets.Get(ctx, o.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if equality.Semantic.DeepEqual(ds.Spec.Template, o.want.Template) && equality.Semantic.DeepEqual(ds.Spec.UpdateStrategy, o.want.UpdateStrategy) {
			return nil
		}
		ds.Spec.Template, ds.Spec.UpdateStrategy = o.want.Template, o.want.UpdateStrategy
		if _, err := sets.Update(ctx, ds, metav1.UpdateOptions{FieldManager: o.Manager}); err == nil {
			o.reverts++
		} else if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// label writes the labels of a node that are not as they have to be.
func (o *Owner) label(ctx context.Context, node *corev1.Node) error {
	want := o.Label(node)
	if len(want) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": want}})
	if err != nil {
		return err
	}
	_, err = o.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: o.Manager})
	return err
}

// Labels by which NVIDIA's GPU Operator places its parts.
const (
	deployPlugin    = "nvidia.com/gpu.deploy.device-plugin"
	deployValidator = "nvidia.com/gpu.deploy.operator-validator"
)

// OperatorLabels are what the GPU Operator makes of a node with GPUs at each event:
// "true" of a label that is absent or empty, and nothing of any other value.
func OperatorLabels(node *corev1.Node) map[string]string {
	out := map[string]string{}
	if node.Labels["nvidia.com/gpu.present"] == "true" {
		for _, key := range []string{deployPlugin, deployValidator} {
			if node.Labels[key] == "" {
				out[key] = "true"
			}
		}
	}
	return out
}

// DaemonPodsOn are the UIDs and start times of a DaemonSet's pods on some nodes.
func (b *Bench) DaemonPodsOn(ctx context.Context, namespace, set string, nodes ...string) ([]string, error) {
	pods, err := b.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range pods.Items {
		p := &pods.Items[i]
		if owner := metav1.GetControllerOf(p); owner == nil || owner.Kind != "DaemonSet" || owner.Name != set || !slices.Contains(nodes, p.Spec.NodeName) {
			continue
		}
		for _, c := range p.Status.ContainerStatuses {
			started := "not running"
			if c.State.Running != nil {
				started = c.State.Running.StartedAt.UTC().String()
			}
			out = append(out, fmt.Sprintf("%s on %s: %s started %s, %d restarts", p.UID, p.Spec.NodeName, c.Name, started, c.RestartCount))
		}
	}
	slices.Sort(out)
	return out, nil
}
