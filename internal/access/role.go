package access

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Grant is a set of rules under one name, and to whom they are given.
type Grant struct {
	Name string
	// For names the verbs, for a person.
	For   []string
	Rules []Rule
	// Subjects get the rules; without any, only the roles are there.
	Subjects []rbacv1.Subject
}

// Namespaces are those in which the grant needs a Role, sorted.
func (g Grant) Namespaces() []string {
	in := map[string]bool{}
	for _, r := range g.Rules {
		if r.Namespace != "" && !r.Withheld {
			in[r.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(in))
}

// In are the rules of a namespace, or with "" the cluster-wide ones.
func (g Grant) In(namespace string) []Rule {
	return slices.DeleteFunc(slices.Clone(g.Rules), func(r Rule) bool { return r.Namespace != namespace })
}

// Policy is the rule as RBAC writes it.
func (r Rule) Policy() rbacv1.PolicyRule {
	if r.Resource == "" {
		return rbacv1.PolicyRule{NonResourceURLs: r.Paths, Verbs: r.Verbs}
	}
	return rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, ResourceNames: r.Names, Verbs: r.Verbs}
}

func policies(rules []Rule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, r := range rules {
		if !r.Withheld {
			out = append(out, r.Policy())
		}
	}
	return out
}

// labels find what was made of these rules, to remove it.
func labels() map[string]string { return map[string]string{"app.kubernetes.io/part-of": "dramigrate"} }

// ClusterRole holds the cluster-wide rules; nil if there are none.
func (g Grant) ClusterRole() *rbacv1.ClusterRole {
	rules := policies(g.In(""))
	if len(rules) == 0 {
		return nil
	}
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: g.Name, Labels: labels()}, Rules: rules,
	}
}

// Role holds the rules of one namespace.
func (g Grant) Role(namespace string) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: g.Name, Labels: labels()}, Rules: policies(g.In(namespace)),
	}
}

// ClusterBinding gives the ClusterRole to the subjects.
func (g Grant) ClusterBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: g.Name, Labels: labels()}, Subjects: g.Subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: g.Name},
	}
}

// Binding gives the Role of a namespace to the subjects.
func (g Grant) Binding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: g.Name, Labels: labels()}, Subjects: g.Subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: g.Name},
	}
}

// Objects are the roles and bindings, in the order in which they can be created.
func (g Grant) Objects() []any {
	var out []any
	cluster := g.ClusterRole()
	if cluster != nil {
		out = append(out, cluster)
	}
	namespaces := g.Namespaces()
	for _, namespace := range namespaces {
		out = append(out, g.Role(namespace))
	}
	if len(g.Subjects) == 0 {
		return out
	}
	if cluster != nil {
		out = append(out, g.ClusterBinding())
	}
	for _, namespace := range namespaces {
		out = append(out, g.Binding(namespace))
	}
	return out
}
