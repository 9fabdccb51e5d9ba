package simnode

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/dramigrate/dramigrate/test/cluster/internal/deviceplugin"
	"github.com/dramigrate/dramigrate/test/cluster/internal/dradriver"
)

// A machine is the memory of one node: what it saw of its pods and when. It has
// no client and no clock; it is told both.
type machine struct {
	timings timings
	gpus    int64
	pods    map[types.UID]*podRecord
	plugin  component
	driver  component
	// resource is what the node's status says of the plugin's resource. Once
	// there it stays for ever: the kubelet writes "0" and never removes the key.
	resource *advertised
	// published tells that the driver's slices are there.
	published bool
}

// A component is something that pods of the node provide to it.
type component struct {
	up    bool
	since time.Time
}

func (c *component) set(up bool, now time.Time) {
	if c.up != up {
		*c = component{up: up, since: now}
	}
}

// A podRecord is when a pod got to where it is.
type podRecord struct {
	seen     time.Time
	started  time.Time // zero until it runs
	deleting time.Time // zero until it is asked to end
}

// newMachine is a node whose simulation starts now. registered tells whether an
// earlier one left the plugin's resource in the node's status: it is then zero
// until the plugin registers again, as after a restart of a kubelet.
func newMachine(gpus int, t timings, registered bool, now time.Time) *machine {
	m := &machine{
		timings: t,
		gpus:    int64(gpus),
		pods:    map[types.UID]*podRecord{},
		plugin:  component{since: now},
		driver:  component{since: now},
	}
	if registered {
		m.resource = &advertised{}
	}
	return m
}

// An advertised is the plugin's resource in the node's status.
type advertised struct{ capacity, allocatable int64 }

// A decision is what has to be true of the node's objects now.
type decision struct {
	start   []*corev1.Pod // have to run
	succeed []*corev1.Pod // have ended by themselves
	reject  []*corev1.Pod // are refused: the plugin has no device for them
	remove  []*corev1.Pod // have ended because they were asked to
	// resource is nil as long as the plugin has never registered.
	resource *advertised
	// slices of the driver have to be there.
	slices bool
	// next is when to decide again if nothing happens before; zero means never.
	next time.Time
}

// at asks for a decision at the time, unless an earlier one was asked for.
func (d *decision) at(t time.Time) {
	if d.next.IsZero() || t.Before(d.next) {
		d.next = t
	}
}

// decide looks at all pods that are bound to the node.
func (m *machine) decide(now time.Time, pods []*corev1.Pod) decision {
	var d decision
	m.observe(now, pods)
	m.decideComponents(now, &d)
	var inUse int64
	for _, p := range pods {
		if running(p) && !draBacked(p) {
			inUse += gpuRequest(p)
		}
	}
	for _, p := range pods {
		record := m.pods[p.UID]
		switch {
		case p.DeletionTimestamp != nil:
			m.decideRemoval(now, p, record, &d)
		case finished(p):
		case !running(p):
			if !reached(now, record.seen.Add(m.timings.podStart), &d) {
				continue
			}
			if draBacked(p) && !m.driver.up {
				continue // not prepared; a change of the driver's pod asks again
			}
			if want := gpuRequest(p); want > 0 && !draBacked(p) && d.resource != nil {
				if inUse+want > d.resource.allocatable {
					d.reject = append(d.reject, p)
					continue
				}
				inUse += want
			}
			d.start = append(d.start, p)
		case ofJob(p):
			if reached(now, record.started.Add(m.timings.jobRun), &d) {
				d.succeed = append(d.succeed, p)
			}
		}
	}
	return d
}

// observe keeps the records and notices what the pods provide.
func (m *machine) observe(now time.Time, pods []*corev1.Pod) {
	present := make(map[types.UID]bool, len(pods))
	pluginUp, driverUp := false, false
	for _, p := range pods {
		present[p.UID] = true
		record := m.pods[p.UID]
		if record == nil {
			record = &podRecord{seen: now}
			m.pods[p.UID] = record
		}
		if running(p) && record.started.IsZero() {
			record.started = now
		}
		if p.DeletionTimestamp != nil && record.deleting.IsZero() {
			record.deleting = now
		}
		// A process that was asked to end serves no more, long before its pod's
		// object is gone.
		if running(p) && p.DeletionTimestamp == nil {
			pluginUp = pluginUp || hasImage(p, deviceplugin.ImageRepository)
			driverUp = driverUp || hasImage(p, dradriver.ImageRepository)
		}
	}
	for uid := range m.pods {
		if !present[uid] {
			delete(m.pods, uid)
		}
	}
	// A plugin on a node without GPUs has nothing to register.
	m.plugin.set(pluginUp && m.gpus > 0, now)
	m.driver.set(driverUp, now)
}

// decideComponents applies the kubelet's rules to plugin and driver.
func (m *machine) decideComponents(now time.Time, d *decision) {
	m.reportPlugin(now, d)
	if m.resource != nil {
		r := *m.resource
		d.resource = &r
	}

	switch {
	case m.driver.up:
		m.published = m.published || reached(now, m.driver.since.Add(m.timings.publish), d)
	case m.published:
		m.published = !reached(now, m.driver.since.Add(m.timings.wipe), d)
	}
	d.slices = m.published
}

// reportPlugin brings the plugin's resource up to date as the node's status
// would be: allocatable follows the plugin at the next status, and capacity
// falls after the grace period (Kubernetes 1.37,
// pkg/kubelet/cm/devicemanager/manager.go, GetCapacity).
func (m *machine) reportPlugin(now time.Time, d *decision) {
	if !reached(now, m.plugin.since.Add(m.timings.nodeStatus), d) {
		return
	}
	if m.plugin.up {
		m.resource = &advertised{capacity: m.gpus, allocatable: m.gpus}
		return
	}
	if m.resource == nil {
		return
	}
	m.resource.allocatable = 0
	if reached(now, m.plugin.since.Add(m.timings.endpointGrace), d) {
		m.resource.capacity = 0
	}
}

// reached tells whether it is time, and if not asks for a decision then.
func reached(now, t time.Time, d *decision) bool {
	if now.Before(t) {
		d.at(t)
		return false
	}
	return true
}

// decideRemoval ends a pod that was deleted. A pod with prepared devices stays
// until the driver can unprepare them, however long that takes.
func (m *machine) decideRemoval(now time.Time, p *corev1.Pod, record *podRecord, d *decision) {
	if running(p) && draBacked(p) && !m.driver.up {
		return
	}
	stop := m.timings.podStop
	if grace := p.DeletionGracePeriodSeconds; grace != nil {
		stop = min(stop, time.Duration(*grace)*time.Second)
	}
	if finished(p) {
		stop = 0
	}
	if reached(now, record.deleting.Add(stop), d) {
		d.remove = append(d.remove, p)
	}
}

func running(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// ofJob tells whether the pod ends by itself.
func ofJob(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "Job"
}

// draBacked tells whether the pod's devices come from claims. The only driver of
// a simulated node is gpu.nvidia.com.
func draBacked(p *corev1.Pod) bool {
	mapped := p.Status.ExtendedResourceClaimStatus
	return len(p.Spec.ResourceClaims) > 0 || mapped != nil && len(mapped.RequestMappings) > 0
}

func gpuRequest(p *corev1.Pod) int64 {
	q := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})[deviceplugin.ResourceName]
	return q.Value()
}

func hasImage(p *corev1.Pod, repository string) bool {
	for _, c := range p.Spec.Containers {
		image, _, _ := strings.Cut(c.Image, "@")
		if image == repository || strings.HasPrefix(image, repository+":") {
			return true
		}
	}
	return false
}
