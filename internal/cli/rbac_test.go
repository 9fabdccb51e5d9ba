package cli

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/access"
)

// decodeAll reads documents strictly into the types that the server has for them.
func decodeAll(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	docs := utilyaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
	buffer := make([]byte, 1<<20)
	for {
		n, err := docs.Read(buffer)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		doc := bytes.Clone(buffer[:n])
		var head metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(doc, &head); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		var object any
		switch head.Kind {
		case "Namespace":
			object = &corev1.Namespace{}
		case "ClusterRole":
			object = &rbacv1.ClusterRole{}
		case "Role":
			object = &rbacv1.Role{}
		case "ClusterRoleBinding":
			object = &rbacv1.ClusterRoleBinding{}
		case "RoleBinding":
			object = &rbacv1.RoleBinding{}
		default:
			t.Fatalf("kind %q in\n%s", head.Kind, doc)
		}
		if err := yaml.UnmarshalStrict(doc, object); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		out[head.Kind+" "+strings.TrimPrefix(head.Namespace+"/"+head.Name, "/")] = object
	}
}

func TestRBACOfOneVerb(t *testing.T) {
	o := invoke(t, nil, nil, done, "rbac", "unlock", "--tool-namespace", "tools", "--user", "jane: #1", "--group", "admins", "--serviceaccount", "ci:robot")
	if o.code != ExitOK {
		t.Fatalf("exit code %d\n%s", o.code, o.err)
	}
	got := decodeAll(t, o.stdout)
	role, ok := got["Role tools/dramigrate-unlock"].(*rbacv1.Role)
	if !ok || len(got) != 3 {
		t.Fatalf("objects %v, want the namespace, a Role and its binding\n%s", got, o.stdout)
	}
	leases := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: verbs}
	}
	if diff := cmp.Diff([]rbacv1.PolicyRule{leases("get", "update"), leases("watch")}, role.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	binding := got["RoleBinding tools/dramigrate-unlock"].(*rbacv1.RoleBinding)
	if len(binding.Subjects) != 3 || binding.Subjects[2].Name != "jane: #1" || binding.RoleRef.Name != "dramigrate-unlock" {
		t.Errorf("binding %+v, want the group, the account and the user", binding)
	}
	if ns := got["Namespace tools"].(*corev1.Namespace); ns.Labels["pod-security.kubernetes.io/enforce"] != "privileged" {
		t.Errorf("namespace %+v, want it as prepare makes it", ns)
	}
	if !strings.Contains(o.stdout, "# To show who holds the lock") {
		t.Errorf("no comment says why:\n%s", o.stdout)
	}
}

func TestRBACOfAllVerbs(t *testing.T) {
	all := decodeAll(t, invoke(t, nil, nil, done, "rbac").stdout)
	for _, verb := range access.Verbs() {
		_, cluster := all["ClusterRole dramigrate-"+verb]
		_, own := all["Role dramigrate-system/dramigrate-"+verb]
		if !cluster && !own {
			t.Errorf("no role for %s", verb)
		}
	}
	for name, object := range decodeAll(t, invoke(t, nil, nil, done, "rbac", "read").stdout) {
		var rules []rbacv1.PolicyRule
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			rules = o.Rules
		case *rbacv1.Role:
			rules = o.Rules
		}
		for _, r := range rules {
			for _, verb := range r.Verbs {
				if !slices.Contains([]string{"get", "list", "watch"}, verb) && !slices.Contains(r.Resources, "selfsubjectaccessreviews") {
					t.Errorf("%s: the reading verbs may %s %v", name, verb, r.Resources)
				}
			}
		}
	}
	one := decodeAll(t, invoke(t, nil, nil, done, "rbac", "apply", "rollback", "--name", "mover", "--optional=false").stdout)
	if _, ok := one["ClusterRole mover"]; !ok || len(one) != 3 {
		t.Errorf("objects %v, want the namespace, one ClusterRole and one Role", one)
	}
	if list := invoke(t, nil, nil, done, "rbac", "apply", "-o", "json").stdout; !strings.Contains(list, `"kind": "List"`) {
		t.Errorf("JSON is no List:\n%s", list)
	}
	table := invoke(t, nil, nil, done, "rbac", "apply", "-o", "table").stdout
	for _, want := range []string{"pods/eviction", "left out", "optional", "namespace dramigrate-system"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in the table:\n%s", want, table)
		}
	}
}

func TestRBACUsage(t *testing.T) {
	for args, want := range map[string]string{
		"rbac aply":                           `verb "aply"`,
		"rbac apply --serviceaccount robot":   "must be NAMESPACE:NAME",
		"rbac apply --name UPPER":             `--name "UPPER"`,
		"rbac apply --driver-manifests .":     "for prepare and unprepare",
		"rbac apply -o html":                  "must be one of yaml, json, table",
		"rbac apply --serviceaccount a/b:c":   "must be NAMESPACE:NAME",
		"rbac apply --user= --optional=false": "--user: give a name",
	} {
		if o := invoke(t, nil, nil, done, strings.Fields(args)...); o.code != ExitUsage || !strings.Contains(o.err, want) {
			t.Errorf("%s: exit code %d, stderr %q, want %d and %q", args, o.code, o.err, ExitUsage, want)
		}
	}
}

// A missing right stops a run before it begins, and only warns who looks at the plan.
func TestMissingRight(t *testing.T) {
	noPatch := func(a authorizationv1.ResourceAttributes) bool {
		return a.Resource != "*" && (a.Resource != "nodes" || a.Verb != "patch")
	}
	o := invokeAs(t, noPatch, preparedCluster(), "apply", "gpu-a", "--yes", "--helper-image", "h")
	if o.code != ExitBlocked || len(o.ran) != 0 || !strings.Contains(o.stdout, "DRM030") || !strings.Contains(o.stdout, "patch nodes") {
		t.Errorf("exit code %d, %d runs\n%s%s", o.code, len(o.ran), o.stdout, o.err)
	}
	o = invokeAs(t, noPatch, preparedCluster(), "plan", "gpu-a")
	if o.code != ExitOK || !strings.Contains(o.stdout, "DRM030") || !strings.Contains(o.stdout, "dramigrate rbac apply") {
		t.Errorf("exit code %d\n%s%s", o.code, o.stdout, o.err)
	}
	// Nothing is to be done, so nothing is needed.
	o = invokeAs(t, noPatch, preparedCluster(), "rollback", "gpu-a", "--yes", "--helper-image", "h")
	if o.code != ExitOK || strings.Contains(o.stdout, "DRM030") {
		t.Errorf("exit code %d\n%s%s", o.code, o.stdout, o.err)
	}
}
