package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm003() Check {
	return Check{
		Code:       "DRM003",
		Title:      "A DaemonSet that has to be edited belongs to somebody else",
		Why:        "An owner (an operator, a Helm release, a GitOps controller, an add-on manager) puts its object back as it wants it, at a moment of its own choosing. Every pool would then get the plugin back at the same time.",
		Fix:        "Have the owner make the change, or use a switch that the owner offers; leave the pool on the plugin otherwise.",
		Sources:    []string{"NVIDIA/gpu-operator, controllers/object_controls.go", "Argo CD docs, \"Resource Tracking\"", "Flux docs, \"Kustomization\", \"HelmRelease\""},
		Operations: []string{Prepare, Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			var out []Finding
			unseen, blind := in.Snapshot.IsUnknown(cluster.PartManagers)
			for _, p := range in.plugins() {
				if blind && !p.Owner.Owned() {
					out = append(out, Finding{
						Code:     "DRM003",
						Severity: Unknown,
						Object:   daemonSetObject(p.DaemonSet),
						Message:  "nothing says that somebody else owns it, but who wrote its fields could not be read (" + unseen + ")",
						Remedy:   "add the output of `kubectl get daemonsets -A -o json --show-managed-fields` to --from",
					})
				}
				if p.Owner.Owned() {
					out = append(out, Finding{
						Code:     "DRM003",
						Severity: Blocker,
						Object:   daemonSetObject(p.DaemonSet),
						Message: fmt.Sprintf("the %s belongs to %s (%s), which undoes an edit of its node affinity sooner or later",
							p.Role, p.Owner, p.Owner.Evidence),
						Remedy: "this version moves only plugins that nobody owns: " + without(p.Owner),
					})
				}
			}
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				if d.Owner.Owned() && !gate.Placed(d.DaemonSet) {
					out = append(out, Finding{
						Code:     "DRM003",
						Severity: Blocker,
						Object:   daemonSetObject(d.DaemonSet),
						Message: fmt.Sprintf("the DRA driver belongs to %s (%s) and is not kept to nodes with %s=%s",
							d.Owner, d.Owner.Evidence, gate.AllocationLabel, gate.ValueDRA),
						Remedy: fmt.Sprintf("have its owner set the node selector %s: %s on the driver's DaemonSet", gate.AllocationLabel, gate.ValueDRA),
					})
				}
			}
			return out
		},
	}
}

// without says how to have a plugin that the owner does not own. Nobody can take a
// DaemonSet over from what makes it anew as soon as it is gone.
func without(o gate.Owner) string {
	switch o.Kind {
	case gate.Operator, gate.AddonManager, gate.EKSAddon:
		return "leave the pool on the plugin as long as " + o.String() + " runs it"
	default:
		return "take the DaemonSet over from its owner"
	}
}
