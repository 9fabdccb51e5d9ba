package access

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

const toolNamespace = "tool"

func rulesOf(t *testing.T, verb string) []Rule {
	t.Helper()
	rules, err := Of(verb, toolNamespace)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// grants says whether the rules give a right, as RBAC does.
func grants(rules []Rule, want cluster.Right) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool {
		return !r.Withheld && r.Group == want.Group && r.Resource == want.Resource && slices.Contains(r.Verbs, want.Verb) &&
			(r.Namespace == "" || r.Namespace == want.Namespace) &&
			(len(r.Names) == 0 || slices.Contains(r.Names, want.Name)) && (want.Path == "" || slices.Contains(r.Paths, want.Path))
	})
}

// What a look at the cluster sends is what the rules of every verb that looks grant, and
// no list is granted that nobody sends.
func TestLookNeedsItsRules(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&corev1.Namespace{})
	if _, err := cluster.Load(context.Background(), client, cluster.LoadOptions{Namespace: toolNamespace}); err != nil {
		t.Fatal(err)
	}
	sent := map[cluster.Right]bool{}
	for _, a := range client.Actions() {
		r := cluster.Right{Verb: a.GetVerb(), Group: a.GetResource().Group, Resource: a.GetResource().Resource, Namespace: a.GetNamespace()}
		if get, ok := a.(interface{ GetName() string }); ok && a.GetVerb() == "get" {
			r.Name = get.GetName()
		}
		if r.Resource == "version" {
			r = cluster.Right{Verb: "get", Path: "/version"}
		}
		sent[r] = true
	}
	if len(sent) < 11 {
		t.Fatalf("the look sends %v, want all parts of a Snapshot", sent)
	}
	rules := rulesOf(t, Pools)
	for r := range sent {
		if !grants(rules, r) {
			t.Errorf("pools sends %s, and no rule grants it", r)
		}
	}
	for _, rule := range rules {
		for _, r := range rule.Rights() {
			if !sent[r] {
				t.Errorf("a rule of pools grants %s, which nobody asks for", r)
			}
		}
	}
	for _, verb := range Verbs() {
		if verb == Unlock || verb == Verify || verb == VerifyCanary || verb == Probe {
			continue // these read no records, or nothing but a Lease
		}
		for r := range sent {
			if !grants(rulesOf(t, verb), r) {
				t.Errorf("%s looks at the cluster, and no rule grants %s", verb, r)
			}
		}
	}
}

func TestRulesAreWhole(t *testing.T) {
	t.Parallel()
	for _, verb := range Verbs() {
		changes := false
		for _, r := range rulesOf(t, verb) {
			if r.Why == "" || !strings.HasPrefix(r.Why, "to ") || strings.HasSuffix(r.Why, ".") {
				t.Errorf("%s: rule %v: reason %q, want a purpose", verb, r, r.Why)
			}
			if len(r.Verbs) == 0 || (r.Resource == "") == (len(r.Paths) == 0) || slices.Contains(r.Verbs, "*") {
				t.Errorf("%s: rule %+v is none", verb, r)
			}
			for _, v := range r.Verbs {
				changes = changes || !slices.Contains([]string{"get", "list", "watch"}, v) && r.Resource != "selfsubjectaccessreviews"
			}
			if r.Withheld && !r.Optional() {
				t.Errorf("%s: %s is withheld and needed", verb, r.Resource)
			}
		}
		if reads := slices.Contains(Reading(), verb); reads == changes {
			t.Errorf("%s: reading is %t, and its rules change something is %t", verb, reads, changes)
		}
	}
	if _, err := Of("applyy", toolNamespace); err == nil {
		t.Error("no error for a verb that is none")
	}
}

