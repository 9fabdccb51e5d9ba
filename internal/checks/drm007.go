package checks

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm007() Check {
	return Check{
		Code:        "DRM007",
		Title:       "A DaemonSet or a static pod uses devices on the pool",
		Why:         "No drain moves a pod of a DaemonSet or a static pod, so its device stays in use while the other mechanism gives the same device to somebody else.",
		Fix:         "Keep the DaemonSet off the pool by its node affinity, or make it a Deployment; take the manifest of a static pod out of the kubelet's folder.",
		Sources:     []string{"k8s.io/kubectl/pkg/drain/filters.go, v0.37.2"},
		Unskippable: true,
		Operations:  []string{Migrate, Rollback, MigrateFrom, RollbackFrom},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			daemons := map[string][]string{} // DaemonSet → nodes
			var out []Finding
			for _, v := range in.targets() {
				for _, p := range in.holders(v) {
					switch {
					case p.Static:
						out = append(out, Finding{
							Code:     "DRM007",
							Severity: Blocker,
							Object:   podObject(&p),
							Message:  fmt.Sprintf("a static pod of node %s uses devices there; the API cannot remove it", v.Node.Name),
							Remedy:   "take its manifest out of the kubelet's folder on the node",
						})
					case p.Owner.Kind == "DaemonSet":
						add(daemons, "daemonset/"+p.Namespace+"/"+p.Owner.Name, v.Node.Name)
					}
				}
			}
			if in.Operation == Migrate {
				in.askingDaemonSets(daemons)
			}
			for _, object := range slices.Sorted(maps.Keys(daemons)) {
				out = append(out, Finding{
					Code:     "DRM007",
					Severity: Blocker,
					Object:   object,
					Message:  "its pods use devices on " + nodeList(daemons[object]) + ", and a drain leaves DaemonSet pods alone",
					Remedy:   "keep the DaemonSet off the pool, or make it a Deployment",
				})
			}
			return out
		},
	}
}

// askingDaemonSets adds the DaemonSets whose next pod would ask for the resource,
// whether or not one runs now.
func (in Input) askingDaemonSets(found map[string][]string) {
	for i := range in.Snapshot.DaemonSets {
		ds := &in.Snapshot.DaemonSets[i]
		template := cluster.ProjectPod(&corev1.Pod{Spec: ds.Spec.Template.Spec})
		if !slices.ContainsFunc(in.Resources, template.Asks) {
			continue
		}
		for _, v := range in.targets() {
			if lands, _ := gate.Lands(ds, in.Gate.With(v.Node, gate.DRA)); lands {
				add(found, daemonSetObject(ds), v.Node.Name)
			}
		}
	}
}

// add puts a value into the list of a key once.
func add(to map[string][]string, key, value string) {
	if !slices.Contains(to[key], value) {
		to[key] = append(to[key], value)
	}
}
