package cli

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dramigrate/dramigrate/internal/access"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// review asks the server which of the rights the caller has, and puts the answers into
// the Snapshot, which nobody else has seen yet.
func (a *app) review(ctx context.Context, s *cluster.Snapshot, rights []cluster.Right) error {
	client, err := a.Client()
	if err != nil {
		return err
	}
	s.Access, err = cluster.ReviewAccess(ctx, client, rights)
	return err
}

// mayRun asks for the rights that running the plan needs, if it needs any.
func (a *app) mayRun(ctx context.Context, s *cluster.Snapshot, p *plan.Plan) (asked bool, err error) {
	needs, err := plan.Rights(p)
	if err != nil || len(needs) == 0 {
		return false, err
	}
	return true, a.reviewNeeds(ctx, s, needs)
}

func (a *app) reviewNeeds(ctx context.Context, s *cluster.Snapshot, needs []access.Need) error {
	var rights []cluster.Right
	for _, n := range needs {
		rights = append(append(rights, n.Right), n.Or...)
	}
	return a.review(ctx, s, rights)
}

// rightsOfAllRuns are the rights that any plan from the Snapshot may need, so that it
// says of the caller what the cluster would; but for those to the objects of driver
// manifests, which the Snapshot does not know.
func (a *app) rightsOfAllRuns(s *cluster.Snapshot) []cluster.Right {
	var out []cluster.Right
	for _, verb := range access.Running() {
		rules, err := access.Of(verb, a.namespace)
		if err != nil {
			continue // each of them has rules, as a test of access says
		}
		for _, n := range access.Needs(rules) {
			out = append(out, n.Right)
		}
	}
	inventory := gate.Detect(s)
	for _, ds := range daemonSets(inventory, a.resource, a.driver) {
		for _, verb := range []string{"get", "patch", "watch"} {
			out = append(out, cluster.Right{Verb: verb, Group: "apps", Resource: "daemonsets", Namespace: ds[0], Name: ds[1]})
		}
	}
	out = append(out, cluster.Right{Verb: "create", Group: "resource.k8s.io", Resource: "deviceclasses"})
	if journal := s.Journal(""); journal != nil && journal.Shared != nil {
		var made []*unstructured.Unstructured
		for _, c := range journal.Shared.Created {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.APIVersion, "kind": c.Kind}}
			u.SetNamespace(c.Namespace)
			u.SetName(c.Name)
			made = append(made, u)
		}
		for _, n := range access.Needs(access.ToRemove(made)) {
			out = append(out, n.Right)
		}
	}
	for _, namespace := range evictable(s, a.resource, a.driver) {
		out = append(out, cluster.Right{Verb: "create", Resource: "pods/eviction", Namespace: namespace})
	}
	return out
}

// daemonSets are namespace and name of those that prepare may edit.
func daemonSets(inventory gate.Inventory, resource, driver string) [][2]string {
	var out [][2]string
	for _, p := range inventory.PluginsFor(resource) {
		out = append(out, [2]string{p.DaemonSet.Namespace, p.DaemonSet.Name})
	}
	for _, d := range inventory.DriversFor(driver) {
		out = append(out, [2]string{d.DaemonSet.Namespace, d.DaemonSet.Name})
	}
	return out
}

// evictable are the namespaces of pods on nodes with devices, which a drain may evict.
func evictable(s *cluster.Snapshot, resource, driver string) []string {
	names := make([]string, len(s.Nodes))
	for i := range s.Nodes {
		names[i] = s.Nodes[i].Name
	}
	with := map[string]bool{}
	for name, view := range s.Views(names...) {
		with[name] = view.HasDevices(resource, driver)
	}
	var out []string
	for i := range s.Pods {
		if p := &s.Pods[i]; with[p.Node] && !p.Static && p.Owner.Kind != "DaemonSet" {
			out = append(out, p.Namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
