package checks

import (
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm095() Check {
	return Check{
		Code:        "DRM095",
		Title:       "A pod holds a device by the plugin on a node that is on DRA",
		Why:         "The scheduler allocates from the slices and does not look at what the plugin has handed out: with a leftover pod of the plugin on the node, one that DRA serves may be given the same device. Pods that the drain leaves alone, of a DaemonSet or static, stay so; and a plugin that came back for a moment has given devices to new ones.",
		Fix:         "Close the node, end the pod, and let it start again: DRA serves it then.",
		Sources:     []string{"KEP-5004, \"Non-Goals\"", "pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, v1.37.2"},
		Unskippable: true,
		Operations:  []string{Migrate, Rollback, Verify},
		Needs:       []string{cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			var out []Finding
			for _, v := range in.seen() {
				if at, known := in.Gate.StateOf(v.Node.Labels); !known || at != gate.DRA || len(v.Slices) == 0 {
					continue
				}
				pods := v.PluginBackedPods(in.Resources)
				if len(pods) == 0 {
					continue
				}
				f := Finding{
					Code: "DRM095", Severity: Blocker, Object: "node/" + v.Node.Name,
					Remedy: fmt.Sprintf("`kubectl cordon %s`; end the pod (`kubectl -n %s delete pod %s`), and see by `dramigrate probe --node %s -o wide` whether its device is in two hands",
						v.Node.Name, pods[0].Namespace, pods[0].Name, v.Node.Name),
				}
				if in.Operation == Rollback || slices.ContainsFunc(v.Node.Spec.Taints, gate.IsSwitchingTaint) {
					// The way back ends the danger, and a node that a run has closed is looked
					// at before it is opened.
					f.Severity = Warning
				}
				var names []string
				for i := range pods {
					names = append(names, podObject(&pods[i]))
				}
				f.Message = fmt.Sprintf("is on DRA, and %s got its device by the plugin: the scheduler may give the same device to another pod", few(names))
				if len(names) > 1 {
					f.Message = fmt.Sprintf("is on DRA, and %s got their devices by the plugin: the scheduler may give the same devices to other pods", few(names))
				}
				out = append(out, f)
			}
			return out
		},
	}
}
