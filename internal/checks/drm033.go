package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm033() Check {
	return Check{
		Code:       "DRM033",
		Title:      "The kubelets of a pool are of different versions",
		Why:        "Mostly it means that somebody is upgrading the pool's nodes at this moment. Who replaces or reboots nodes drains them too, waits for the same budgets, and takes the marks of a run away with the node.",
		Fix:        "Let the upgrade of the pool end before its move, or hold the upgrade meanwhile.",
		Sources:    []string{"Kubernetes, \"Version Skew Policy\""},
		Operations: []string{Migrate, Rollback, MigrateInto},
		Advises:    true,
		Run: func(in Input) []Finding {
			versions := map[string]string{}
			var names []string
			for _, v := range in.seen() {
				versions[v.Node.Name] = v.Node.Status.NodeInfo.KubeletVersion
				names = append(names, v.Node.Name)
			}
			if in.Pool.Name != "" {
				return append(severalReleases(names, versions, "pool/"+in.Pool.Name, in.Pool.Selector), in.unversioned(names, versions)...)
			}
			// Without a pool it is asked of each, and of the nodes that no label puts into one.
			out := in.unversioned(names, versions)
			pooled := map[string]bool{}
			for _, p := range cluster.Pools(in.Snapshot.Nodes) {
				var here []string
				for _, n := range p.Nodes {
					if _, seen := versions[n]; seen {
						here = append(here, n)
						pooled[n] = true
					}
				}
				out = append(out, severalReleases(here, versions, "pool/"+p.Name, p.Selector)...)
			}
			names = slices.DeleteFunc(names, func(n string) bool { return pooled[n] })
			return append(out, severalReleases(names, versions, allNodes, "")...)
		},
	}
}

// unversioned is about nodes whose kubelets do not say their version, where DRM002 is not
// asked.
func (in Input) unversioned(names []string, versions map[string]string) []Finding {
	silent := nodeGroups{}
	for _, name := range names {
		if _, err := version.ParseGeneric(versions[name]); err != nil && !in.runs("DRM002") {
			silent.add(fmt.Sprintf("kubelet version %q cannot be read: whether it is being upgraded cannot be known", versions[name]), name)
		}
	}
	return silent.findings(in, Finding{Code: "DRM033", Severity: Info, Remedy: "see `kubectl get nodes -o wide`"})
}

// severalReleases is about nodes that ought to have kubelets of one minor release;
// versions are those of the kubelets by node.
func severalReleases(names []string, versions map[string]string, object, selector string) []Finding {
	nodes := map[string][]string{} // minor release → nodes
	for _, name := range names {
		if parsed, err := version.ParseGeneric(versions[name]); err == nil {
			minor := fmt.Sprintf("%d.%d", parsed.Major(), parsed.Minor())
			nodes[minor] = append(nodes[minor], name)
		}
	}
	if len(nodes) < 2 {
		return nil
	}
	var found []string
	for _, minor := range slices.Sorted(maps.Keys(nodes)) {
		found = append(found, fmt.Sprintf("%s on %s", minor, nodeList(nodes[minor])))
	}
	whose, show := "its kubelets", "`kubectl get nodes -l "+words.Quoted(selector)+"`"
	if object == allNodes {
		whose, show = "the kubelets of nodes that no label puts into a pool", "`kubectl get nodes`"
	}
	return []Finding{{
		Code: "DRM033", Severity: Warning, Object: object,
		Message: whose + " are of several releases: " + strings.Join(found, "; "),
		Remedy:  "let the upgrade of the pool end first, if there is one; " + show + " shows the versions",
	}}
}
