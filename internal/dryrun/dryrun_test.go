package dryrun

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// server answers everything, and refuses what is no dry run.
type server struct {
	*Asker
	stored []string
}

func newServer(t *testing.T, refuse map[string]error) *server {
	t.Helper()
	s := &server{}
	check := func(a clienttesting.Action) (bool, runtime.Object, error) {
		var dry []string
		name := ""
		switch a := a.(type) {
		case clienttesting.PatchActionImpl:
			dry, name = a.PatchOptions.DryRun, a.Name
		case clienttesting.DeleteActionImpl:
			dry, name = a.DeleteOptions.DryRun, a.Name
		case clienttesting.CreateActionImpl:
			eviction, ok := a.Object.(*policyv1.Eviction)
			if !ok {
				t.Errorf("unexpected creation of %T", a.Object)
				return true, nil, nil
			}
			dry, name = eviction.DeleteOptions.DryRun, eviction.Name
		default:
			return false, nil, nil
		}
		if !slices.Equal(dry, []string{metav1.DryRunAll}) {
			s.stored = append(s.stored, a.GetVerb()+" "+name)
		}
		return true, &unstructured.Unstructured{Object: map[string]any{}}, refuse[name]
	}
	typed := fake.NewClientset()
	typed.PrependReactor("create", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		handled, _, err := check(a)
		return handled, nil, err
	})
	typed.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		_, _, err := check(a)
		return true, &corev1.Node{}, err
	})
	typed.PrependReactor("patch", "daemonsets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		_, _, err := check(a)
		return true, &appsv1.DaemonSet{}, err
	})
	objects := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	objects.PrependReactor("patch", "*", check)
	objects.PrependReactor("delete", "*", check)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "DeviceClass"}, meta.RESTScopeRoot)
	s.Asker = &Asker{client: typed, dynamic: objects, mapper: mapper}
	return s
}

func object(apiVersion, kind, namespace, name string) plan.Object {
	return plan.Object{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
}

func TestAskShared(t *testing.T) {
	s := newServer(t, map[string]error{"plugin": apierrors.NewForbidden(schema.GroupResource{Resource: "daemonsets"}, "plugin", nil)})
	p := &plan.Plan{Shared: []plan.Step{{Changes: []plan.Change{
		{Verb: "create", Object: object("", "Namespace", "", "tool"), Body: "apiVersion: v1\nkind: Namespace\nmetadata: {name: tool}\n"},
		{Verb: "patch", Object: object("", "DaemonSet", "kube-system", "plugin"), Patch: "[]"},
		{Verb: "apply", Object: object("", "ServiceAccount", "tool", "sa"), Body: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: sa, namespace: tool}\n"},
		{Verb: "apply", Object: object("", "ServiceAccount", "there", "sa"), Body: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: sa, namespace: there}\n"},
		{Verb: "apply", Object: object("", "Strange", "", "x"), Body: "apiVersion: strange/v1\nkind: Strange\nmetadata: {name: x}\n"},
		{Verb: "delete", Object: object("resource.k8s.io/v1", "DeviceClass", "", "class")},
		{Verb: "update", Object: object("", "ConfigMap", "other", "shared")},
	}}}}
	answers, err := s.Ask(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"accepted create namespace/tool",
		"refused patch daemonset/kube-system/plugin",
		"not asked apply serviceaccount/tool/sa", // its namespace was only tried
		"accepted apply serviceaccount/there/sa",
		"refused apply strange/x",
		"accepted delete deviceclass/class",
		"not asked update configmap/other/shared",
	}
	compare(t, answers, want)
	if len(s.stored) > 0 {
		t.Errorf("not a dry run: %v", s.stored)
	}
	if !strings.Contains(answers[1].Reason, "forbidden") {
		t.Errorf("reason %q, want the server's", answers[1].Reason)
	}
}

func TestAskPool(t *testing.T) {
	s := newServer(t, map[string]error{
		"blocked": apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0),
		"gone":    apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "gone"),
	})
	p := &plan.Plan{
		Gate: gate.OwnKey(), Pool: &plan.Pool{Name: "a"},
		Class:     &plan.Class{Action: plan.Create, Name: "class"},
		Batches:   []plan.Batch{{Nodes: []string{"a-1"}}, {Nodes: []string{"a-2"}}},
		Evictions: []plan.Eviction{{Pod: "default/free"}, {Pod: "default/blocked"}, {Pod: "default/gone"}},
		NodeSteps: []plan.Step{{Changes: []plan.Change{
			{Verb: "patch", Object: object("", "Node", "", "<node>"), Patch: "[]"},
			{Verb: "create", Object: object("", "DeviceClass", "", "class"), Body: "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: class}\n"},
		}}},
	}
	answers, err := s.Ask(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, answers, []string{
		"accepted create deviceclass/class",
		"accepted patch node/a-1", "accepted patch node/a-2",
		"accepted evict pod/default/free", "not now evict pod/default/blocked", "accepted evict pod/default/gone",
	})
	if len(s.stored) > 0 {
		t.Errorf("not a dry run: %v", s.stored)
	}
}

func compare(t *testing.T, answers []Answer, want []string) {
	t.Helper()
	var got []string
	for _, a := range answers {
		got = append(got, string(a.Verdict)+" "+a.Change)
	}
	if !slices.Equal(got, want) {
		t.Errorf("answers\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
