package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/dramigrate/dramigrate/test/cluster/e2e"
)

const (
	// sampleEvery is how often a kubelet is asked what it offers; it has no watch.
	sampleEvery = 250 * time.Millisecond
	// unknown is the value of what could not be asked for: the kubelet was away.
	unknown = -1
	// logPatience is how long a running container may take to write its first line.
	logPatience = 20 * time.Second
	// pluginLabel is on the plugin's pods, by its single-file manifest.
	pluginLabel, pluginName = "name", "nvidia-device-plugin-ds"
)

// observer sees what happens on the cluster and when. It only reads.
type observer struct {
	bench *e2e.Bench
	// nodes are those of the cluster.
	nodes []string

	mu sync.Mutex
	// By node: allocatable GPUs as the API server says, GPUs that the kubelet offers
	// by the plugin, devices in the driver's slices, 1 if pods may be scheduled.
	allocatable, offered, published, schedulable map[string]*timeline
	// available are the workload's available pods.
	available timeline
	pods      map[types.UID]*podLife
}

// podLife is what was seen of one pod.
type podLife struct {
	namespace, name, app string
	isPlugin             bool
	node                 string
	created, running     time.Time
	// leaving is when its deletion was asked for, gone when it was over.
	leaving, gone time.Time
	phase         corev1.PodPhase
	// reason is why it failed or what its container waits for.
	reason string
	claim  string
	uuids  []string
	// isRead says that its log is being read or was read.
	isRead bool
}

func newObserver(bench *e2e.Bench, nodes []string) *observer {
	o := &observer{bench: bench, nodes: nodes, pods: map[types.UID]*podLife{}}
	for _, lines := range []*map[string]*timeline{&o.allocatable, &o.offered, &o.published, &o.schedulable} {
		*lines = map[string]*timeline{}
		for _, n := range nodes {
			(*lines)[n] = &timeline{}
		}
	}
	return o
}

// start watches until ctx ends and returns when the first state is known.
func (o *observer) start(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(o.bench.Client(), 0)
	watched := []struct {
		informer cache.SharedIndexInformer
		see      func(object any, isGone bool)
	}{
		{factory.Core().V1().Nodes().Informer(), o.seeNode},
		{factory.Core().V1().Pods().Informer(), func(object any, isGone bool) { o.seePod(ctx, object, isGone) }},
		{factory.Apps().V1().Deployments().Informer(), o.seeDeployment},
	}
	sliceInformer := factory.Resource().V1().ResourceSlices()
	watched = append(watched, struct {
		informer cache.SharedIndexInformer
		see      func(object any, isGone bool)
	}{sliceInformer.Informer(), func(any, bool) { o.seeSlices(sliceInformer.Informer().GetStore().List()) }})
	var synced []cache.InformerSynced
	for _, w := range watched {
		registration, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { w.see(object, false) },
			UpdateFunc: func(_, object any) { w.see(object, false) },
			DeleteFunc: func(object any) {
				if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
					object = last.Obj
				}
				w.see(object, true)
			},
		})
		if err != nil {
			return err
		}
		synced = append(synced, registration.HasSynced)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	for _, n := range o.nodes {
		go o.sample(ctx, n)
	}
	return nil
}

// sample asks a kubelet again and again which devices it offers by the plugin.
func (o *observer) sample(ctx context.Context, node string) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		offered := unknown
		if ids, err := o.bench.Advertised(ctx, node); err == nil {
			offered = len(ids)
		}
		o.mu.Lock()
		o.offered[node].set(time.Now(), offered)
		o.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (o *observer) seeNode(object any, isGone bool) {
	n, ok := object.(*corev1.Node)
	if !ok || isGone || o.allocatable[n.Name] == nil {
		return
	}
	q := n.Status.Allocatable[e2e.Resource]
	isOpen := 1
	if n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		// The workload tolerates the taint that keeps other pods off GPU nodes.
		return t.Key != e2e.Resource && t.Effect != corev1.TaintEffectPreferNoSchedule
	}) {
		isOpen = 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.allocatable[n.Name].set(now, int(q.Value()))
	o.schedulable[n.Name].set(now, isOpen)
}

func (o *observer) seeSlices(all []any) {
	devices := map[string]int{}
	for _, object := range all {
		if s, ok := object.(*resourceapi.ResourceSlice); ok && s.Spec.Driver == e2e.Driver && s.Spec.NodeName != nil {
			devices[*s.Spec.NodeName] += len(s.Spec.Devices)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for n, line := range o.published {
		line.set(now, devices[n])
	}
}

func (o *observer) seeDeployment(object any, isGone bool) {
	d, ok := object.(*appsv1.Deployment)
	if !ok || isGone || d.Name != workload {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.available.set(time.Now(), int(d.Status.AvailableReplicas))
}

func (o *observer) seePod(ctx context.Context, object any, isGone bool) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	isPlugin := p.Labels[pluginLabel] == pluginName
	if p.Namespace != metav1.NamespaceDefault && !isPlugin {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	life := o.pods[p.UID]
	if life == nil {
		life = &podLife{namespace: p.Namespace, name: p.Name, app: p.Labels["app"], isPlugin: isPlugin, created: now}
		o.pods[p.UID] = life
	}
	life.node, life.phase = p.Spec.NodeName, p.Status.Phase
	if reason := whyNot(p); reason != "" {
		life.reason = reason
	}
	if s := p.Status.ExtendedResourceClaimStatus; s != nil && len(s.RequestMappings) > 0 {
		life.claim = s.ResourceClaimName
	}
	started := p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodSucceeded
	if started && life.running.IsZero() {
		life.running = now
	}
	if p.DeletionTimestamp != nil && life.leaving.IsZero() {
		life.leaving = now
	}
	if isGone && life.gone.IsZero() {
		life.gone = now
		return
	}
	if started && !isPlugin && !life.isRead {
		life.isRead = true
		go o.readLog(ctx, p.DeepCopy(), life)
	}
}

// readLog notes which GPUs a container saw.
func (o *observer) readLog(ctx context.Context, p *corev1.Pod, life *podLife) {
	var seen []string
	_ = e2e.Eventually(ctx, logPatience, func() string {
		var err error
		if seen, err = o.bench.Seen(ctx, p); err != nil && !apierrors.IsNotFound(err) {
			return err.Error()
		}
		if err == nil && len(seen) == 0 {
			return "nothing written yet"
		}
		return ""
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	life.uuids = seen
}

// whyNot is why a pod failed or does not start.
func whyNot(p *corev1.Pod) string {
	if p.Status.Phase == corev1.PodFailed && p.Status.Reason != "" {
		return p.Status.Reason
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			return w.Reason
		}
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("%s, exit code %d", t.Reason, t.ExitCode)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason
		}
	}
	return ""
}

// lives are the pods that match, in the order of their creation.
func (o *observer) lives(want func(*podLife) bool) []podLife {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []podLife
	for _, life := range slices.Collect(maps.Values(o.pods)) {
		if want(life) {
			out = append(out, *life)
		}
	}
	slices.SortFunc(out, func(a, b podLife) int { return a.created.Compare(b.created) })
	return out
}

// line is a copy of a node's timeline.
func (o *observer) line(of map[string]*timeline, node string) timeline {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(*of[node])
}
