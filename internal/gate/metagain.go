package gate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// settledMargin is for how long after a node has settled its capacity may still tell of
// the plugin that left before: the kubelet's grace of 5 minutes
// (pkg/kubelet/cm/devicemanager/types.go, v1.37.2), and a minute for its next status.
const settledMargin = 6 * time.Minute

// MetAgain says by what is seen that a node's kubelet has met the plugin again since the
// node had settled, so that it remembers it anew; empty if nothing is seen. A plugin that
// came and left more than its grace ago leaves nothing to be seen by.
func (i Inventory) MetAgain(v cluster.NodeView, resource string, settled time.Time) string {
	for _, d := range i.PluginsFor(resource) {
		at := slices.IndexFunc(v.Pods, func(p cluster.Pod) bool {
			return p.Owner.Kind == "DaemonSet" && p.Namespace == d.DaemonSet.Namespace && p.Owner.Name == d.DaemonSet.Name && p.Created.After(settled)
		})
		if at >= 0 {
			return fmt.Sprintf("pod %s of the plugin has come since", v.Pods[at].Ref())
		}
	}
	told := lastStatus(v.Node)
	for _, r := range i.ResourcesWith(resource) {
		if n, _ := v.Allocatable(r); n > 0 {
			return fmt.Sprintf("allocatable %s is %d", r, n)
		}
		if n, _ := v.Capacity(r); n > 0 && told.After(settled.Add(settledMargin)) {
			return fmt.Sprintf("capacity %s is %d: a plugin has left it a few minutes ago", r, n)
		}
	}
	return ""
}

// lastStatus is when the kubelet told its status last.
func lastStatus(node *corev1.Node) time.Time {
	if c := cluster.ReadyCondition(node); c != nil {
		return c.LastHeartbeatTime.Time
	}
	return time.Time{}
}
