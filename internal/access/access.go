// Package access says which rights each verb needs and why. It is data: RBAC rules for
// the printer of roles, single rights for the review before a run.
//
// The table follows the requests that the code sends. Whoever adds a request adds its
// rule here; the end-to-end test runs every verb with its role and nothing else.
package access

import (
	"cmp"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// Rule is a set of rights with one reason.
type Rule struct {
	Group string `json:"group"`
	// Resource is the plural, with a subresource behind a slash; empty for Paths.
	Resource string   `json:"resource,omitempty"`
	Verbs    []string `json:"verbs"`
	// Names are the only objects that are meant; none are all.
	Names []string `json:"names,omitempty"`
	// Paths are URLs that are no resources.
	Paths []string `json:"paths,omitempty"`
	// Namespace is where; empty is cluster-wide.
	Namespace string `json:"namespace,omitempty"`
	// Why it is needed, one sentence.
	Why string `json:"why"`
	// When says in which case a run needs it, if not in every one. The plan then tells
	// whether, and in which namespaces: a Role in each of them does as well.
	When string `json:"when,omitempty"`
	// Without is what happens without it, if the verb works all the same.
	Without string `json:"without,omitempty"`
	// Withheld is true for an optional right that discloses more than the tool looks at,
	// so that the printed role leaves it to the reader to add.
	Withheld bool `json:"withheld,omitempty"`
	// Or are rights any of which does in place of the rule's.
	Or []cluster.Right `json:"-"`
}

// Optional says that the verb works without it.
func (r Rule) Optional() bool { return r.Without != "" }

// Rights are the rule's rights one by one.
func (r Rule) Rights() []cluster.Right {
	var out []cluster.Right
	for _, verb := range r.Verbs {
		for _, path := range r.Paths {
			out = append(out, cluster.Right{Verb: verb, Path: path})
		}
		if r.Resource == "" {
			continue
		}
		right := cluster.Right{Verb: verb, Group: r.Group, Resource: r.Resource, Namespace: r.Namespace}
		if len(r.Names) == 0 {
			out = append(out, right)
		}
		for _, name := range r.Names {
			right.Name = name
			out = append(out, right)
		}
	}
	return out
}

// Need is one right that a plan needs.
type Need struct {
	cluster.Right
	// Or are rights any of which does as well.
	Or  []cluster.Right
	Why string
	// Manifests is true if it follows from the driver's manifests.
	Manifests bool
}

// Needs are the rules' rights that a run needs in every case.
func Needs(rules []Rule) []Need {
	var out []Need
	for _, r := range rules {
		if r.Optional() || r.When != "" {
			continue
		}
		for _, right := range r.Rights() {
			out = append(out, Need{Right: right, Or: r.Or, Why: r.Why})
		}
	}
	return out
}

// Merge joins rules of several verbs: what they need of one resource, in one place, for
// one reason is one rule, and what one of them needs in every case is needed.
func Merge(rules []Rule) []Rule {
	type place struct{ group, resource, names, paths, namespace, why string }
	at := map[place]int{}
	var out []Rule
	for _, r := range rules {
		p := place{r.Group, r.Resource, join(r.Names), join(r.Paths), r.Namespace, r.Why}
		i, known := at[p]
		if !known {
			at[p] = len(out)
			r.Verbs = slices.Clone(r.Verbs)
			out = append(out, r)
			continue
		}
		for _, verb := range r.Verbs {
			if !slices.Contains(out[i].Verbs, verb) {
				out[i].Verbs = append(out[i].Verbs, verb)
			}
		}
		if !r.Optional() {
			out[i].Without = ""
		}
		if r.When == "" {
			out[i].When = ""
		}
		out[i].Withheld = out[i].Withheld && r.Withheld
	}
	needed := slices.Clone(out)
	for i := range out {
		out[i].Verbs = slices.DeleteFunc(out[i].Verbs, func(verb string) bool { return coveredByWider(needed, out[i], verb) })
		slices.Sort(out[i].Verbs)
	}
	out = slices.DeleteFunc(out, func(r Rule) bool { return len(r.Verbs) == 0 })
	order := func(r Rule) int {
		if r.Optional() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(order(a), order(b)))
	})
	return out
}

// coveredByWider says that a cluster-wide rule, which is needed in any case, gives the
// verb in the rule's namespace too.
func coveredByWider(rules []Rule, r Rule, verb string) bool {
	return r.Namespace != "" && slices.ContainsFunc(rules, func(wide Rule) bool {
		return wide.Namespace == "" && wide.Group == r.Group && wide.Resource == r.Resource && len(wide.Names) == 0 &&
			!wide.Optional() && wide.When == "" && slices.Contains(wide.Verbs, verb)
	})
}

func join(list []string) string {
	out := ""
	for _, s := range list {
		out += s + "\x00"
	}
	return out
}
