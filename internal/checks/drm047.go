package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm047() Check {
	return Check{
		Code:       "DRM047",
		Title:      "The mapping counts for every pool of the cluster at once",
		Why:        "A DeviceClass belongs to no pool. As soon as one carries the resource's name, the scheduler looks at every node that advertises none of the resource as one that DRA may serve, quota counts claims of the class as the resource, and pods that combine a claim with the resource no longer bind to nodes with the plugin. Pools with the plugin go on as before for all others, but for pods that ask for more than 32 devices, and for all if the class's selectors fail on a published device (DRM020, DRM014). The chart of NVIDIA's driver brings such a class since 25.12, so that installing it makes the mapping live.",
		Fix:        "See what the checks of workloads and quota say before the mapping goes live, or now if it is live.",
		Sources:    []string{"KEP-5004", "pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA, v1.37.2", "kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm, d7b7d1ec"},
		Operations: []string{Prepare, Migrate, MigrateInto},
		Advises:    true,
		Needs:      []string{cluster.PartClasses, cluster.PartPods},
		Run: func(in Input) []Finding {
			class, _ := in.Snapshot.ClassFor(in.Resource)
			if class == nil && in.NewClass == "" {
				return nil
			}
			plugin := 0
			for i := range in.Snapshot.Nodes {
				n := &in.Snapshot.Nodes[i]
				if state, _ := in.Gate.StateOf(n.Labels); state == gate.DRA {
					if class != nil {
						return nil // it is in use, as it was meant to be
					}
					continue
				}
				if count, _ := (cluster.NodeView{Node: n}).Allocatable(in.Resource); count > 0 {
					plugin++
				}
			}
			pods := 0
			for i := range in.Snapshot.Pods {
				if p := &in.Snapshot.Pods[i]; !p.Finished() && p.Asks(in.Resource) {
					pods++
				}
			}
			if plugin+pods == 0 {
				return nil // it reaches nobody
			}
			reach := fmt.Sprintf("every pool: %s with the plugin and %s for %s", words.Count(plugin, "node"), words.Plural(pods, "pod that asks", "pods that ask"), in.Resource)
			if class != nil {
				return []Finding{{
					Code: "DRM047", Severity: Info, Object: "deviceclass/" + class.Name,
					Message: fmt.Sprintf("the mapping is live (%s) although no node has been switched, for %s", origin(class), reach),
					Remedy:  "what DRM006 and the checks of quota warn of holds already; a node whose plugin is down for a moment is now one that DRA may serve",
				}}
			}
			return []Finding{{
				Code: "DRM047", Severity: Info, Object: "deviceclass/" + in.NewClass,
				Message: fmt.Sprintf("the run makes it when its first node publishes devices, and from then on it counts for %s", reach),
				Remedy:  "see DRM006 and the checks of quota; the class stays when the pool is rolled back, and goes with unprepare",
			}}
		},
	}
}
