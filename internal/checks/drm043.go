package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm043() Check {
	return Check{
		Code:       "DRM043",
		Title:      "The driver publishes slices that belong to no single node",
		Why:        "A node is judged by its own slices: complete when the driver came, gone when it left. Slices for all nodes, or for those of a selector, are never removed by a kubelet, and which of their devices a node has cannot be told.",
		Fix:        "Leave the pool on the plugin: this version moves devices that a driver publishes node by node.",
		Sources:    []string{"k8s.io/api/resource/v1, ResourceSliceSpec.NodeName, AllNodes, NodeSelector", "pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go, v1.37.2"},
		Operations: []string{Migrate, Rollback, MigrateInto, Verify},
		Needs:      []string{cluster.PartSlices},
		Run: func(in Input) []Finding {
			shared := in.Snapshot.SharedSlices(in.Driver)
			if len(shared) == 0 {
				return nil
			}
			f := Finding{
				Code: "DRM043", Severity: Warning, Object: "driver/" + in.Driver,
				Message: fmt.Sprintf("%d of its slices (%s, …) belong to no single node", len(shared), shared[0].Name),
				Remedy:  "see what they hold: `kubectl get resourceslice " + shared[0].Name + " -o yaml`; the run neither counts them nor waits for them",
			}
			if in.Operation == Migrate && len(in.publishing()) == 0 {
				f.Severity = Blocker
				f.Message += ", and none belongs to one: the run would wait in vain for those of the first node"
				f.Remedy = "leave the pool on the plugin"
			}
			return []Finding{f}
		},
	}
}
