package engine

import (
	"context"
	"time"

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
	blind  blindSpots
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
	what, limit := h.answer(step, 0)
	l := lessening{clock: h.deps.Clock, limit: limit,
		probe: func(r helperpod.Reach, limit time.Duration) (*nodeprobe.NodeReport, error) {
			return h.runner.Probe(ctx, node.Name, helperpod.ProbeOptions{Wait: h.within(node.Name, step, what, limit), Reach: r})
		},
		less: func(at helperpod.Look, err error) {
			h.emit(event.Warned{Stamp: h.stamp(), Node: node.Name, Message: "no look at " + string(at) + ": " + err.Error()})
		},
	}
	return h.blind.look(node.Name, reach, l)
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
	what, limit := h.answer(step, i)
	return h.within(node, step, what, limit)
}

// answer is what a step's pod is waited for, and for how long.
func (h *podHelper) answer(step plan.StepID, i int) (what string, limit time.Duration) {
	if step == plan.StepMark || step == plan.StepSettle || step == plan.StepPluginOn || step == plan.StepOpen {
		// The step's own wait is for something else; the pod has its default.
		return "the helper pod to answer", helperpod.DefaultTimeout
	}
	return h.limit(step, i)
}

// within is a wait that is told of as it goes on.
func (h *podHelper) within(node string, step plan.StepID, what string, limit time.Duration) helperpod.Wait {
	since := h.deps.Clock.Now()
	return helperpod.Wait{Timeout: limit, Report: func(reason string) {
		h.emit(event.Waiting{Stamp: h.stamp(), Node: node, Step: step, For: what, Reason: reason, Since: since, Deadline: since.Add(limit)})
	}}
}
