package checks

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm121() Check {
	return Check{
		Code:       "DRM121",
		Title:      "Pods are on their way out already, or cannot end",
		Why:        "The drain waits for pods that are Terminating: their devices are in use until the kubelet says that they have ended. A kubelet that cannot reach the driver keeps a pod with a claim Terminating for ever. Deleting it by force removes the object alone: the device is given to the next pod while the last one still has it.",
		Fix:        "Bring back what the pod waits for, the driver or the node. Never delete a pod with a device by force; this tool does not.",
		Sources:    []string{"kubernetes/kubernetes#129402, #139772, #141471", "kubernetes-sigs/cluster-api#10706", "pkg/kubelet/cm/dra/manager.go, v1.37.2"},
		Advises:    true,
		Operations: []string{Migrate, Rollback, MigrateFrom, RollbackFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims, cluster.PartDaemonSets},
		Run: func(in Input) []Finding {
			silent, driverless, refused, others := ownerGroups{}, ownerGroups{}, ownerGroups{}, ownerGroups{}
			for _, v := range in.targets() {
				ready, _ := nodeReady(v.Node)
				claiming := map[string]bool{}
				for _, c := range v.ClaimsOf(in.drivers()...) {
					for _, user := range c.Users {
						claiming[c.Namespace+"/"+user] = true
					}
				}
				for _, p := range in.holders(v) {
					says := p.Message + " " + p.WaitingMessage
					switch {
					case !p.Terminating:
					case ready != corev1.ConditionTrue:
						silent.add(&p, "is Terminating on a node whose kubelet does not report: nobody knows whether it still uses its devices")
					case strings.Contains(says, "ResourceClaim not created yet"):
						refused.add(&p, `is Terminating and says "ResourceClaim not created yet": the kubelet does not get past its claims (kubernetes/kubernetes#139772)`)
					case claiming[p.Ref()] && !in.driverOn(v):
						driverless.add(&p, fmt.Sprintf("is Terminating with a claim, and no pod of driver %s is ready on its node to release it", in.Driver))
					default:
						others.add(&p, "is Terminating already; the drain waits until it is gone")
					}
				}
			}
			with := func(remedy string) Finding {
				return Finding{Code: "DRM121", Severity: Warning, Remedy: remedy + "; do not delete it by force: its device may be given to two pods"}
			}
			return slices.Concat(
				silent.findings(with("bring the node back, or delete the Node object once the machine is off")),
				driverless.findings(with("bring the driver's pod back on the node")),
				refused.findings(with("see that all drivers of its claim run on the node, and upgrade its kubelet")),
				others.findings(with("look again in a minute, and see `kubectl describe pod` if it is still there")))
		},
	}
}

// driverOn says that a pod of the driver is ready on the node.
func (in Input) driverOn(v cluster.NodeView) bool {
	for _, d := range in.Inventory.DriversFor(in.Driver) {
		if slices.ContainsFunc(v.Pods, func(p cluster.Pod) bool {
			return p.Ready && p.Owner.Kind == "DaemonSet" && p.Namespace == d.DaemonSet.Namespace && p.Owner.Name == d.DaemonSet.Name
		}) {
			return true
		}
	}
	return false
}
