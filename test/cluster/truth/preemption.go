package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// notHelpful is what the scheduler says when it does not even look for a victim.
const notHelpful = "Preemption is not helpful for scheduling"

func preemptionClaims() []claim {
	const source = "pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (UnschedulableAndUnresolvable); " +
		"pkg/scheduler/framework/preemption/preemption.go; kubernetes/website#54770; KEP-5690 is to change it"
	return []claim{
		{
			id: "K1.7a", place: both, holds: ">=1.34", source: source,
			says:  "On a node of the plugin a pod of higher priority preempts the one that holds the GPUs",
			prove: preempts,
		},
		{
			id: "K1.7b", place: switched, holds: ">=1.34", source: source, texts: []string{notHelpful},
			says:  "On a node of the driver a pod of higher priority preempts nobody: it stays pending, and the one that holds the GPUs runs on",
			prove: preemptsNot,
		},
	}
}

// contend has a pod hold all GPUs of the node, and another of higher priority ask for
// them.
func (s *scene) contend(ctx context.Context, isServed func(podIs) bool) error {
	_, err := s.Client().SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.own("high")}, Value: 1000000}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	all := s.gpus[s.node]
	if err := s.pod(ctx, "low", gpu, all); err != nil {
		return err
	}
	if _, err := s.becomes(ctx, "low", "running", isServed); err != nil {
		return err
	}
	return s.pod(ctx, "high", gpu, all, withPriority(s.own("high")))
}

func preempts(ctx context.Context, s *scene) error {
	if err := s.driverOff(ctx, s.node); err != nil {
		return err
	}
	if err := s.pluginOn(ctx, s.node); err != nil {
		return err
	}
	if err := s.contend(ctx, podIs.byPlugin); err != nil {
		return err
	}
	if err := s.event(ctx, "low", "Preempted", ""); err != nil {
		return err
	}
	if _, err := s.runsByPlugin(ctx, "high"); err != nil {
		return err
	}
	return s.remove(ctx, "high")
}

func preemptsNot(ctx context.Context, s *scene) error {
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	if err := s.contend(ctx, podIs.byDRA); err != nil {
		return err
	}
	// The scheduler writes both verdicts into one text, after it has tried to preempt.
	is, err := s.becomes(ctx, "high", "pending, …"+cannotAllocate+"…"+notHelpful+"…", func(is podIs) bool {
		return is.says(unschedulable, corev1.PodReasonUnschedulable, "1 "+cannotAllocate) &&
			is.says(unschedulable, corev1.PodReasonUnschedulable, notHelpful)
	})
	if err != nil {
		return err
	}
	s.saw("PodScheduled=False %s: %s", is.reason, is.message)
	if is, err = s.look(ctx, "low"); err != nil {
		return err
	}
	if !is.byDRA() {
		return fmt.Errorf("want the pod of lower priority to run on; got: %s", is)
	}
	if err := s.remove(ctx, "high"); err != nil {
		return err
	}
	return s.remove(ctx, "low")
}
