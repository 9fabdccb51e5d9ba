package checks

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm092() Check {
	return Check{
		Code:       "DRM092",
		Title:      "Node Feature Discovery does not look after the pool's nodes",
		Why:        "The GPU Operator gives a node its labels by what Node Feature Discovery says of it. If that says for a moment that there is no GPU, the operator takes all its labels off the node and puts them back with their defaults: a plugin that had been switched off by its label is back. New nodes get no labels at all where Feature Discovery does not tolerate their taint.",
		Fix:        "Bring Node Feature Discovery into order before the move, with tolerations for the pool's taints, and look at `dramigrate status` after each of its restarts.",
		Sources:    []string{"NVIDIA/gpu-operator, controllers/state_manager.go", "NVIDIA/gpu-operator#2288", "NVIDIA/k8s-device-plugin#1934", "NVIDIA/gpu-operator#397"},
		Operations: []string{Migrate, MigrateInto},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Advises:    true,
		Run: func(in Input) []Finding {
			workers := in.daemonSets(nfdWorker)
			if len(workers) == 0 {
				return nil
			}
			target := map[string]bool{}
			strange := nodeGroups{}
			for _, v := range in.targets() {
				target[v.Node.Name] = true
				node := in.Gate.With(v.Node, gate.DRA)
				var why []string
				for _, ds := range workers {
					lands, reason := gate.Lands(ds, node)
					if lands {
						why = nil
						break
					}
					why = append(why, daemonSetObject(ds)+": "+reason)
				}
				if len(why) > 0 {
					strange.add("Node Feature Discovery does not come to it ("+strings.Join(why, "; ")+"): its labels are those of somebody else, and new nodes of its kind get none", v.Node.Name)
				}
			}
			out := strange.findings(in, Finding{Code: "DRM092", Severity: Warning, Remedy: "add the pool's taint to the tolerations of Node Feature Discovery's workers (chart value worker.tolerations)"})
			pods := in.daemonPods(workers...)
			var ill []string
			for _, ds := range workers {
				for _, p := range pods[ds] {
					if target[p.Node] && !p.Ready && !p.Terminating {
						ill = append(ill, "pod/"+p.Ref())
					}
				}
			}
			for i := range in.Snapshot.Pods {
				if p := &in.Snapshot.Pods[i]; p.Owner.Kind == "ReplicaSet" && !p.Finished() && !p.Ready && nfdImage(p.Images) {
					ill = append(ill, "pod/"+p.Ref())
				}
			}
			if len(ill) > 0 {
				slices.Sort(ill)
				out = append(out, Finding{
					Code: "DRM092", Severity: Warning, Object: ill[0],
					Message: fmt.Sprintf("Node Feature Discovery is not ready (%s): labels of nodes may go and come back with their defaults", few(ill)),
					Remedy:  "`kubectl get pods -A -o wide | grep node-feature-discovery`",
				})
			}
			return out
		},
	}
}

// nfdWorker recognises the DaemonSet that looks at nodes.
func nfdWorker(ds *appsv1.DaemonSet) bool { return nfdImage(imagesOf(ds)) }

// nfdImage knows upstream's image and that of OpenShift's operator.
func nfdImage(images []string) bool {
	return slices.ContainsFunc(images, func(image string) bool {
		repo, _ := splitImage(image)
		return strings.HasSuffix(repo, "/node-feature-discovery") || strings.HasSuffix(repo, "/ose-node-feature-discovery-rhel9") || strings.HasSuffix(repo, "/ose-node-feature-discovery")
	})
}
