package report

import (
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/access"
)

// Roles are grants, and the namespace that their Roles need; nil if none does.
type Roles struct {
	Namespace *corev1.Namespace
	Grants    []access.Grant
	// Notes stand at the beginning.
	Notes []string
}

// YAML writes what `kubectl apply` takes, with a comment before each rule that says why
// it is there.
func (r Roles) YAML(w io.Writer) error {
	d := newPage(Sheet{Writer: w})
	for _, note := range r.Notes {
		comment(d, note)
	}
	separator := ""
	document := func(object any) {
		text, err := yaml.Marshal(object)
		if err != nil && d.err == nil {
			d.err = err
		}
		d.line(separator + strings.TrimSuffix(string(text), "\n"))
		separator = "---\n"
	}
	if r.Namespace != nil {
		comment(d, "The Roles need the tool's namespace, which prepare makes like this if it is not there.")
		document(map[string]any{
			"apiVersion": r.Namespace.APIVersion, "kind": r.Namespace.Kind,
			"metadata": map[string]any{"name": r.Namespace.Name, "labels": r.Namespace.Labels},
		})
	}
	for _, g := range r.Grants {
		for _, object := range g.Objects() {
			switch o := object.(type) {
			case *rbacv1.ClusterRole:
				document(head(o.TypeMeta, o.ObjectMeta))
				r.rules(d, g, "")
			case *rbacv1.Role:
				document(head(o.TypeMeta, o.ObjectMeta))
				r.rules(d, g, o.Namespace)
			case *rbacv1.ClusterRoleBinding:
				document(binding(head(o.TypeMeta, o.ObjectMeta), o.RoleRef, o.Subjects))
			case *rbacv1.RoleBinding:
				document(binding(head(o.TypeMeta, o.ObjectMeta), o.RoleRef, o.Subjects))
			}
		}
	}
	return d.err
}

// head is an object without what its kind is for.
func head(t metav1.TypeMeta, m metav1.ObjectMeta) map[string]any {
	meta := map[string]any{"name": m.Name, "labels": m.Labels}
	if m.Namespace != "" {
		meta["namespace"] = m.Namespace
	}
	return map[string]any{"apiVersion": t.APIVersion, "kind": t.Kind, "metadata": meta}
}

func binding(head map[string]any, ref rbacv1.RoleRef, subjects []rbacv1.Subject) map[string]any {
	head["roleRef"], head["subjects"] = ref, subjects
	return head
}

// rules writes the rules of a namespace. One that is withheld stands there as a comment:
// whoever wants it takes the # away.
func (r Roles) rules(d *page, g access.Grant, namespace string) {
	d.line("rules:")
	for _, rule := range g.In(namespace) {
		comment(d, strings.ToUpper(rule.Why[:1])+rule.Why[1:]+".")
		if rule.When != "" {
			comment(d, "Needed "+rule.When+".")
		}
		if rule.Optional() {
			comment(d, "Optional; without it: "+rule.Without+".")
		}
		text, err := yaml.Marshal([]rbacv1.PolicyRule{rule.Policy()})
		if err != nil && d.err == nil {
			d.err = err
		}
		if !rule.Withheld {
			d.line(strings.TrimSuffix(string(text), "\n"))
			continue
		}
		comment(d, "Left out, because it shows more than this tool looks at:")
		for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			d.line("# " + line)
		}
	}
}

// comment writes text behind #, within the width of a page.
func comment(d *page, text string) {
	for _, l := range wrap(Clean(text), Width-2) {
		d.line("# " + l)
	}
}

// JSON writes one List, which has no place for reasons.
func (r Roles) JSON(w io.Writer) error {
	var items []any
	if r.Namespace != nil {
		items = append(items, r.Namespace)
	}
	for _, g := range r.Grants {
		items = append(items, g.Objects()...)
	}
	return JSON(w, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}

// Table writes the rules for a person, one a line.
func (r Roles) Table(s Sheet) error {
	d := newPage(s)
	t := table{header: []string{"FOR", "VERBS", "RESOURCE", "WHERE", "NEEDED", "WHY"}, width: s.tables(true)}
	for _, g := range r.Grants {
		for _, rule := range g.Rules {
			where, what, needed := "cluster", rule.Resource, "yes"
			if rule.Namespace != "" {
				where = "namespace " + Clean(rule.Namespace)
			}
			if rule.Group != "" {
				what = Clean(rule.Group + "/" + rule.Resource)
			}
			if rule.Resource == "" {
				what = strings.Join(rule.Paths, " ")
			}
			if len(rule.Names) > 0 {
				what += " " + strings.Join(rule.Names, " ")
			}
			switch {
			case rule.Withheld:
				needed = "left out"
			case rule.Optional():
				needed = "optional"
			case rule.When != "":
				needed = "depends"
			}
			why := rule.Why
			if rule.When != "" {
				why += " (" + rule.When + ")"
			}
			if rule.Optional() {
				why += "; without it: " + rule.Without
			}
			t.add(Clean(strings.Join(g.For, ",")), Clean(strings.Join(rule.Verbs, ",")), Clean(what), where, needed, Clean(why))
		}
	}
	if d.err == nil {
		d.err = t.print(d.sheet, d.theme.title)
	}
	return d.err
}
