package helperpod

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CanaryOptions are the choices of one canary.
type CanaryOptions struct {
	Wait
	// Resource is the extended resource to ask for ("nvidia.com/gpu").
	Resource string
	// Count is how many devices to ask for; 1 if 0.
	Count int64
	// Driver is the DRA driver that must serve them ("gpu.nvidia.com").
	Driver string
	// Image has what the look needs, or gets it injected with the device. Without a look
	// it is the tool's own, which says its version and ends.
	Image string
	// Look lists the devices that the container sees, in the form of `nvidia-smi -L`, and
	// ends. If it is empty the container starts with its devices, and nobody looks at
	// what it sees.
	Look []string
}

// CanaryResult is a canary that was served as its claim says.
type CanaryResult struct {
	// Pod and Claim are "namespace/name"; both are gone.
	Pod   string
	Claim string
	// Devices are those that the claim held, sorted.
	Devices []CanaryDevice
	// Looked is true if the container listed exactly these.
	Looked bool
}

// Unseen says what a canary without a look leaves open.
func (r CanaryResult) Unseen() string {
	var names []string
	for _, d := range r.Devices {
		names = append(names, strings.TrimSpace(d.Name+" "+d.Key))
	}
	return fmt.Sprintf("claim %s was served with %s and the container started; which devices the container sees was not looked at: no program is known that lists them for driver %s",
		r.Claim, list(names), r.Devices[0].Driver)
}

// CanaryDevice is one device of a canary's claim.
type CanaryDevice struct {
	Driver, Pool, Name string
	// Key is what plugin and driver name it by (vendor.JoinOf); empty if that is not
	// known.
	Key string
}

// Canary runs a pod that asks for the resource as a workload does, and verifies each
// link from there to the device: DRA and not the plugin serves it (the pod's status
// maps its container and resource to a request of a generated claim), the claim is
// allocated from the driver and reserved for the pod, and the container starts with
// them and, if there is a way to look, sees exactly the devices of the claim.
// Afterwards the pod and its claim are gone.
//
// The node may be closed: the pod tolerates the cordon, the tool's taint, and the
// taints that the node has for workloads. An error is an *Error; its kind tells
// which link is broken.
func (r *Runner) Canary(ctx context.Context, node string, o CanaryOptions) (*CanaryResult, error) {
	if o.Count == 0 {
		o.Count = 1
	}
	target, err := r.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("node/%s: canary: %w", node, err)
	}
	j := &job{purpose: ForCanary, node: node, pod: r.canaryPod(target, o), wait: o.Wait, driver: o.Driver}
	j.until = func(v view) (string, error) { return j.served(v, o.Resource) }
	var result *CanaryResult
	err = r.run(ctx, j, func(ctx context.Context, v view, log string) error {
		found, err := r.verify(ctx, j, v, log, o)
		result = found
		return err
	})
	return result, err
}

// served waits until the pod has ended and the claim that served it was seen with
// its allocation.
func (j *job) served(v view, resource string) (string, error) {
	if v.pod != nil && v.pod.Spec.NodeName != "" && mapped(v.pod, resource) == nil {
		return "", j.failed(ServedByPlugin, fmt.Sprintf(
			"bound without a claim for %s, so the device plugin served it: the node still advertises the resource; %s", resource, podState(v)), nil)
	}
	reason, err := j.ended(v)
	if err != nil || reason != "" {
		return reason, err
	}
	if name, _, ok := heldClaim(v); !ok {
		return fmt.Sprintf("claim %s/%s to be seen with its allocation", j.pod.Namespace, name), nil
	}
	return "", nil
}

func podState(v view) string {
	_, what := stage(v)
	return "pod: " + what
}

// mapped are the requests of the claim that serve the canary's container and
// resource, by the pod's status (KEP-5004); nil if DRA does not serve it.
func mapped(p *corev1.Pod, resource string) []string {
	status := p.Status.ExtendedResourceClaimStatus
	if status == nil || status.ResourceClaimName == "" {
		return nil
	}
	var requests []string
	for _, m := range status.RequestMappings {
		if m.ContainerName == container && m.ResourceName == resource {
			requests = append(requests, m.RequestName)
		}
	}
	return requests
}

