package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// drm011: a check that could not see what it needs has not passed.
func drm011() Check {
	return Check{
		Code:       "DRM011",
		Title:      "Something that has to be seen could not be read",
		Operations: []string{Prepare, Migrate, Rollback, Unprepare},
		Mapping:    true,
		Run: func(in Input) []Finding {
			var out []Finding
			for _, u := range in.Snapshot.Unknown {
				f := Finding{
					Code:     "DRM011",
					Severity: Unknown,
					Object:   u.Part,
					Message:  fmt.Sprintf("%s could not be read (%s)", u.Part, u.Reason),
					Remedy:   "give the user that runs the tool the right to list " + u.Part,
				}
				if in.Snapshot.Source != nil {
					f.Remedy = "add to --from the output of `" + collect(u.Part) + "`, in a file " + u.Part + ".json"
				}
				var blind []string
				for _, c := range All() {
					if c.applies(in) && slices.Contains(c.Needs, u.Part) {
						blind = append(blind, c.Code)
					}
				}
				switch {
				case u.Part == cluster.PartIdentity:
					f.Message += ", so the cluster cannot be told from another"
					if in.Snapshot.Source == nil {
						f.Remedy = "give the user that runs the tool the right to get namespace kube-system"
					}
				case u.Part == cluster.PartJournals:
					f.Message += ", so what earlier runs have recorded is not known"
					if strings.HasPrefix(u.Reason, "configmap/") {
						f.Remedy = "repair the ConfigMap, or delete it: a rollback then goes by what the nodes record; what prepare has changed must be put back by hand if it is the shared one"
						break
					}
					if in.Snapshot.Source == nil {
						f.Remedy = "give the user that runs the tool the right to list configmaps in the tool's namespace"
					}
				case u.Part == cluster.PartNodes:
					f.Message += ", so the pool may have more nodes than these"
				case len(blind) > 0:
					f.Message += ", so " + strings.Join(blind, ", ") + " could not be checked"
				default:
					continue
				}
				out = append(out, f)
			}
			return out
		},
	}
}

// collect is the command that prints a part for --from. What it prints is put into a
// file of the part's name, because kubectl does not say of what an empty list is empty.
func collect(part string) string {
	switch part {
	case cluster.PartIdentity:
		return "kubectl get namespace kube-system -o json"
	case cluster.PartVersion:
		return "kubectl version -o json"
	case cluster.PartDaemonSets:
		return "kubectl get daemonsets -A -o json --show-managed-fields"
	case cluster.PartJournals:
		return "kubectl get configmaps -n NAMESPACE -o json"
	case cluster.PartNamespaces:
		return "kubectl get namespaces -o json"
	case cluster.PartDashboards:
		return "kubectl get configmaps -A -l " + cluster.DashboardLabel + " -o json"
	case cluster.PartResourceAPI:
		return "kubectl get --raw /apis/resource.k8s.io"
	case cluster.PartFeatures:
		return "kubectl get clusterrole " + cluster.SchedulerRole + " -o json"
	default:
		return "kubectl get " + part + " -A -o json"
	}
}
