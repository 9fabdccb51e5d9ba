package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm070() Check {
	return Check{
		Code:       "DRM070",
		Title:      "A namespace's pod-security level refuses the pods that have to run there",
		Why:        "Plugins, drivers and the tool's own probe mount folders of the host, which the levels baseline and restricted forbid. A DaemonSet's pods are then refused one by one, without a pod that would show it. A label that was put on later leaves running pods alone and refuses those that come next: on the node that is switched.",
		Fix:        "Label the namespace pod-security.kubernetes.io/enforce=privileged, or move the DaemonSet to one that has it.",
		Sources:    []string{"Kubernetes docs, \"Pod Security Standards\", host path volumes", "Talos docs, \"Pod Security\""},
		Operations: []string{Prepare, Migrate, Rollback, MigrateInto},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			users, now := in.newPods()
			if why, unread := in.Snapshot.IsUnknown(cluster.PartNamespaces); unread {
				if !in.Snapshot.Advice {
					return nil // nobody has asked for advice
				}
				return []Finding{{
					Code: "DRM070", Severity: Warning, Object: "namespaces",
					Message: fmt.Sprintf("whether their pod-security levels admit the pods that have to run could not be seen (%s)", why),
					Remedy:  "see `kubectl get namespaces -L " + enforceLabel + "`; the events of a DaemonSet tell as well, and the run stops when its pods do not come",
				}}
			}
			var out []Finding
			for i := range in.Snapshot.Namespaces {
				ns := &in.Snapshot.Namespaces[i]
				needs := users[ns.Name]
				if ns.Labels[gate.ManagedByLabel] == gate.ManagedBy || ns.Name == gate.DefaultNamespace {
					needs = append(needs, "the tool's helper pods")
					now[ns.Name] = now[ns.Name] || in.Operation != Prepare
				}
				if len(needs) == 0 {
					continue
				}
				f := Finding{
					Code: "DRM070", Object: "namespace/" + ns.Name,
					Remedy: fmt.Sprintf("`kubectl label namespace %s %s=privileged --overwrite`", ns.Name, enforceLabel),
				}
				switch level := ns.Labels[enforceLabel]; {
				case level == "baseline" || level == "restricted":
					if f.Severity = Warning; now[ns.Name] {
						f.Severity = Blocker
					}
					f.Message = fmt.Sprintf("label %s=%s refuses new pods of %s, which mount folders of the host", enforceLabel, level, few(needs))
				case level == "" && ns.Name != "kube-system" && in.talos():
					f.Severity = Warning
					f.Message = fmt.Sprintf("has no label %s, and Talos enforces baseline where there is none: it would refuse new pods of %s", enforceLabel, few(needs))
				default:
					continue
				}
				out = append(out, f)
			}
			return out
		},
	}
}

// newPods are the DaemonSets that get new pods by the operation or by what it prepares,
// by namespace, and the namespaces in which the operation itself waits for these.
func (in Input) newPods() (users map[string][]string, now map[string]bool) {
	users, now = map[string][]string{}, map[string]bool{}
	if in.Operation != Rollback {
		for _, d := range in.Inventory.DriversFor(in.Driver) {
			ns := d.DaemonSet.Namespace
			users[ns] = append(users[ns], daemonSetObject(d.DaemonSet))
			now[ns] = now[ns] || in.Operation == Migrate
		}
	}
	for _, p := range in.plugins() {
		ns := p.DaemonSet.Namespace
		switch {
		case in.Operation == Rollback, in.Operation == Prepare && in.rollsOver(p.DaemonSet):
			users[ns], now[ns] = append(users[ns], daemonSetObject(p.DaemonSet)), true
		}
	}
	return users, now
}

const enforceLabel = "pod-security.kubernetes.io/enforce"

// talos says that the operation's nodes run Talos, whose API server has baseline as the
// default of its admission configuration.
func (in Input) talos() bool {
	return slices.ContainsFunc(in.seen(), func(v cluster.NodeView) bool {
		return strings.HasPrefix(v.Node.Status.NodeInfo.OSImage, "Talos")
	})
}
