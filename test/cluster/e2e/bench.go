package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// What the bench's objects are called.
const (
	Resource  = "nvidia.com/gpu"
	Driver    = "gpu.nvidia.com"
	PoolLabel = "alpha.eksctl.io/nodegroup-name"
	// ToolNamespace is where the tool keeps its journal.
	ToolNamespace = "dramigrate-system"
	// HelperImage is known to every cluster: it stands for the tool itself.
	HelperImage = "ghcr.io/dramigrate/dramigrate:test"
	// patience bounds what takes seconds on an idle machine.
	patience = 3 * time.Minute
)

// Bench is a cluster with a device plugin, the driver's manifests as files, and the
// tool.
type Bench struct {
	*cluster.Cluster
	Tool Tool
	// DriverDir is the folder for --driver-manifests.
	DriverDir string
	// Make is the maker of the GPUs.
	Make manifests.Make
}

// BenchOptions say what a bench is.
type BenchOptions struct {
	Binary string
	// Helper is the program in the helper's image; Binary if empty. Without either
	// nothing can run the image.
	Helper string
	// Make is the maker of the GPUs; NVIDIA if it is zero. Plugin is then to be its.
	Make manifests.Make
	// Commands are more programs in every image, by name.
	Commands map[string]string
	Plugin   manifests.Plugin
	Version  string
	Kubelet  cluster.Kubelet
	Nodes    []cluster.NodeSpec
	// StatusInterval of the kubelets; a second if 0.
	StatusInterval time.Duration
	// ControlPlane are more flags of the control plane's programs.
	ControlPlane []string
	// Dir for what the bench writes besides the cluster's own folder.
	Dir string
	Log io.Writer
}

// GPUNode is a node of a pool as a cloud would make it.
func GPUNode(name, pool string, gpus int) cluster.NodeSpec {
	return NodeOf(manifests.NVIDIA(), name, pool, gpus)
}

// NodeOf is such a node with another maker's GPUs.
func NodeOf(m manifests.Make, name, pool string, gpus int) cluster.NodeSpec {
	labels := maps.Clone(m.NodeLabels)
	labels[PoolLabel] = pool
	return cluster.NodeSpec{
		Name:   name,
		Labels: labels,
		Taints: []corev1.Taint{{Key: string(m.Resource), Value: "present", Effect: corev1.TaintEffectNoSchedule}},
		GPUs:   gpus,
	}
}

// NewBench starts the cluster and the plugin, and returns when every node offers its
// GPUs by the plugin. Stop ends it.
func NewBench(ctx context.Context, o BenchOptions) (_ *Bench, err error) {
	helper := o.Helper
	if helper == "" {
		helper = o.Binary
	}
	commands := maps.Clone(o.Commands)
	if commands == nil {
		commands = map[string]string{}
	}
	if helper != "" {
		commands["dramigrate"] = helper
	}
	c, err := cluster.Start(ctx, cluster.Options{
		Version: o.Version, Kubelet: o.Kubelet, Nodes: o.Nodes, StatusInterval: o.StatusInterval, ControlPlane: o.ControlPlane,
		Commands: commands, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	if o.Make.Resource == "" {
		o.Make = manifests.NVIDIA()
	}
	b := &Bench{
		Make:      o.Make,
		Cluster:   c,
		DriverDir: filepath.Join(o.Dir, "driver"),
		Tool:      Tool{Binary: o.Binary, Kubeconfig: c.Kubeconfig()},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if err := os.MkdirAll(b.DriverDir, 0o755); err != nil {
		return nil, err
	}
	if err := o.Make.WriteDriverFiles(b.DriverDir); err != nil {
		return nil, err
	}
	if err := c.Apply(ctx, o.Plugin.Objects()...); err != nil {
		return nil, err
	}
	for _, n := range o.Nodes {
		offered := n.GPUs
		if o.Plugin.DaemonSet == nil && !slices.ContainsFunc(o.Plugin.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == n.Name }) {
			offered = 0
		}
		if why := Eventually(ctx, patience, func() string { return b.Allocatable(ctx, n.Name, offered) }); why != "" {
			return nil, errors.New(why)
		}
	}
	return b, nil
}

// Allocatable says how the node's allocatable GPUs differ from want.
func (b *Bench) Allocatable(ctx context.Context, node string, want int) string {
	n, err := b.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	q := n.Status.Allocatable[b.Make.Resource]
	if q.Value() != int64(want) {
		return fmt.Sprintf("node/%s: allocatable %s is %d, want %d", node, b.Make.Resource, q.Value(), want)
	}
	return ""
}

// Fingerprint is everything on a node that the tool may touch.
func (b *Bench) Fingerprint(ctx context.Context, node string) (string, error) {
	n, err := b.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	// What the node lifecycle controller does comes and goes with the node's health.
	taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	})
	for i := range taints {
		taints[i].TimeAdded = nil // set by a controller each time
	}
	print, err := json.MarshalIndent(map[string]any{
		"labels": n.Labels, "annotations": n.Annotations, "taints": taints, "unschedulable": n.Spec.Unschedulable,
	}, "", "  ")
	return string(print), err
}

