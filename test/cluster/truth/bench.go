package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/e2e"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

const (
	// pluginLabel and driverLabel put plugin and driver on a node.
	pluginLabel = "truth.dramigrate.dev/plugin"
	driverLabel = "truth.dramigrate.dev/driver"
	on          = "on"
	// patience bounds a wait for what takes seconds on an idle machine.
	patience = 2 * time.Minute
)

// bench is a cluster on which claims are proven.
type bench struct {
	*e2e.Bench
	gpus map[string]int
}

// newBench starts the cluster, with plugin and driver installed and on no node, and
// without a DeviceClass.
func newBench(ctx context.Context, version string, nodes []cluster.NodeSpec, log io.Writer) (_ *bench, err error) {
	c, err := cluster.Start(ctx, cluster.Options{Version: version, Nodes: nodes, Log: log})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	b := &bench{Bench: &e2e.Bench{Cluster: c, Make: manifests.NVIDIA()}, gpus: map[string]int{}}
	for _, n := range nodes {
		b.gpus[n.Name] = n.GPUs
	}
	plugin := manifests.PluginStatic()
	plugin.DaemonSet.Spec.Template.Spec.NodeSelector = map[string]string{pluginLabel: on}
	objects := append(plugin.Objects(), manifests.Driver()...)
	for _, o := range objects {
		if ds, ok := o.(*appsv1.DaemonSet); ok && ds != plugin.DaemonSet {
			ds.Spec.Template.Spec.NodeSelector = map[string]string{driverLabel: on}
		}
	}
	if err := c.Apply(ctx, objects...); err != nil {
		return nil, err
	}
	return b, b.isVersion(ctx, version, nodes)
}

// isVersion wants everything to run as the version that it was asked for.
func (b *bench) isVersion(ctx context.Context, version string, nodes []cluster.NodeSpec) error {
	v, err := b.Client().Discovery().ServerVersion()
	if err != nil {
		return err
	}
	if v.GitVersion != version {
		return fmt.Errorf("the API server is %s, want %s", v.GitVersion, version)
	}
	for _, spec := range nodes {
		want := version
		if spec.KubeletVersion != "" {
			want = spec.KubeletVersion
		}
		n, err := b.Client().CoreV1().Nodes().Get(ctx, spec.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := n.Status.NodeInfo.KubeletVersion; got != want {
			return fmt.Errorf("node/%s: the kubelet is %s, want %s", spec.Name, got, want)
		}
	}
	return nil
}

// eventually waits until check says nothing.
func eventually(ctx context.Context, limit time.Duration, check func() string) error {
	if why := e2e.Eventually(ctx, limit, check); why != "" {
		return errors.New(why)
	}
	return ctx.Err()
}

// label sets a node's label, or takes it away if the value is empty.
func (b *bench) label(ctx context.Context, node, key, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, key)
	if value != "" {
		patch = fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	}
	_, err := b.Client().CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// pluginOn returns when the node offers all its GPUs by the plugin.
func (b *bench) pluginOn(ctx context.Context, node string) error {
	if err := b.label(ctx, node, pluginLabel, on); err != nil {
		return err
	}
	return eventually(ctx, patience, func() string {
		// The node's status alone does not tell that there is a plugin (K3.1c).
		ids, err := b.Advertised(ctx, node)
		if err != nil {
			return err.Error()
		}
		if len(ids) != b.gpus[node] {
			return fmt.Sprintf("node/%s: the kubelet offers %d devices of %s, want %d", node, len(ids), e2e.Resource, b.gpus[node])
		}
		return b.Allocatable(ctx, node, b.gpus[node])
	})
}

// pluginOff returns when the plugin's pod is gone and nothing is allocatable.
func (b *bench) pluginOff(ctx context.Context, node string) error {
	if err := b.label(ctx, node, pluginLabel, ""); err != nil {
		return err
	}
	ds := manifests.PluginStatic().DaemonSet
	if err := b.daemonGone(ctx, node, ds.Namespace, ds.Name); err != nil {
		return err
	}
	return eventually(ctx, patience, func() string { return b.Allocatable(ctx, node, 0) })
}

// driverOn returns when the node's slices hold all its GPUs.
func (b *bench) driverOn(ctx context.Context, node string) error {
	if err := b.label(ctx, node, driverLabel, on); err != nil {
		return err
	}
	return eventually(ctx, patience, func() string { return b.publishes(ctx, node, b.gpus[node]) })
}

// driverOff returns when the driver's pod is gone. Its slices are the kubelet's to
// remove.
func (b *bench) driverOff(ctx context.Context, node string) error {
	if err := b.label(ctx, node, driverLabel, ""); err != nil {
		return err
	}
	ds := manifests.DriverDaemonSet()
	return b.daemonGone(ctx, node, ds.Namespace, ds.Name)
}

func (b *bench) daemonGone(ctx context.Context, node, namespace, set string) error {
	return eventually(ctx, patience, func() string {
		pods, err := b.PodsOn(ctx, node)
		if err != nil {
			return err.Error()
		}
		for _, p := range pods {
			if owner := metav1.GetControllerOf(&p); p.Namespace == namespace && owner != nil && owner.Name == set {
				return fmt.Sprintf("pod %s/%s is still on node/%s", p.Namespace, p.Name, node)
			}
		}
		return ""
	})
}

// publishes says how the node's published GPUs differ from want.
func (b *bench) publishes(ctx context.Context, node string, want int) string {
	list, err := b.Client().ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"spec.nodeName": node, "spec.driver": e2e.Driver}.String()})
	if err != nil {
		return err.Error()
	}
	got := 0
	for _, s := range list.Items {
		got += len(s.Spec.Devices)
	}
	if got != want {
		return fmt.Sprintf("node/%s: %d GPUs are in ResourceSlices, want %d", node, got, want)
	}
	return ""
}

// quantities are a node's GPUs by the device plugin: "absent" or the number.
func (b *bench) quantities(ctx context.Context, node string) (capacity, allocatable string, err error) {
	n, err := b.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return "", "", err
	}
	show := func(list corev1.ResourceList) string {
		if q, ok := list[e2e.Resource]; ok {
			return q.String()
		}
		return "absent"
	}
	return show(n.Status.Capacity), show(n.Status.Allocatable), nil
}
