package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/status"
)

// output may be written and read by two goroutines.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// take is what was written since the last take.
func (o *output) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.b.String()
	o.b.Reset()
	return text
}

// watching is a verb that goes on, such as one with --watch. wait lets it end by itself,
// stop interrupts it.
type watching struct {
	*fake.Clientset
	out, err   *output
	stop, wait func() (code int)
}

func watchStatus(t *testing.T, streams Streams, prepare func(*fake.Clientset), args ...string) *watching {
	t.Helper()
	w := startVerb(t, streams, preparedCluster(), prepare, append([]string{"status", "--watch"}, args...)...)
	synctest.Wait()
	return w
}

func startVerb(t *testing.T, streams Streams, objects []runtime.Object, prepare func(*fake.Clientset), args ...string) *watching {
	t.Helper()
	client := fake.NewClientset(objects...)
	client.Discovery().(*discoveryfake.FakeDiscovery).FakedServerVersion = &version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2"}
	if prepare != nil {
		prepare(client)
	}
	w := &watching{Clientset: client, out: &output{}, err: &output{}}
	streams.In, streams.Out, streams.Err = strings.NewReader(""), w.out, w.err
	a := &app{Streams: streams, Factory: &world{client: client, clock: clock.RealClock{}}, build: Build{Version: "v0"}}
	ctx, cancel := context.WithCancelCause(context.Background())
	code := make(chan int, 1)
	go func() {
		code <- runRoot(ctx, newRoot(a, "dramigrate"), args, streams)
	}()
	w.wait = func() int { return <-code }
	w.stop = func() int { cancel(errInterrupted); return <-code }
	return w
}

// settle lets changes be gathered and shown.
func (w *watching) settle() string {
	time.Sleep(gatherFor)
	synctest.Wait()
	return w.out.take()
}

func (w *watching) cordon(t *testing.T, on bool) {
	t.Helper()
	node, err := w.CoreV1().Nodes().Get(t.Context(), "a-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node = node.DeepCopy()
	node.Spec.Unschedulable = on
	if _, err := w.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestStatusWatchLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchStatus(t, Streams{}, nil)
		if got := w.out.take(); !strings.Contains(got, "node/a-1  plugin; plugin 2, driver 0; ready, open\n") || !strings.Contains(got, "pool/gpu-a  1 node") {
			t.Errorf("first:\n%s", got)
		}
		w.cordon(t, true)
		got := w.settle()
		if !strings.HasSuffix(got, "node/a-1  plugin; plugin 2, driver 0; ready, cordoned\n") || strings.Count(got, "\n") != 1 {
			t.Errorf("after a change, want the one node alone:\n%s", got)
		}
		// Changes that come together, and come to nothing, are not shown.
		w.cordon(t, false)
		w.cordon(t, true)
		if got := w.settle(); got != "" {
			t.Errorf("after nothing:\n%s", got)
		}
		if code := w.stop(); code != ExitOK || w.err.take() != "" {
			t.Errorf("exit code %d when interrupted, want 0", code)
		}
	})
}

func TestStatusWatchInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terminal := Streams{OutTTY: true, Width: func() int { return 90 }, Env: []string{"TERM=xterm", "CLICOLOR_FORCE=1"}}
		w := watchStatus(t, terminal, nil)
		first := w.out.take()
		if !strings.Contains(ansi.Strip(first), "a-1   gpu-a  plugin") || strings.Contains(first, ansi.EraseScreenBelow) {
			t.Errorf("first:\n%q", first)
		}
		w.cordon(t, true)
		got := w.settle()
		if !strings.HasPrefix(got, ansi.CursorUp(strings.Count(first, "\n"))) || !strings.Contains(got, ansi.EraseScreenBelow) || !strings.Contains(got, "cordoned") {
			t.Errorf("after a change:\n%q", got)
		}
		if code := w.stop(); code != ExitOK {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestStatusWatchDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchStatus(t, Streams{}, nil, "-o", "json")
		stream := w.out.take()
		w.cordon(t, true)
		stream += w.settle()
		var seen []bool
		for dec := json.NewDecoder(strings.NewReader(stream)); dec.More(); {
			var s status.Status
			if err := dec.Decode(&s); err != nil {
				t.Fatal(err)
			}
			seen = append(seen, s.Nodes[0].Cordoned)
		}
		if len(seen) != 2 || seen[0] || !seen[1] {
			t.Errorf("cordoned in the documents: %v, want false, true", seen)
		}
		w.stop()

		y := watchStatus(t, Streams{}, nil, "-o", "yaml")
		stream = y.out.take()
		y.cordon(t, true)
		stream += y.settle()
		if parts := strings.Split(stream, "---\n"); len(parts) != 2 || !strings.HasPrefix(parts[1], "apiVersion: ") {
			t.Errorf("%d documents in:\n%s", len(parts), stream)
		}
		y.stop()
	})
}

// A lock that runs out is told by the clock alone; its renewals are no news.
func TestStatusWatchLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "dramigrate-system", Name: "pool-gpu-a"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("she@host/1"), LeaseDurationSeconds: ptr.To[int32](60),
				RenewTime: ptr.To(metav1.NewMicroTime(time.Now()))}}
		for _, format := range []string{"table", "json"} {
			w := watchStatus(t, Streams{}, func(c *fake.Clientset) {
				if err := c.Tracker().Add(lease.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}, "-o", format)
			w.out.take()
			time.Sleep(30 * time.Second)
			renewed := lease.DeepCopy()
			renewed.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now()))
			if _, err := w.CoordinationV1().Leases("dramigrate-system").Update(t.Context(), renewed, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := w.settle(); got != "" {
				t.Errorf("%s, renewed:\n%s", format, got)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := w.out.take(); !strings.Contains(got, "expired") {
				t.Errorf("%s, run out:\n%s", format, got)
			}
			w.stop()
			lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now()))
		}
	})
}

func forbid(c *fake.Clientset, resources ...string) {
	for _, r := range resources {
		answer := func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: r}, "", nil)
		}
		c.PrependReactor("list", r, answer)
	}
}

func TestStatusWatchWithLessRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchStatus(t, Streams{}, func(c *fake.Clientset) { forbid(c, "configmaps", "leases", "resourceslices") })
		got := w.out.take()
		for _, want := range []string{"node/a-1  plugin; plugin 2, driver ?", "UNKNOWN configmaps  could not be read", "UNKNOWN leases", "UNKNOWN resourceslices"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in:\n%s", want, got)
			}
		}
		if code := w.stop(); code != ExitOK {
			t.Errorf("exit code %d", code)
		}

		n := watchStatus(t, Streams{}, func(c *fake.Clientset) { forbid(c, "nodes") })
		if code := n.stop(); code != ExitUnknown || n.out.take() != "" {
			t.Errorf("without nodes: exit code %d, want %d; %s", code, ExitUnknown, n.err.take())
		}
	})
}

// The pool's last node may go, and come back.
func TestStatusWatchPoolGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchStatus(t, Streams{}, nil, "gpu-a")
		w.out.take()
		node, err := w.CoreV1().Nodes().Get(t.Context(), "a-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.CoreV1().Nodes().Delete(t.Context(), "a-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := w.settle(); !strings.Contains(got, "node/a-1  is gone\n") {
			t.Errorf("gone:\n%s", got)
		}
		node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a-1", UID: "new", Labels: node.Labels}, Spec: node.Spec, Status: node.Status}
		if _, err := w.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := w.settle(); !strings.Contains(got, "node/a-1  plugin") {
			t.Errorf("back:\n%s", got)
		}
		w.stop()
		if x := watchStatus(t, Streams{}, nil, "nowhere"); x.stop() != ExitUsage {
			t.Errorf("a pool that there is not: %s", x.err.take())
		}
	})
}
