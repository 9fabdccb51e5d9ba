package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm051() Check {
	return Check{
		Code:        "DRM051",
		Title:       "A node of the new pool has a device plugin",
		Why:         "With a plugin on the new nodes nothing is won: the scheduler takes what is allocatable before it asks a DeviceClass, and with the driver beside it one device may be given away twice.",
		Fix:         "Make the new pool of nodes that bring no plugin.",
		Sources:     []string{"AKS docs, \"Skip GPU driver installation\"", "Bottlerocket, settings.kubelet-device-plugins", "pkg/scheduler/framework/plugins/noderesources/fit.go, v1.37.2"},
		Unskippable: true,
		Operations:  []string{MigrateInto},
		Needs:       []string{cluster.PartDaemonSets}, // which resources are the plugin's
		Run: func(in Input) []Finding {
			offered := nodeGroups{}
			for _, v := range in.seen() {
				for _, r := range in.Resources {
					if n, _ := v.Allocatable(r); n > 0 {
						offered.add(fmt.Sprintf("a device plugin offers %d of %s", n, r), v.Node.Name)
					}
				}
			}
			return offered.findings(in, Finding{
				Code: "DRM051", Severity: Blocker,
				Remedy: "make the new pool of nodes without a plugin: a plugin's DaemonSet is kept off by `dramigrate prepare` and the pool's label, one that is part of the node by the choice of another node image or GPU profile",
			})
		},
	}
}

// takers are the nodes of the other pool that take pods: not those that somebody else
// has cordoned.
func (in Input) takers() []cluster.NodeView {
	views := in.Snapshot.Views(in.Other.Nodes...)
	var out []cluster.NodeView
	for _, name := range in.Other.Nodes {
		if v, ok := views[name]; ok && !cluster.ForeignCordon(v.Node) {
			out = append(out, v)
		}
	}
	return out
}
