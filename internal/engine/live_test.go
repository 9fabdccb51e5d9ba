package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func podOn(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func sliceOf(name, node, pool string) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: pool}},
	}
}

// claimIn holds a device of a pool and is reserved for a pod, each if named.
func claimIn(name, pool, pod string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	if pool != "" {
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu.nvidia.com", Pool: pool, Device: "gpu-0"}}}}
	}
	if pod != "" {
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: types.UID("uid-of-" + pod)}}
	}
	return c
}

func names(v cluster.NodeView) (pods, slices, claims []string) {
	for _, p := range v.Pods {
		pods = append(pods, p.Name)
	}
	for _, s := range v.Slices {
		slices = append(slices, s.Name)
	}
	for _, c := range v.Claims {
		claims = append(claims, c.Name)
	}
	return pods, slices, claims
}

func fleet() []runtime.Object {
	return []runtime.Object{
		nodeNamed("gpu-7"), nodeNamed("gpu-8"),
		podOn("p2", "gpu-7"), podOn("p1", "gpu-7"), podOn("other", "gpu-8"),
		sliceOf("s7", "gpu-7", "rack-1"), sliceOf("s8", "gpu-8", "gpu-8"),
		claimIn("by-pool", "rack-1", ""), claimIn("by-name", "gpu-7", ""), claimIn("by-pod", "", "p1"),
		claimIn("of-8", "gpu-8", "other"), claimIn("free", "", ""),
	}
}

// live starts a view whose informers end with the bubble.
func live(t *testing.T, client kubernetes.Interface, nodes ...string) *Live {
	t.Helper()
	l := NewLive(client, clock.RealClock{})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	if err := l.Start(ctx, nodes...); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLiveView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := live(t, newServer(t, fleet()...), "gpu-7", "gpu-8")
		v, err := l.View("gpu-7")
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := l.Fresh(t.Context(), "gpu-7")
		if err != nil {
			t.Fatal(err)
		}
		for how, v := range map[string]cluster.NodeView{"view": v, "fresh": fresh} {
			pods, published, claims := names(v)
			if v.Node.Name != "gpu-7" || !slices.Equal(pods, []string{"p1", "p2"}) || !slices.Equal(published, []string{"s7"}) ||
				!slices.Equal(claims, []string{"by-name", "by-pod", "by-pool"}) {
				t.Errorf("%s: %v %v %v", how, pods, published, claims)
			}
		}
	})
}

// woken says whether a change wakes the waiter of a node.
func woken(l *Live, node string, change func() error) (bool, error) {
	ch := l.Changed(node)
	if err := change(); err != nil {
		return false, err
	}
	synctest.Wait()
	select {
	case <-ch:
		return true, nil
	default:
		return false, nil
	}
}

func TestLiveWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		client := newServer(t, fleet()...)
		l := live(t, client, "gpu-7", "gpu-8")
		synctest.Wait()
		// A claim that lets go of a device wakes the node that the device is of.
		for _, c := range []struct {
			what   string
			change func() error
			on7    bool
			on8    bool
		}{
			{"pod ends", func() error { return client.CoreV1().Pods("ns").Delete(ctx, "p2", metav1.DeleteOptions{}) }, true, false},
			{"pod comes", func() error {
				_, err := client.CoreV1().Pods("ns").Create(ctx, podOn("p3", "gpu-8"), metav1.CreateOptions{})
				return err
			}, false, true},
			{"node changes", func() error {
				n := nodeNamed("gpu-7")
				n.Spec.Unschedulable = true
				_, err := client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
				return err
			}, true, false},
			{"slice goes", func() error { return client.ResourceV1().ResourceSlices().Delete(ctx, "s8", metav1.DeleteOptions{}) }, false, true},
			{"claim by pool name", func() error {
				_, err := client.ResourceV1().ResourceClaims("ns").Update(ctx, claimIn("by-pool", "", ""), metav1.UpdateOptions{})
				return err
			}, true, false},
			{"claim by pod", func() error {
				_, err := client.ResourceV1().ResourceClaims("ns").Update(ctx, claimIn("by-pod", "", ""), metav1.UpdateOptions{})
				return err
			}, true, false},
			{"claim by node name", func() error {
				return client.ResourceV1().ResourceClaims("ns").Delete(ctx, "of-8", metav1.DeleteOptions{})
			}, false, true},
			{"claim of nobody", func() error {
				return client.ResourceV1().ResourceClaims("ns").Delete(ctx, "free", metav1.DeleteOptions{})
			}, false, false},
		} {
			eight := l.Changed("gpu-8")
			on7, err := woken(l, "gpu-7", c.change)
			if err != nil {
				t.Fatalf("%s: %v", c.what, err)
			}
			on8 := false
			select {
			case <-eight:
				on8 = true
			default:
			}
			if on7 != c.on7 || on8 != c.on8 {
				t.Errorf("%s: woke gpu-7 %v (want %v), gpu-8 %v (want %v)", c.what, on7, c.on7, on8, c.on8)
			}
		}
		v, err := l.View("gpu-7")
		if err != nil {
			t.Fatal(err)
		}
		if pods, _, claims := names(v); !v.Node.Spec.Unschedulable || !slices.Equal(pods, []string{"p1"}) || !slices.Equal(claims, []string{"by-name"}) {
			t.Errorf("%v %v", pods, claims)
		}
	})
}

func TestLiveNodeGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t, fleet()...)
		l := live(t, client, "gpu-7")
		synctest.Wait() // the fake server tells a watch nothing of what was before it
		hit, err := woken(l, "gpu-7", func() error { return client.CoreV1().Nodes().Delete(t.Context(), "gpu-7", metav1.DeleteOptions{}) })
		if err != nil || !hit {
			t.Fatalf("woken %v, %v", hit, err)
		}
		var gone *NodeGoneError
		if _, err := l.View("gpu-7"); !errors.As(err, &gone) {
			t.Errorf("view: %v", err)
		}
		if _, err := l.Fresh(t.Context(), "gpu-7"); !errors.As(err, &gone) {
			t.Errorf("fresh: %v", err)
		}
		if _, err := l.View("gpu-8"); !IsUnseen(err) {
			t.Errorf("a node that is not watched: %v", err)
		}
	})
}

func TestLiveMayNotSee(t *testing.T) {
	for _, kind := range []string{"pods", "nodes", "resourceslices", "resourceclaims"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newServer(t, fleet()...)
				client.PrependReactor("list", kind, func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no"))
				})
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				begin := time.Now()
				err := NewLive(client, clock.RealClock{}).Start(ctx, "gpu-7")
				if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "cannot watch ") || time.Since(begin) > time.Second {
					t.Errorf("after %s: %v", time.Since(begin), err)
				}
			})
		})
	}
}

func TestLiveNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t, fleet()...)
		client.PrependReactor("list", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInternalError(errors.New("etcd is away"))
		})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		begin := time.Now()
		err := NewLive(client, clock.RealClock{}).Start(ctx, "gpu-7")
		if !IsUnseen(err) || time.Since(begin) != time.Minute || !strings.Contains(err.Error(), "resourceclaims") || !strings.Contains(err.Error(), "etcd is away") {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}

// A watch that is cut off makes the view unusable, and usable again when it is back.
func TestLiveCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := live(t, newServer(t, fleet()...), "gpu-7")
		for _, s := range append(l.nodes["gpu-7"].sources(), l.claims) {
			s.Note(t.Context(), apierrors.NewResourceExpired("too old")) // answered by a new list
			if _, err := l.View("gpu-7"); err != nil {
				t.Errorf("%s, expired: %v", s.What, err)
			}
			s.Note(t.Context(), errors.New("connection refused"))
			if _, err := l.View("gpu-7"); !IsUnseen(err) || err.Error() != "cannot watch "+s.What+": connection refused" {
				t.Errorf("%s, cut off: %v", s.What, err)
			}
			s.Note(t.Context(), nil)
			if _, err := l.View("gpu-7"); err != nil {
				t.Errorf("%s, back: %v", s.What, err)
			}
		}
	})
}

func TestLiveStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t, fleet()...)
		l := live(t, client, "gpu-7")
		ch := l.Changed("gpu-7")
		l.Stop("gpu-7")
		select {
		case <-ch:
		default:
			t.Error("whoever waits is not woken")
		}
		if _, err := l.View("gpu-7"); !IsUnseen(err) {
			t.Errorf("got %v", err)
		}
		if err := l.Start(context.WithoutCancel(t.Context()), "gpu-7"); err != nil {
			t.Fatal(err)
		}
		if _, err := l.View("gpu-7"); err != nil {
			t.Error(err)
		}
		l.Stop("gpu-7")
	})
}