// DaemonPods are the UIDs of a DaemonSet's pods, by node. Pods that end are left out.
func (b *Bench) DaemonPods(ctx context.Context, namespace, set string) (map[string]string, error) {
	pods, err := b.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, p := range pods.Items {
		if owner := metav1.GetControllerOf(&p); owner != nil && owner.Kind == "DaemonSet" && owner.Name == set && p.DeletionTimestamp == nil {
			out[p.Spec.NodeName] = string(p.UID)
		}
	}
	return out, nil
}

// Leftovers names what DRA has left on a node: claims with its devices, slices, pods
// of the driver.
func (b *Bench) Leftovers(ctx context.Context, node string) ([]string, error) {
	var out []string
	claims, err := b.Client().ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, c := range claims.Items {
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.Pool == node {
				out = append(out, fmt.Sprintf("claim %s/%s holds %s", c.Namespace, c.Name, r.Device))
			}
		}
	}
	slicesLeft, err := b.Client().ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, err
	}
	for _, s := range slicesLeft.Items {
		out = append(out, "slice "+s.Name)
	}
	pods, err := b.PodsOn(ctx, node)
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		if strings.HasPrefix(p.Name, b.Make.DriverSet) {
			out = append(out, "pod "+p.Namespace+"/"+p.Name)
		}
		if p.Namespace == ToolNamespace {
			out = append(out, "pod "+p.Namespace+"/"+p.Name)
		}
	}
	return out, nil
}

// PodsOn are the pods that are bound to a node.
func (b *Bench) PodsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	list, err := b.Client().CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Seen are the GPUs that a workload's container lists in its log.
func (b *Bench) Seen(ctx context.Context, p *corev1.Pod) ([]string, error) {
	log, err := b.Client().CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range b.Make.Seen.FindAllStringSubmatch(string(log), -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return out, nil
}

// Served is a workload's pod and what serves it.
type Served struct {
	Pod, Node string
	UID       string
	// Claim is the generated claim; empty if the plugin serves the pod.
	Claim string
	// Holds are the claim's devices by the make's key, Sees those in the container's log.
	Holds, Sees []string
}

// Workload are the ready pods of a Deployment.
func (b *Bench) Workload(ctx context.Context, namespace, name string) ([]Served, error) {
	list, err := b.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, err
	}
	var out []Served
	for i := range list.Items {
		p := &list.Items[i]
		if !ready(p) {
			continue
		}
		s := Served{Pod: p.Name, Node: p.Spec.NodeName, UID: string(p.UID)}
		if s.Sees, err = b.Seen(ctx, p); err != nil {
			return nil, err
		}
		if status := p.Status.ExtendedResourceClaimStatus; status != nil && len(status.RequestMappings) > 0 {
			s.Claim = status.ResourceClaimName
			if s.Holds, err = b.held(ctx, p.Namespace, s.Claim); err != nil {
				return nil, err
			}
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Served) int { return strings.Compare(a.Node+a.Pod, b.Node+b.Pod) })
	return out, nil
}

// held are the keys of a claim's devices, by the slices that publish them.
func (b *Bench) held(ctx context.Context, namespace, name string) ([]string, error) {
	claim, err := b.Client().ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && claim.Status.Allocation == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	published, err := b.Client().ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range claim.Status.Allocation.Devices.Results {
		for _, s := range published.Items {
			if s.Spec.Driver != r.Driver || s.Spec.Pool.Name != r.Pool {
				continue
			}
			for _, d := range s.Spec.Devices {
				if a := d.Attributes[b.Make.Key]; d.Name == r.Device && a.StringValue != nil {
					out = append(out, *a.StringValue)
				}
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

func ready(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// RunWorkload makes a Deployment of pods that ask for one GPU each, on the nodes of
// a pool (any if empty), and returns when all are ready.
func (b *Bench) RunWorkload(ctx context.Context, name, pool string, replicas int) error {
	var where map[string]string
	if pool != "" {
		where = map[string]string{PoolLabel: pool}
	}
	if err := b.Apply(ctx, b.Make.Workload("default", name, int32(replicas), where)); err != nil {
		return err
	}
	if why := b.WorkloadReady(ctx, name, replicas); why != "" {
		return errors.New(why)
	}
	return nil
}

// WorkloadReady waits until the Deployment has its pods and each has told its GPU.
func (b *Bench) WorkloadReady(ctx context.Context, name string, replicas int) string {
	return Eventually(ctx, patience, func() string {
		pods, err := b.Workload(ctx, "default", name)
		if err != nil {
			return err.Error()
		}
		told := 0
		for _, p := range pods {
			if len(p.Sees) == 1 {
				told++
			}
		}
		if told != replicas {
			return fmt.Sprintf("workload %s: %d of %d pods are ready and see one GPU", name, told, replicas)
		}
		return ""
	})
}