// heldClaim is the claim that the pod's status names, as it was while it held
// devices.
func heldClaim(v view) (string, *resourcev1.ResourceClaim, bool) {
	name := v.pod.Status.ExtendedResourceClaimStatus.ResourceClaimName
	held := v.claims[name].held
	return name, held, held != nil
}

// verify judges a canary that ended.
func (r *Runner) verify(ctx context.Context, j *job, v view, log string, o CanaryOptions) (*CanaryResult, error) {
	name, claim, _ := heldClaim(v)
	devices, err := j.allocated(v.pod, claim, o)
	if err != nil {
		return nil, err
	}
	if err := r.identify(ctx, j, devices); err != nil {
		return nil, err
	}
	looked := len(o.Look) > 0
	if looked {
		if err := j.sees(name, devices, v, log); err != nil {
			return nil, err
		}
	}
	if terminated(v.pod).ExitCode != 0 {
		e := j.failed(Failed, ending(v.pod), nil)
		e.Log = tail(log)
		return nil, e
	}
	return &CanaryResult{Pod: j.ref(), Claim: j.pod.Namespace + "/" + name, Devices: devices, Looked: looked}, nil
}

// sees compares what the container has listed with the devices of its claim.
func (j *job) sees(claim string, devices []CanaryDevice, v view, log string) error {
	want := make([]string, len(devices))
	for i, d := range devices {
		want[i] = d.Key
	}
	slices.Sort(want)
	got := ParseSMI(log)
	slices.Sort(got)
	if slices.Equal(want, got) {
		return nil
	}
	e := j.failed(DevicesDiffer, fmt.Sprintf("claim %s holds %s, and the container sees %s (%s)",
		claim, list(want), list(got), ending(v.pod)), nil)
	e.Want, e.Got, e.Log = want, got, tail(log)
	return e
}

// allocated are the devices of a canary's claim, without their UUIDs, if the claim
// is what the canary needs.
func (j *job) allocated(p *corev1.Pod, claim *resourcev1.ResourceClaim, o CanaryOptions) ([]CanaryDevice, error) {
	reserved := slices.ContainsFunc(claim.Status.ReservedFor, func(u resourcev1.ResourceClaimConsumerReference) bool {
		return u.APIGroup == corev1.GroupName && u.Resource == "pods" && u.UID == p.UID
	})
	if !reserved {
		return nil, j.failed(NotAllocated, fmt.Sprintf("claim %s is not reserved for the pod", claim.Name), nil)
	}
	requests := mapped(p, o.Resource)
	var out []CanaryDevice
	for _, d := range claim.Status.Allocation.Devices.Results {
		if !slices.Contains(requests, d.Request) {
			return nil, j.failed(NotAllocated, fmt.Sprintf("claim %s holds device %s for request %s, which the pod's status does not name",
				claim.Name, d.Device, d.Request), nil)
		}
		if d.Driver != o.Driver {
			return nil, j.failed(NotAllocated, fmt.Sprintf("claim %s holds device %s of driver %s, not of %s: another DeviceClass serves %s",
				claim.Name, d.Device, d.Driver, o.Driver, o.Resource), nil)
		}
		out = append(out, CanaryDevice{Driver: d.Driver, Pool: d.Pool, Name: d.Device})
	}
	if int64(len(out)) != o.Count {
		return nil, j.failed(NotAllocated, fmt.Sprintf("claim %s holds %s, not %d", claim.Name, devices(len(out)), o.Count), nil)
	}
	slices.SortFunc(out, func(a, b CanaryDevice) int {
		return strings.Compare(a.Pool+"/"+a.Name, b.Pool+"/"+b.Name)
	})
	return out, nil
}

func list(uuids []string) string {
	if len(uuids) == 0 {
		return "no device"
	}
	return strings.Join(uuids, ", ")
}

func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}
