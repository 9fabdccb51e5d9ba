package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// server is a fake API server with one namespace, kube-system, and a version.
func server(objects ...runtime.Object) *fake.Clientset {
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "cluster-uid"}})
	c := fake.NewClientset(objects...)
	c.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{
		Major: "1", Minor: "37", GitVersion: "v1.37.2", EmulationMajor: "1", EmulationMinor: "37",
	}
	return c
}

// pagesOf serves the list of pods from pages of names, at the given token each.
type pagesOf struct {
	mu       sync.Mutex
	pages    map[string][]string // token → names; "" is the first page
	next     map[string]string
	expire   map[string]int // token → how often the server has forgotten it
	requests []metav1.ListOptions
}

func (p *pagesOf) react(action clienttesting.Action) (bool, runtime.Object, error) {
	o := action.(clienttesting.ListActionImpl).ListOptions
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, o)
	if p.expire[o.Continue] > 0 {
		p.expire[o.Continue]--
		return true, nil, apierrors.NewResourceExpired("the continue token is too old")
	}
	list := &corev1.PodList{}
	add := func(token string) {
		for _, n := range p.pages[token] {
			list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: n}})
		}
	}
	if o.Limit == 0 {
		for token := range p.pages {
			add(token)
		}
		return true, list, nil
	}
	add(o.Continue)
	list.Continue = p.next[o.Continue]
	return true, list, nil
}

func podNames(s *Snapshot) string {
	var out []string
	for i := range s.Pods {
		out = append(out, s.Pods[i].Name)
	}
	return strings.Join(out, " ")
}

