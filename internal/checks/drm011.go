package checks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm011() Check {
	return Check{
		Code:        "DRM011",
		Title:       "Something that has to be seen could not be read",
		Why:         "A check that could not see what it needs has not passed. What could not be read is reported as unknown, and a run does not begin on it.",
		Fix:         "Give the user that runs the tool the right to read it, or add it to the files of --from.",
		Sources:     []string{"the rule of this tool that nothing unknown is reported as fine"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate, Rollback, Unprepare, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto, Verify},
		Mapping:     true,
		Run: func(in Input) []Finding {
			var out []Finding
			var missing, unadvised []string
			for _, u := range in.Snapshot.Unknown {
				f := Finding{
					Code:     "DRM011",
					Severity: Unknown,
					Object:   u.Part,
					Message:  fmt.Sprintf("%s could not be read (%s)", u.Part, u.Reason),
					Remedy:   "give the user that runs the tool the right to list " + listed(u.Part),
				}
				if in.Snapshot.Source != nil {
					f.Remedy = "add to --from the output of " + in.collected(u.Part)
				}
				blind, advice := in.blindWithout(u.Part)
				switch {
				case u.Part == cluster.PartIdentity:
					f.Message += ", so the cluster cannot be told from another"
					if in.Snapshot.Source == nil {
						f.Remedy = "give the user that runs the tool the right to get namespace kube-system"
					}
				case u.Part == cluster.PartJournals:
					f.Message += ", so what earlier runs have recorded is not known"
					if len(blind) > 0 {
						f.Message += ", and " + strings.Join(blind, ", ") + " could not be checked"
					}
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
				case len(advice) > 0:
					missing, unadvised = append(missing, u.Part), append(unadvised, advice...)
					continue
				default:
					continue
				}
				out = append(out, f)
			}
			return append(out, in.unadvised(missing, unadvised)...)
		},
	}
}

// blindWithout are the checks of this run that cannot answer without a part: those
// that may stop it, or all, and those that only advise.
func (in Input) blindWithout(part string) (blind, advice []string) {
	stops := false
	for _, c := range All() {
		if in.reports(c) && slices.Contains(c.Needs, part) {
			blind = append(blind, c.Code)
			stops = stops || !c.Advises
		}
	}
	if !stops {
		return nil, blind
	}
	return blind, nil
}

// reports says that the report is with the check: what is lacking for one of its
// operations is said once.
func (in Input) reports(c Check) bool {
	return c.applies(in) || slices.ContainsFunc(in.reported, func(operation string) bool {
		other := in
		other.Operation = operation
		return c.applies(other)
	})
}

// unadvised is one warning for all parts that only advice was to come from: a run is
// not held up by what would not have held it up, but nobody takes it for fine.
func (in Input) unadvised(parts, codes []string) []Finding {
	if len(parts) == 0 {
		return nil
	}
	slices.Sort(codes)
	var kinds []string
	for _, part := range parts {
		if kind := listed(part); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	f := Finding{
		Code:     "DRM011",
		Severity: Warning,
		Object:   parts[0],
		Message: fmt.Sprintf("%s could not be read, so %s could not be checked: they would warn, not stop the run",
			strings.Join(parts, ", "), strings.Join(slices.Compact(codes), ", ")),
		Remedy: "give the user that runs the tool the right to list " + strings.Join(kinds, ", "),
	}
	if in.Snapshot.Source != nil {
		var outputs []string
		for _, part := range parts {
			outputs = append(outputs, in.collected(part))
		}
		f.Remedy = "add to --from the output of " + strings.Join(outputs, "; of ")
	}
	return []Finding{f}
}

// listed is the kind of object that a part is made of, as a role names it.
func listed(part string) string {
	switch part {
	case cluster.PartDashboards:
		return "configmaps"
	case cluster.PartNamespaces:
		return "namespaces"
	default:
		return part
	}
}

// collected says what to put into which file of --from for a part.
func (in Input) collected(part string) string {
	return "`" + collect(part, in.Namespace) + "`, in a file " + part + ".json"
}

// collect is the command that prints a part for --from; namespace is the tool's. What it prints is put into a
// file of the part's name, because kubectl does not say of what an empty list is empty.
func collect(part, namespace string) string {
	switch part {
	case cluster.PartIdentity:
		return "kubectl get namespace kube-system -o json"
	case cluster.PartVersion:
		return "kubectl version -o json"
	case cluster.PartDaemonSets:
		return "kubectl get daemonsets -A -o json --show-managed-fields"
	case cluster.PartJournals:
		return "kubectl get configmaps -n " + cmp.Or(namespace, "NAMESPACE") + " -o json"
	case cluster.PartLocks:
		return "kubectl get leases -n " + cmp.Or(namespace, "NAMESPACE") + " -o json"
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
