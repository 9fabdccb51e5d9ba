package checks

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm003() Check {
	return Check{
		Code:        "DRM003",
		Title:       "A DaemonSet that has to be edited belongs to somebody else",
		Why:         "An owner (an operator, a Helm release, a GitOps controller, an add-on manager) puts its object back as it wants it, at a moment of its own choosing. Every pool would then get the plugin back at the same time.",
		Fix:         "Have the owner make the change, or use a switch that the owner offers; leave the pool on the plugin otherwise.",
		Sources:     []string{"NVIDIA/gpu-operator, controllers/object_controls.go", "Argo CD docs, \"Resource Tracking\"", "Flux docs, \"Kustomization\", \"HelmRelease\""},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			var out []Finding
			unseen, blind := in.Snapshot.IsUnknown(cluster.PartManagers)
			for _, p := range in.plugins() {
				switch {
				case p.Gate.Vendor: // it is not edited
				case blind && !p.Owner.Owned():
					out = append(out, Finding{
						Code:     "DRM003",
						Severity: Unknown,
						Object:   daemonSetObject(p.DaemonSet),
						Message:  "nothing says that somebody else owns it, but who wrote its fields could not be read (" + unseen + ")",
						Remedy:   withManagers,
					})
				case p.Owner.Owned():
					what := fmt.Sprintf("the %s belongs to %s (%s)", p.Role, p.Owner, p.Owner.Evidence)
					out = append(out, in.owned(p.DaemonSet, p.Owner, gate.Excluded(p.DaemonSet), what)...)
				}
			}
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				if d.Owner.Owned() {
					what := fmt.Sprintf("the DRA driver belongs to %s (%s)", d.Owner, d.Owner.Evidence)
					out = append(out, in.owned(d.DaemonSet, d.Owner, gate.Placed(d.DaemonSet), what)...)
				}
			}
			return out
		},
	}
}

const withManagers = "add the output of `kubectl get daemonsets -A -o json --show-managed-fields` to --from"

// owned judges a DaemonSet with an owner; done says that it is as prepare wants it.
func (in Input) owned(ds *appsv1.DaemonSet, owner gate.Owner, done bool, what string) []Finding {
	f := Finding{Code: "DRM003", Severity: Blocker, Object: daemonSetObject(ds)}
	unseen, blind := in.Snapshot.IsUnknown(cluster.PartManagers)
	switch {
	case done && blind:
		f.Severity = Unknown
		f.Message = what + "; whether its owner keeps it off switched nodes or this tool has edited it could not be read (" + unseen + ")"
		f.Remedy = withManagers
	case done && !gate.EditedHere(ds):
		return nil // its owner has made it so
	case done:
		f.Severity = Warning
		f.Message = what + " and was edited in place: its owner takes the edit back sooner or later, and lets it onto every node at once"
		f.Remedy = "have its owner make the same edit; until then watch `dramigrate status`, which shows when it is gone"
	case owner.Keeps():
		f.Message = what + ", which undoes an edit of its node affinity sooner or later"
		f.Remedy = "leave the pool on the plugin as long as " + owner.String() + " runs it, or move the workloads to a new pool"
		if in.Operation == Prepare {
			f.Severity = Warning
			f.Message += "; it is left alone, and the pools on which it runs cannot be moved in place"
		}
	case in.Operation == Prepare && in.EditOwned:
		f.Severity = Warning
		f.Message = what + ", which takes the edit of its node affinity back sooner or later, and lets it onto every node at once: it is edited all the same, because of --edit-owned"
	case in.Operation == Prepare && in.WaitForOwner:
		f.Severity = Info
		f.Message = what + ": prepare shows the edit and waits until it has arrived from there"
	case in.Operation == Prepare:
		f.Message = what + ", which undoes an edit of its node affinity sooner or later"
		f.Remedy = "take the edit that the plan shows to " + owner.String() + " and run prepare again (--wait-for-owner waits until it has arrived); --edit-owned edits the object itself, until its owner takes that back"
	case slices.Contains(in.reported, Prepare):
		return nil // what prepare does about it is told with the rest
	default:
		f.Message = what + " and is not as prepare wants it"
		f.Remedy = "run `dramigrate prepare`, which shows what its owner has to change"
	}
	return []Finding{f}
}