func TestLoadPages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		expire   map[string]int
		requests []string // limit and token of each
	}{
		{"three pages", nil, []string{"2:", "2:t1", "2:t2"}},
		{"the second token expires once: all over again", map[string]int{"t2": 1}, []string{"2:", "2:t1", "2:t2", "2:", "2:t1", "2:t2"}},
		{"it expires for ever: one answer", map[string]int{"t1": 100},
			[]string{"2:", "2:t1", "2:", "2:t1", "2:", "2:t1", "2:", "2:t1", "0:"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := &pagesOf{
				pages:  map[string][]string{"": {"e", "a"}, "t1": {"d", "b"}, "t2": {"c"}},
				next:   map[string]string{"": "t1", "t1": "t2"},
				expire: tt.expire,
			}
			c := server()
			c.PrependReactor("list", "pods", p.react)
			s, err := Load(context.Background(), c, LoadOptions{PageSize: 2})
			if err != nil {
				t.Fatal(err)
			}
			if got := podNames(s); got != "a b c d e" {
				t.Errorf("pods %q, want each once and sorted", got)
			}
			var requests []string
			for _, o := range p.requests {
				requests = append(requests, fmt.Sprintf("%d:%s", o.Limit, o.Continue))
			}
			if diff := cmp.Diff(tt.requests, requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadAsksForPages(t *testing.T) {
	t.Parallel()
	c := server()
	limits := map[string]int64{}
	var mu sync.Mutex
	c.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		limits[a.GetResource().Resource] = a.(clienttesting.ListActionImpl).ListOptions.Limit
		return false, nil, nil
	})
	if _, err := Load(context.Background(), c, LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{
		"nodes": 500, "pods": 500, "daemonsets": 500, "resourceslices": 500,
		"deviceclasses": 500, "resourceclaims": 500, "poddisruptionbudgets": 500,
	}
	if diff := cmp.Diff(want, limits); diff != "" {
		t.Errorf("limit of each list (-want +got):\n%s", diff)
	}
}

func TestLoadIdentity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		info version.Info
		want Identity
	}{
		{"not emulated", version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2", EmulationMajor: "1", EmulationMinor: "37"},
			Identity{"cluster-uid", "v1.37.2", ""}},
		{"emulated", version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2", EmulationMajor: "1", EmulationMinor: "35"},
			Identity{"cluster-uid", "v1.37.2", "1.35"}},
		{"a vendor's build", version.Info{Major: "1", Minor: "36+", GitVersion: "v1.36.3-eks-1", EmulationMajor: "1", EmulationMinor: "36"},
			Identity{"cluster-uid", "v1.36.3-eks-1", ""}},
		{"a server that does not emulate", version.Info{Major: "1", Minor: "32", GitVersion: "v1.32.1"},
			Identity{"cluster-uid", "v1.32.1", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := server()
			c.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &tt.info
			s, err := Load(context.Background(), c, LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, s.Identity); diff != "" {
				t.Errorf("identity (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadUnknown(t *testing.T) {
	t.Parallel()
	forbidden := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no such right"))
	}
	fail := func(c *fake.Clientset, verb, resource string, err error) {
		c.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	}
	t.Run("forbidden and not served parts are unknown", func(t *testing.T) {
		t.Parallel()
		c := server(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		fail(c, "list", "resourceslices", apierrors.NewNotFound(schema.GroupResource{Resource: "resourceslices"}, ""))
		fail(c, "list", "pods", forbidden("pods"))
		fail(c, "get", "namespaces", forbidden("namespaces"))
		s, err := Load(context.Background(), c, LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, u := range s.Unknown {
			parts = append(parts, u.Part)
			if u.Reason == "" {
				t.Errorf("%s: no reason", u.Part)
			}
		}
		if diff := cmp.Diff([]string{"namespaces", "pods", "resourceslices"}, parts); diff != "" {
			t.Errorf("unknown parts (-want +got):\n%s", diff)
		}
		if reason, unknown := s.IsUnknown(PartPods); !unknown || !strings.Contains(reason, "no such right") {
			t.Errorf("IsUnknown(pods) = %q, %t, want the server's answer", reason, unknown)
		}
		if _, unknown := s.IsUnknown(PartClaims); unknown {
			t.Error("IsUnknown(resourceclaims) though they were read")
		}
		if len(s.Nodes) != 1 {
			t.Errorf("%d nodes, want 1: what can be read is read", len(s.Nodes))
		}
	})
	for _, tt := range []struct {
		name, verb, resource string
		err                  error
	}{
		{"forbidden nodes", "list", "nodes", forbidden("nodes")},
		{"a server error", "list", "pods", apierrors.NewInternalError(errors.New("boom"))},
		{"wrong credentials", "list", "pods", apierrors.NewUnauthorized("who are you")},
		{"an expired first page", "list", "pods", apierrors.NewResourceExpired("odd")},
	} {
		t.Run(tt.name+" is an error", func(t *testing.T) {
			t.Parallel()
			c := server()
			fail(c, tt.verb, tt.resource, tt.err)
			s, err := Load(context.Background(), c, LoadOptions{})
			if err == nil || s != nil || !strings.Contains(err.Error(), "read "+tt.resource) {
				t.Errorf("Load = %v, %v, want an error that names %s", s, err, tt.resource)
			}
		})
	}
	t.Run("a context that ended is an error", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := Load(ctx, server(), LoadOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
	})
}

func TestLoadConcurrency(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int32
	two := make(chan struct{})
	var once sync.Once
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == 2 {
			once.Do(func() { close(two) })
		}
		select { // both of the first two requests are under way before either is answered
		case <-two:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"gitVersion":"v1.37.2","items":[]}`)
	}))
	defer srv.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: srv.URL, QPS: -1, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(context.Background(), client, LoadOptions{Concurrency: 2}); err != nil {
		t.Fatal(err)
	}
	if got := most.Load(); got != 2 {
		t.Errorf("%d requests were under way at the same time, want 2", got)
	}
}

func TestLoadIsSlim(t *testing.T) {
	t.Parallel()
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name:          name,
			Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "a long text", "kept": "yes"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "helm", FieldsV1: metav1.NewFieldsV1(`{}`)}},
		}
	}
	ds := &appsv1.DaemonSet{ObjectMeta: meta("d")}
	ds.Namespace = "kube-system"
	n := &corev1.Node{ObjectMeta: meta("n"), Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"x"}}}}}
	cl := &resourcev1.ResourceClaim{ObjectMeta: meta("c")}
	cl.Namespace = "team"
	cl.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: gpuDriver, Pool: "n", Device: "d"}}
	cl.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Driver: gpuDriver, Pool: "n", Device: "d", Request: "r"}},
		Config:  []resourcev1.DeviceAllocationConfiguration{{Source: resourcev1.AllocationConfigSourceClass}},
	}}
	s, err := Load(context.Background(), server(ds, n, cl), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Nodes[0]; got.ManagedFields != nil || got.Status.Images != nil || len(got.Annotations) != 1 || got.Annotations["kept"] != "yes" {
		t.Errorf("node %+v, want no field managers, images or last-applied annotation", got)
	}
	// Who wrote a DaemonSet, and that kubectl applied it, tells who owns it.
	got := s.DaemonSets[0]
	if len(got.ManagedFields) != 1 || got.ManagedFields[0].Manager != "helm" || got.ManagedFields[0].FieldsV1 != nil {
		t.Errorf("field managers %+v, want the name alone", got.ManagedFields)
	}
	if v, ok := got.Annotations[corev1.LastAppliedConfigAnnotation]; !ok || v != "" {
		t.Errorf("last-applied annotation %q, %t, want it there and empty", v, ok)
	}
	claim := s.Claims[0]
	if claim.Status.Devices != nil || claim.Status.Allocation.Devices.Config != nil || len(claim.Status.Allocation.Devices.Results) != 1 {
		t.Errorf("claim status %+v, want the results alone", claim.Status)
	}
}

// The environment of a container may hold a password. What decides how devices are
// handed out is kept, and that the others are there.
func TestSlimDaemonSetKeepsNoSecrets(t *testing.T) {
	t.Parallel()
	ds := appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "i", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "hunter2"}}}},
		Containers: []corev1.Container{{Name: "c", Args: []string{"--mig-strategy=mixed"},
			LivenessProbe: &corev1.Probe{}, Env: []corev1.EnvVar{
				{Name: "MIG_STRATEGY", Value: "mixed"},
				{Name: "NVIDIA_DRIVER_ROOT", Value: "/run/nvidia/driver"},
				{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}},
			}}},
	}}}}
	before := ds.DeepCopy()
	slim := SlimDaemonSet(&ds)
	want := corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "i", Env: []corev1.EnvVar{{Name: "TOKEN"}}}},
		Containers: []corev1.Container{{Name: "c", Args: []string{"--mig-strategy=mixed"}, Env: []corev1.EnvVar{
			{Name: "MIG_STRATEGY", Value: "mixed"}, {Name: "NVIDIA_DRIVER_ROOT", Value: "/run/nvidia/driver"}, {Name: "PASSWORD"}}}},
	}
	if diff := cmp.Diff(want, slim.Spec.Template.Spec); diff != "" {
		t.Errorf("slim (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(slim, SlimDaemonSet(&slim)); diff != "" {
		t.Errorf("slim twice (-once +twice):\n%s", diff)
	}
	if diff := cmp.Diff(before, &ds); diff != "" {
		t.Errorf("the object itself was changed (-want +got):\n%s", diff)
	}
}
