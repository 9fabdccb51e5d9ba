package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

const (
	// gateLabel keeps the plugin of these claims off a node.
	gateLabel = "truth.dramigrate.dev/gate"
	// still is how long nothing may happen after the controller has reported the new
	// generation. A rolling update deletes its first pod before it reports.
	still = 5 * time.Second
)

func daemonSetClaims() []claim {
	const source = "pkg/controller/daemon/daemon_controller.go, update.go"
	return []claim{
		{
			id: "K8a", place: fleet, holds: ">=1.34", source: source,
			says:  "A node label that the plugin's affinity excludes takes its pod from that node, and the label's removal brings it back, without a restart of a plugin pod elsewhere",
			prove: labelFlip,
		},
		{
			id: "K8b", place: fleet, holds: ">=1.34", source: source,
			says: "An edit of the affinity under RollingUpdate restarts the plugin's pod on every node that keeps it",
			prove: func(ctx context.Context, s *scene) error {
				return s.affinityEdit(ctx, appsv1.RollingUpdateDaemonSetStrategyType)
			},
		},
		{
			id: "K8c", place: fleet, holds: ">=1.34", source: source,
			says: "The same edit under OnDelete takes the pod from the excluded node and restarts none",
			prove: func(ctx context.Context, s *scene) error {
				return s.affinityEdit(ctx, appsv1.OnDeleteDaemonSetStrategyType)
			},
		},
	}
}

// gate is the affinity that keeps a DaemonSet off nodes with gateLabel.
func gate() *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: gateLabel, Operator: corev1.NodeSelectorOpDoesNotExist}},
		}}},
	}}
}

// pluginSet is a plugin of the claim's own on the nodes of the fleet.
func (s *scene) pluginSet(ctx context.Context, change func(*appsv1.DaemonSet)) (map[string]string, error) {
	for _, n := range fleet.nodes() {
		if err := errors.Join(s.label(ctx, n.Name, gateLabel, ""), s.label(ctx, n.Name, s.own("fleet"), on)); err != nil {
			return nil, err
		}
	}
	ds := manifests.PluginStatic().DaemonSet
	ds.Namespace = s.namespace
	ds.Spec.Template.Spec.NodeSelector = map[string]string{s.own("fleet"): on}
	change(ds)
	if _, err := s.Client().AppsV1().DaemonSets(s.namespace).Create(ctx, ds, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return s.runOn(ctx, len(fleet.nodes()))
}

// runOn waits until the plugin's pods are ready on that many nodes, and returns them by
// node.
func (s *scene) runOn(ctx context.Context, want int) (map[string]string, error) {
	var pods map[string]string
	err := eventually(ctx, patience, func() string {
		ds, err := s.set(ctx)
		if err != nil {
			return err.Error()
		}
		if pods, err = s.DaemonPods(ctx, s.namespace, ds.Name); err != nil {
			return err.Error()
		}
		if ds.Status.ObservedGeneration != ds.Generation || int(ds.Status.NumberReady) != want || len(pods) != want ||
			int(ds.Status.DesiredNumberScheduled) != want {
			return fmt.Sprintf("the plugin has %d pods, %d ready, and wants %d; want %d", len(pods), ds.Status.NumberReady,
				ds.Status.DesiredNumberScheduled, want)
		}
		return ""
	})
	return pods, err
}

func (s *scene) set(ctx context.Context) (*appsv1.DaemonSet, error) {
	return s.Client().AppsV1().DaemonSets(s.namespace).Get(ctx, manifests.PluginStatic().DaemonSet.Name, metav1.GetOptions{})
}

// end removes the plugin, so that another can come to the nodes.
func (s *scene) end(ctx context.Context) error {
	name := manifests.PluginStatic().DaemonSet.Name
	if err := s.Client().AppsV1().DaemonSets(s.namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, n := range fleet.nodes() {
		if err := s.daemonGone(ctx, n.Name, s.namespace, name); err != nil {
			return err
		}
	}
	return nil
}

// restarted are the nodes on which the pod is another than it was.
func restarted(before, now map[string]string) []string {
	var out []string
	for node, uid := range now {
		if before[node] != "" && before[node] != uid {
			out = append(out, node)
		}
	}
	slices.Sort(out)
	return out
}

// keeps wants no pod to be another than before, for a while.
func (s *scene) keeps(ctx context.Context, before map[string]string, on int) error {
	deadline := time.Now().Add(still)
	var changed []string
	err := eventually(ctx, patience, func() string {
		now, err := s.DaemonPods(ctx, s.namespace, manifests.PluginStatic().DaemonSet.Name)
		if err != nil {
			return err.Error()
		}
		changed = restarted(before, now)
		if len(changed) > 0 || len(now) != on {
			changed = append(changed, fmt.Sprintf("%d pods", len(now)))
			return ""
		}
		if time.Now().Before(deadline) {
			return "too early to say"
		}
		return ""
	})
	if err == nil && len(changed) > 0 {
		err = fmt.Errorf("want %d plugin pods, none restarted; restarted: %q", on, changed)
	}
	return err
}

func labelFlip(ctx context.Context, s *scene) error {
	before, err := s.pluginSet(ctx, func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Affinity = gate() })
	if err != nil {
		return err
	}
	for _, flip := range []struct {
		value string
		pods  int
	}{{on, len(before) - 1}, {"", len(before)}} {
		if err := s.label(ctx, s.node, gateLabel, flip.value); err != nil {
			return err
		}
		if _, err := s.runOn(ctx, flip.pods); err != nil {
			return err
		}
		delete(before, s.node) // its pod goes, and another comes
		if err := s.keeps(ctx, before, flip.pods); err != nil {
			return err
		}
	}
	return s.end(ctx)
}

func (s *scene) affinityEdit(ctx context.Context, strategy appsv1.DaemonSetUpdateStrategyType) error {
	before, err := s.pluginSet(ctx, func(ds *appsv1.DaemonSet) { ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: strategy} })
	if err != nil {
		return err
	}
	if err := s.label(ctx, s.node, gateLabel, on); err != nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		ds, err := s.set(ctx)
		if err != nil {
			return err
		}
		ds.Spec.Template.Spec.Affinity = gate()
		_, err = s.Client().AppsV1().DaemonSets(s.namespace).Update(ctx, ds, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	rest := len(before) - 1
	if strategy == appsv1.OnDeleteDaemonSetStrategyType {
		if _, err := s.runOn(ctx, rest); err != nil {
			return err
		}
		if err := s.keeps(ctx, before, rest); err != nil {
			return err
		}
		return s.end(ctx)
	}
	err = eventually(ctx, patience, func() string {
		now, err := s.DaemonPods(ctx, s.namespace, manifests.PluginStatic().DaemonSet.Name)
		if err != nil {
			return err.Error()
		}
		if again := restarted(before, now); len(now) != rest || len(again) != rest {
			return fmt.Sprintf("want the plugin restarted on %d nodes; got restarts on %q, %d pods", rest, again, len(now))
		}
		return ""
	})
	if err != nil {
		return err
	}
	s.saw("restarted on %d of %d other nodes", rest, rest)
	return s.end(ctx)
}
