package engine

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/helperpod"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/vendor"
)

// helper runs short pods on a node. Each call removes its pod again.
type helper interface {
	// Sweep removes the pods that killed runs have left for the node.
	Sweep(ctx context.Context, node string) error
	// Pull proves that the helper's image runs there.
	Pull(ctx context.Context, node string) error
	// Probe asks the kubelet what it advertises and who holds what, and looks at the GPUs
	// and at what kubelet and driver have on record. It makes the PodResources List call,
	// which clears what the kubelet remembers of ended pods.
	Probe(ctx context.Context, node *corev1.Node, step plan.StepID) (*nodeprobe.NodeReport, error)
	// Canary asks for the resource as a workload does and checks what it is given.
	// unseen says what of that it could not look at; empty if it saw all.
	Canary(ctx context.Context, node string) (unseen string, err error)
}

// podHelper runs the plan's helper pods and turns what they wait for into events.
type podHelper struct {
	*poolRun
	runner *helperpod.Runner
}

func (r *poolRun) newHelper() helper {
	s := r.plan.Settings
	return &podHelper{poolRun: r, runner: helperpod.New(r.client, r.deps.Clock, helperpod.Config{
		Namespace: r.deps.Namespace, Run: r.id, Image: s.HelperImage, PullSecret: s.PullSecret,
	})}
}

func (h *podHelper) Sweep(ctx context.Context, node string) error {
	return h.runner.Sweep(ctx, node)
}

func (h *podHelper) Pull(ctx context.Context, node string) error {
	return h.runner.Pull(ctx, node, h.plan.Settings.HelperImage, helperpod.PullOptions{Wait: h.wait(node, plan.StepMark, 0)})
}

func (h *podHelper) Probe(ctx context.Context, node *corev1.Node, step plan.StepID) (*nodeprobe.NodeReport, error) {
	s := h.plan.Settings
	reach := helperpod.Reach{
		GPUs: true, RuntimeClass: s.RuntimeClass, DriverRoot: s.DriverRoot,
		Checkpoints: true, ClaimState: cluster.KeepsClaimState(node),
	}
	return lookLess(reach,
		func(r helperpod.Reach) (*nodeprobe.NodeReport, error) {
			return h.runner.Probe(ctx, node.Name, helperpod.ProbeOptions{Wait: h.wait(node.Name, step, 0), Reach: r})
		},
		func(at string, err error) {
			h.emit(event.Warned{Stamp: h.stamp(), Node: node.Name, Message: "no look at " + at + ": " + err.Error()})
		})
}

// lookLess probes with a reach, and with less of it as long as the pod does not start: a
// runtime that cannot hand out the GPUs is no reason to stop, nor is a folder that the
// node does not have. Whatever else can be seen is.
func lookLess(r helperpod.Reach, probe func(helperpod.Reach) (*nodeprobe.NodeReport, error), less func(at string, err error)) (*nodeprobe.NodeReport, error) {
	for {
		report, err := probe(r)
		switch kind := helperpod.KindOf(err); {
		case r.Checkpoints && (kind == helperpod.NotMounted || kind == helperpod.NotStarted && !r.GPUs):
			less("what kubelet and driver have on record", err)
			r.Checkpoints, r.ClaimState = false, false
		case r.GPUs && (kind == helperpod.NotStarted || kind == helperpod.NotMounted):
			less("the GPUs", err)
			r.GPUs, r.RuntimeClass, r.DriverRoot = false, "", ""
		default:
			return report, err
		}
	}
}

func (h *podHelper) Canary(ctx context.Context, node string) (string, error) {
	v, _ := vendor.OfDriver(h.plan.Driver.Name)
	result, err := h.runner.Canary(ctx, node, helperpod.CanaryOptions{
		Wait:     h.wait(node, plan.StepCanary, 0),
		Resource: h.plan.Resource, Driver: h.plan.Driver.Name, Image: h.plan.Settings.HelperImage, Look: v.Look,
	})
	if err != nil || result.Looked {
		return "", err
	}
	return result.Unseen(), nil
}

// wait bounds a pod by the plan's deadline for the step, and reports why it still
// waits.
func (h *podHelper) wait(node string, step plan.StepID, i int) helperpod.Wait {
	what, limit := h.limit(step, i)
	if step == plan.StepMark || step == plan.StepSettle || step == plan.StepPluginOn || step == plan.StepOpen {
		// The step's own wait is for something else; the pod has its default.
		what, limit = "the helper pod to answer", helperpod.DefaultTimeout
	}
	since := h.deps.Clock.Now()
	return helperpod.Wait{Timeout: limit, Report: func(reason string) {
		h.emit(event.Waiting{Stamp: h.stamp(), Node: node, Step: step, For: what, Reason: reason, Since: since, Deadline: since.Add(limit)})
	}}
}
