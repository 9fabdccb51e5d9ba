package access

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// ToInstall is what installing the driver's objects needs: to look whether each is
// there, to apply it, and to follow the rollout of a DaemonSet. Who makes a role must
// hold all that it grants, or may be given the verb escalate on it; who makes a binding
// must hold all that its role grants, or the verb bind.
func ToInstall(objects []*unstructured.Unstructured) ([]Rule, error) {
	kinds := definedKinds(objects)
	var out []Rule
	roles := map[string]bool{} // kind/namespace/name of those that are among the objects
	for _, u := range objects {
		if isRole(u) {
			roles[roleKey(u.GetKind(), u.GetNamespace(), u.GetName())] = true
		}
	}
	for _, u := range objects {
		r := kinds.rule(u, "to install the driver's "+u.GetKind(), "get", "patch")
		if u.GetKind() == "DaemonSet" {
			r.Verbs = append(r.Verbs, "list", "watch")
		}
		make := r
		make.Names, make.Verbs = nil, []string{"create"}
		out = append(out, r, make)
		var more []Rule
		var err error
		switch {
		case isRole(u):
			more, err = granted(u)
		case isBinding(u):
			more, err = bound(u, roles)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		out = append(out, more...)
	}
	return gather(out), nil
}

// ToRemove is what removing objects needs that prepare has installed. Of an object only
// its kind, its namespace and its name count, and what a definition of a kind says.
func ToRemove(objects []*unstructured.Unstructured) []Rule {
	kinds := definedKinds(objects)
	var out []Rule
	for _, u := range objects {
		out = append(out, kinds.rule(u, "to remove the driver's "+u.GetKind()+", and to wait until it is gone", "get", "delete", "list", "watch"))
	}
	return gather(out)
}

// gather joins rules for objects of one kind in one namespace.
func gather(rules []Rule) []Rule {
	var out []Rule
	for _, r := range rules {
		i := slices.IndexFunc(out, func(have Rule) bool {
			return have.Group == r.Group && have.Resource == r.Resource && have.Namespace == r.Namespace && have.Why == r.Why &&
				slices.Equal(have.Verbs, r.Verbs) && (len(have.Names) == 0) == (len(r.Names) == 0)
		})
		if i < 0 || r.Resource == "" {
			out = append(out, r)
			continue
		}
		for _, name := range r.Names {
			if !slices.Contains(out[i].Names, name) {
				out[i].Names = append(out[i].Names, name)
			}
		}
	}
	return out
}

// plurals are those of kinds that CustomResourceDefinitions define.
type plurals map[schema.GroupKind]string

func definedKinds(objects []*unstructured.Unstructured) plurals {
	out := plurals{}
	for _, u := range objects {
		if u.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
		out[schema.GroupKind{Group: group, Kind: kind}] = plural
	}
	return out
}

func (k plurals) rule(u *unstructured.Unstructured, why string, verbs ...string) Rule {
	kind := u.GroupVersionKind()
	out := Rule{Group: kind.Group, Verbs: verbs, Names: []string{u.GetName()}, Namespace: u.GetNamespace(), Why: why}
	defined := false
	if out.Resource, defined = k[kind.GroupKind()]; defined {
		return out
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	out.Resource = plural.Resource
	if !builtIn(kind.Group) {
		out.When = fmt.Sprintf("if %s is what the server calls the kind %s", plural.Resource, kind.Kind)
	}
	return out
}

// builtIn says that a group is Kubernetes' own, whose plurals follow from the kinds.
func builtIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

func isRole(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().Group == rbacv1.GroupName && (u.GetKind() == "Role" || u.GetKind() == "ClusterRole")
}

func isBinding(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().Group == rbacv1.GroupName && (u.GetKind() == "RoleBinding" || u.GetKind() == "ClusterRoleBinding")
}

func roleKey(kind, namespace, name string) string {
	if kind == "ClusterRole" {
		namespace = ""
	}
	return kind + "/" + namespace + "/" + name
}

func resourceOfRole(kind string) string { return strings.ToLower(kind) + "s" }

// granted are the rights that a role grants, one rule for each resource.
func granted(u *unstructured.Unstructured) ([]Rule, error) {
	var role struct {
		Rules []rbacv1.PolicyRule `json:"rules"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	base := Rule{
		Namespace: u.GetNamespace(),
		Why:       fmt.Sprintf("%s %s grants it, and nobody may grant what they do not have; the verb escalate on that one does as well", u.GetKind(), u.GetName()),
		Or:        []cluster.Right{{Verb: "escalate", Group: rbacv1.GroupName, Resource: resourceOfRole(u.GetKind()), Namespace: u.GetNamespace(), Name: u.GetName()}},
	}
	var out []Rule
	for _, p := range role.Rules {
		r := base
		r.Verbs, r.Names = p.Verbs, p.ResourceNames
		if len(p.NonResourceURLs) > 0 {
			url := r
			url.Paths, url.Names = p.NonResourceURLs, nil
			out = append(out, url)
		}
		for _, r.Group = range p.APIGroups {
			for _, r.Resource = range p.Resources {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// bound is what a binding needs whose role is not among the objects.
func bound(u *unstructured.Unstructured, roles map[string]bool) ([]Rule, error) {
	var binding struct {
		RoleRef rbacv1.RoleRef `json:"roleRef"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &binding); err != nil {
		return nil, fmt.Errorf("roleRef: %w", err)
	}
	ref := binding.RoleRef
	if roles[roleKey(ref.Kind, u.GetNamespace(), ref.Name)] {
		return nil, nil
	}
	return []Rule{{
		Group: rbacv1.GroupName, Resource: resourceOfRole(ref.Kind), Verbs: []string{"bind"}, Names: []string{ref.Name}, Namespace: u.GetNamespace(),
		Why:  fmt.Sprintf("%s %s gives that role to the driver", u.GetKind(), u.GetName()),
		When: "unless the caller has all that the role grants",
	}}, nil
}
