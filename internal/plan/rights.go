package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/access"
	"github.com/dramigrate/dramigrate/internal/cluster"
)

// VerbOf is the verb that runs a plan of the operation.
func VerbOf(op Operation) string {
	return map[Operation]string{
		Prepare: access.Prepare, Migrate: access.Apply, Rollback: access.Rollback, Unprepare: access.Unprepare,
		verify: access.Verify,
	}[op]
}

// Rights are what the run of a plan needs: of its verb what is needed in every case,
// and what follows from the plan's own changes and evictions. A plan that changes
// nothing needs none.
func Rights(p *Plan) ([]access.Need, error) {
	if !p.Pending() {
		return nil, nil
	}
	rules, err := access.Of(VerbOf(p.Operation), p.Namespace)
	if err != nil {
		return nil, err
	}
	out := access.Needs(rules)
	add := func(right cluster.Right) {
		out = append(out, access.Need{Right: right, Why: reasonOf(rules, right)})
	}
	var namespaces []string
	for _, e := range p.Evictions {
		namespace, _, _ := strings.Cut(e.Pod, "/")
		namespaces = append(namespaces, namespace)
	}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		add(cluster.Right{Verb: "create", Resource: "pods/eviction", Namespace: namespace})
	}
	if p.Operation == Migrate && p.Class != nil && p.Class.Action == Create {
		add(cluster.Right{Verb: "create", Group: "resource.k8s.io", Resource: "deviceclasses"})
	}
	var install, remove []*unstructured.Unstructured
	for _, s := range p.Shared {
		for _, c := range s.Changes {
			switch c.Verb {
			case "patch":
				for _, verb := range []string{"get", "patch", "watch"} {
					add(cluster.Right{Verb: verb, Group: "apps", Resource: "daemonsets", Namespace: c.Object.Namespace, Name: c.Object.Name})
				}
			case "apply":
				u := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(c.Body), &u.Object); err != nil {
					return nil, fmt.Errorf("%s %s: %w", c.Object.Kind, objectName(c.Object), err)
				}
				install = append(install, u)
			case "delete":
				u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.Object.APIVersion, "kind": c.Object.Kind}}
				u.SetNamespace(c.Object.Namespace)
				u.SetName(c.Object.Name)
				remove = append(remove, u)
			}
		}
	}
	installs, err := access.ToInstall(install)
	if err != nil {
		return nil, err
	}
	for _, n := range access.Needs(installs) {
		n.Manifests = true
		out = append(out, n)
	}
	return append(out, access.Needs(access.ToRemove(remove))...), nil
}

// reasonOf is why the verb needs a right that only the plan makes precise.
func reasonOf(rules []access.Rule, right cluster.Right) string {
	for _, r := range rules {
		if r.When != "" && r.Group == right.Group && r.Resource == right.Resource && slices.Contains(r.Verbs, right.Verb) {
			return r.Why
		}
	}
	return ""
}
