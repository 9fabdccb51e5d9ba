package checks

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm062() Check {
	return Check{
		Code:       "DRM062",
		Title:      "An edit of the DaemonSet reaches many nodes at a time",
		Why:        "Prepare edits the node affinity in the DaemonSet's template, and a rolling update then restarts its pod on every node that still matches. While a plugin's pod is away its node has no device to give; with maxSurge two pods of one plugin meet on a node, and the end of the old one takes the resource of the new one away. While a driver's pod is away no pod with its devices can start or end there. Pods that run keep their devices.",
		Fix:        "Set maxUnavailable to 1 before prepare: a change of the update strategy restarts nothing. Or use --plugin-rollout on-delete, which restarts no pod of the plugin.",
		Sources:    []string{"pkg/controller/daemon/update.go, v1.37.2", "kubernetes/kubernetes#121994", "kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm, values.yaml, kubeletPlugin.updateStrategy"},
		Operations: []string{Prepare},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Advises:    true,
		Run: func(in Input) []Finding {
			var out []Finding
			for _, p := range in.plugins() {
				if gate.Excluded(p.DaemonSet) || p.Owner.Owned() {
					continue
				}
				surge, many := rolling(p.DaemonSet, len(p.Nodes))
				f := Finding{Code: "DRM062", Object: daemonSetObject(p.DaemonSet), Remedy: oneByOne(p.DaemonSet) + ", or run prepare with --plugin-rollout on-delete"}
				switch {
				case surge > 0:
					f.Severity = Warning
					f.Message = fmt.Sprintf("its rolling update starts new pods beside the old ones on up to %d of %d nodes (maxSurge): two pods of one plugin, and the end of the old one takes the resource away again", surge, len(p.Nodes))
				case many > 1:
					f.Severity = Info
					f.Message = fmt.Sprintf("the edit takes the plugin from up to %d of its %d nodes at a time, and these have no device to give until it is back; pods that run keep theirs", many, len(p.Nodes))
				default:
					continue
				}
				out = append(out, f)
			}
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				if gate.Placed(d.DaemonSet) || d.Owner.Owned() {
					continue
				}
				if _, many := rolling(d.DaemonSet, len(d.Nodes)); many > 1 {
					out = append(out, Finding{
						Code: "DRM062", Severity: Info, Object: daemonSetObject(d.DaemonSet),
						Message: fmt.Sprintf("the edit restarts the driver on up to %d of its %d nodes at a time: no pod with its devices can start or end there until it is back", many, len(d.Nodes)),
						Remedy:  oneByOne(d.DaemonSet),
					})
				}
			}
			return out
		},
	}
}

// rolling says on how many of its nodes an edit of the template starts a second pod, and
// takes the only one away, at a time; zero if it restarts none by itself. The defaults
// are those of pkg/apis/apps/v1/defaults.go: none and one.
func rolling(ds *appsv1.DaemonSet, nodes int) (surge, unavailable int) {
	s := ds.Spec.UpdateStrategy
	if s.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return 0, 0
	}
	unavailable = 1
	if r := s.RollingUpdate; r != nil {
		surge = scaled(r.MaxSurge, nodes, 0)
		unavailable = scaled(r.MaxUnavailable, nodes, 1)
	}
	return min(surge, nodes), min(unavailable, nodes)
}

// scaled is a number, or a share of the nodes, rounded up as the controller does.
func scaled(v *intstr.IntOrString, nodes, unset int) int {
	if v == nil {
		return unset
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, nodes, true)
	if err != nil {
		return unset
	}
	return n
}

func oneByOne(ds *appsv1.DaemonSet) string {
	return fmt.Sprintf("`kubectl -n %s patch daemonset %s --type merge -p '"+`{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}`+"'`", ds.Namespace, ds.Name)
}
