package cluster

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func watchedObjects() []runtime.Object {
	return []runtime.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n1"}},
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "plugin"}},
		&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{Driver: "d", NodeName: new("n1")}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tool", Name: "shared", Labels: map[string]string{KindLabel: KindJournal}},
			Data: map[string]string{JournalKey: "apiVersion: dramigrate.dev/v1alpha1\nkind: Journal\nruns:\n- {id: r1}\n"}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "tool", Name: "shared"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("me")}},
	}
}

func startWatcher(t *testing.T, client *fake.Clientset) (*Watcher, context.CancelFunc, error) {
	t.Helper()
	w, err := NewWatcher(client, LoadOptions{Namespace: "tool"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return w, cancel, w.Start(ctx)
}

// What is watched is what would have been read.
func TestWatcherSeesWhatLoadReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := server(watchedObjects()...)
		w, stop, err := startWatcher(t, client)
		defer stop()
		if err != nil {
			t.Fatal(err)
		}
		same := func(when string) {
			t.Helper()
			want, err := Load(t.Context(), client, LoadOptions{Namespace: "tool"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, w.Snapshot()); diff != "" {
				t.Errorf("%s (-read +watched):\n%s", when, diff)
			}
		}
		same("at first")
		changed := w.Changed()
		if _, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		<-changed
		if err := client.ResourceV1().ResourceSlices().Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		same("later")
	})
}

func TestWatcherUnknown(t *testing.T) {
	forbid := func(c *fake.Clientset, resource string) {
		c.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		client := server(watchedObjects()...)
		forbid(client, "leases")
		broken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tool", Name: "pool-a", Labels: map[string]string{KindLabel: KindJournal}}}
		if err := client.Tracker().Add(broken); err != nil {
			t.Fatal(err)
		}
		w, stop, err := startWatcher(t, client)
		defer stop()
		if err != nil {
			t.Fatal(err)
		}
		s := w.Snapshot()
		if why, unknown := s.IsUnknown(PartLocks); !unknown || !strings.Contains(why, "forbidden") {
			t.Errorf("leases: %q", why)
		}
		if why, unknown := s.IsUnknown(PartJournals); !unknown || !strings.Contains(why, "configmap/tool/pool-a") {
			t.Errorf("a journal that cannot be understood: %q", why)
		}
		if len(s.Nodes) != 2 || len(s.Unknown) != 2 {
			t.Errorf("%d nodes, unknown %v", len(s.Nodes), s.Unknown)
		}

		without := server()
		forbid(without, "nodes")
		_, stop, err = startWatcher(t, without)
		defer stop()
		if !apierrors.IsForbidden(err) {
			t.Errorf("without nodes: %v", err)
		}
	})
}