// The tool never sees a Secret, and never gets all rights to anything.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	for _, verb := range Verbs() {
		for _, r := range rulesOf(t, verb) {
			if r.Resource == "secrets" || strings.Contains(r.Resource, "*") || r.Group == "*" {
				t.Errorf("%s needs %s/%s", verb, r.Group, r.Resource)
			}
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	got := Merge([]Rule{
		{Resource: "nodes", Verbs: []string{"list"}, Why: "to see"},
		{Resource: "nodes", Verbs: []string{"get", "list"}, Why: "to see", Without: "less"},
		{Resource: "events", Verbs: []string{"list"}, Why: "to know", Without: "less"},
		{Resource: "pods", Verbs: []string{"list"}, Why: "to see"},
		{Resource: "pods", Verbs: []string{"list", "create"}, Namespace: "tool", Why: "to make"},
		{Resource: "configmaps", Verbs: []string{"list"}, Why: "to search", Without: "less", Withheld: true},
		{Resource: "configmaps", Verbs: []string{"list"}, Namespace: "tool", Why: "to read"},
	})
	want := []Rule{
		{Resource: "nodes", Verbs: []string{"get", "list"}, Why: "to see"},
		{Resource: "pods", Verbs: []string{"list"}, Why: "to see"},
		{Resource: "events", Verbs: []string{"list"}, Why: "to know", Without: "less"},
		{Resource: "configmaps", Verbs: []string{"list"}, Why: "to search", Without: "less", Withheld: true},
		// The list of pods is cluster-wide already; that of ConfigMaps is withheld there.
		{Resource: "pods", Verbs: []string{"create"}, Namespace: "tool", Why: "to make"},
		{Resource: "configmaps", Verbs: []string{"list"}, Namespace: "tool", Why: "to read"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, doc := range strings.Split(text, "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

// The rights to install follow from the objects, and from what their roles grant
// (privilege escalation prevention, rbac.authorization.k8s.io).
func TestToInstall(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/driver.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list := objects(t, string(text))
	rules, err := ToInstall(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []cluster.Right{
		{Verb: "create", Group: "apps", Resource: "daemonsets", Namespace: "dra"},
		{Verb: "patch", Group: "apps", Resource: "daemonsets", Namespace: "dra", Name: "plugin"},
		{Verb: "watch", Group: "apps", Resource: "daemonsets", Namespace: "dra", Name: "plugin"},
		{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "get", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "driver"},
		// What ClusterRole driver grants:
		{Verb: "delete", Group: "resource.k8s.io", Resource: "resourceslices"},
		{Verb: "get", Resource: "nodes"},
		// The binding to a role that is not among the objects:
		{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "system:auth-delegator"},
		// A kind of a CustomResourceDefinition that is among them:
		{Verb: "patch", Group: "example.com", Resource: "gizmoes", Namespace: "dra", Name: "g"},
	} {
		if !grants(rules, want) {
			t.Errorf("no rule for %s", want)
		}
	}
	for _, not := range []cluster.Right{
		{Verb: "patch", Group: "apps", Resource: "daemonsets", Namespace: "dra", Name: "other"},
		{Verb: "create", Group: "apps", Resource: "daemonsets", Namespace: "kube-system"},
		{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "driver"},
		{Verb: "delete", Group: "apps", Resource: "daemonsets", Namespace: "dra", Name: "plugin"},
	} {
		if grants(rules, not) {
			t.Errorf("a rule for %s, which installing does not need", not)
		}
	}
	needs := Needs(rules)
	i := slices.IndexFunc(needs, func(n Need) bool { return n.Verb == "delete" && n.Resource == "resourceslices" })
	if i < 0 || len(needs[i].Or) != 1 || needs[i].Or[0].String() != "escalate clusterroles.rbac.authorization.k8s.io driver" {
		t.Errorf("needs %+v, want escalate in place of what the role grants", needs)
	}
	if slices.ContainsFunc(needs, func(n Need) bool { return n.Verb == "bind" }) {
		t.Error("bind is asked for, and a caller with the role's own rights does not need it")
	}

	removes := ToRemove(list)
	if want := (cluster.Right{Verb: "delete", Group: "apps", Resource: "daemonsets", Namespace: "dra", Name: "plugin"}); !grants(removes, want) {
		t.Errorf("no rule for %s", want)
	}
	if slices.ContainsFunc(removes, func(r Rule) bool { return slices.Contains(r.Verbs, "create") || slices.Contains(r.Verbs, "patch") }) {
		t.Errorf("rules to remove %+v make or change something", removes)
	}
}
