package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// A pool that was never moved has a next step, unless somebody is taking it.
func TestVerifyAdvises(t *testing.T) {
	lease := func(ago time.Duration) runtime.Object { return leaseOf(time.Unix(0, 0).Add(-ago)) }
	const plan = "no run has moved the node: `dramigrate plan gpu-a` says whether the pool can be moved, and how"
	for _, tt := range []struct {
		name    string
		objects []runtime.Object
		args    string // what chooses the pool
		want    string
	}{
		{"no run", preparedCluster(), "gpu-a", plan},
		{"no run, by a selector", preparedCluster(), "-l nvidia.com/gpu.count!=0", "`dramigrate plan --selector 'nvidia.com/gpu.count!=0'` says"},
		{"no run, by a selector and a name", preparedCluster(), "-l nvidia.com/gpu.count=2 --pool mine", "`dramigrate plan --selector nvidia.com/gpu.count=2 --pool mine` says"},
		{"a run that is dead", append(preparedCluster(), lease(time.Hour)), "gpu-a", plan},
		{"a run", append(preparedCluster(), lease(30*time.Second)), "gpu-a",
			"no run has moved the node; a run is under way, by she@host/1 since 1969-12-31T23:59:30Z: wait for its end, or follow it by `dramigrate status gpu-a --watch`"},
		{"verify --canary", append(preparedCluster(), ofVerify(lease(30*time.Second))), "gpu-a",
			"no run has moved the node; `dramigrate verify --canary` holds the lock of pool gpu-a, by she@host/1 since 1969-12-31T23:59:30Z: when it is over, `dramigrate plan gpu-a` says"},
	} {
		o := invoke(t, tt.objects, nil, done, append([]string{"verify", "-o", "json"}, strings.Fields(tt.args)...)...)
		if !strings.Contains(o.stdout, tt.want) {
			t.Errorf("%s: exit code %d, want %q\n%s%s", tt.name, o.code, tt.want, o.stdout, o.err)
		}
	}
}

// The lock that counts for a node is that of the pool that its run knew it by, however
// the nodes are chosen now.
func TestVerifyAdvisesByTheLockOfTheMark(t *testing.T) {
	world := func(renewed time.Duration) []runtime.Object {
		objects := movedCluster(t)
		for _, name := range movedNodes {
			n := nodeOf(t, objects, name)
			mark, err := cluster.ParseNodeState(n)
			if err != nil {
				t.Fatal(err)
			}
			mark.SettledAt = nil
			if n.Annotations[cluster.StateAnnotation], err = mark.Encode(); err != nil {
				t.Fatal(err)
			}
		}
		objects = slices.DeleteFunc(objects, func(o runtime.Object) bool { _, ok := o.(*coordinationv1.Lease); return ok })
		return append(objects, leaseOf(time.Unix(0, 0).Add(-renewed)))
	}
	const selector = "kubernetes.io/hostname in (ip-10-3-1-11.ec2.internal,ip-10-3-1-12.ec2.internal)"
	for _, args := range [][]string{{"gpu-a"}, {"-l", selector}, {"-l", selector, "--pool", "mine"}} {
		o := invoke(t, world(30*time.Second), nil, done, append([]string{"verify", "-o", "json"}, args...)...)
		if strings.Contains(o.stdout, "goes on with it") || !strings.Contains(o.stdout, "a run is under way, by she@host/1 since 1969-12-31T23:59:30Z: wait for its end, or follow it by `dramigrate status gpu-a --watch`") {
			t.Errorf("%q: want the run of pool gpu-a\n%s%s", args, o.stdout, o.err)
		}
		o = invoke(t, world(time.Hour), nil, done, append([]string{"verify", "-o", "json"}, args...)...)
		if !strings.Contains(o.stdout, "has not settled the node: `dramigrate apply gpu-a` goes on with it") {
			t.Errorf("%q: want that apply goes on, as that run is dead\n%s%s", args, o.stdout, o.err)
		}
	}
}

// Of files, a run counts as under way if it was when they were made; files that do not
// say when that was prove neither.
func TestVerifyAdvisesOfFiles(t *testing.T) {
	taken := time.Unix(0, 0).Add(-3 * time.Hour)
	objects := append(preparedCluster(), leaseOf(taken.Add(-30*time.Second)))
	live := invoke(t, objects, nil, done, "snapshot")
	if live.code != ExitOK {
		t.Fatal(live.err)
	}
	const was = "no run has moved the node; a run was under way at 1969-12-31T21:00:00Z, by she@host/1 since 1969-12-31T20:59:30Z: wait"
	head, body, _ := strings.Cut(live.stdout, "\n---\n")
	snapshot := strings.Replace(head, "1970-01-01T00:00:00Z", "1969-12-31T21:00:00Z", 1) + "\n---\n" + body
	for _, tt := range []struct{ name, text, want, lock string }{
		{"a snapshot", snapshot, was, `"holder": "she@host/1"`},
		{"a snapshot of a time at which the run was dead", live.stdout, "no run has moved the node: `dramigrate plan gpu-a` says", `"expired": true`},
		{"what kubectl has written", body,
			"no run has moved the node; whether she@host/1, who holds the lock of pool gpu-a since 1969-12-31T20:59:30Z, is at it still is not known, as the files do not say when they were made: if not, `dramigrate plan gpu-a` says", `"unknown": true`},
		{"what kubectl has written, without Leases", withoutLease(body),
			"no run has moved the node; whether a run is under way is not known, as locks could not be read: ", `"unknown": true`},
	} {
		file := filepath.Join(t.TempDir(), "files.yaml")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if o := invoke(t, nil, nil, done, "verify", "gpu-a", "-o", "json", "--from", file); !strings.Contains(o.stdout, tt.want) {
			t.Errorf("%s: exit code %d, want %q\n%s%s", tt.name, o.code, tt.want, o.stdout, o.err)
		}
		o := invoke(t, nil, nil, done, "status", "-o", "json", "--from", file)
		if !strings.Contains(o.stdout, tt.lock) || strings.Contains(o.stdout, `"expired"`) != strings.Contains(tt.lock, "expired") {
			t.Errorf("%s: status: exit code %d, want %s\n%s%s", tt.name, o.code, tt.lock, o.stdout, o.err)
		}
	}
}

// withoutLease leaves the Lease out of the objects of a snapshot.
func withoutLease(text string) string {
	var out []string
	for _, doc := range strings.Split(text, "\n---\n") {
		if !strings.Contains(doc, "kind: Lease\n") {
			out = append(out, doc)
		}
	}
	return strings.Join(out, "\n---\n")
}

// leaseOf is the lock of pool gpu-a as a run has renewed it last.
func leaseOf(renewed time.Time) runtime.Object {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dramigrate-system", Name: "pool-gpu-a"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("she@host/1"), LeaseDurationSeconds: ptr.To[int32](60),
			LeaseTransitions: ptr.To[int32](3), AcquireTime: &at, RenewTime: &at},
	}
}

// ofVerify makes it the lock of a verification.
func ofVerify(lease runtime.Object) runtime.Object {
	lease.(*coordinationv1.Lease).Annotations = map[string]string{"dramigrate.dev/operation": "verify"}
	return lease
}

// Who watches while a run goes on is not told to begin another.
func TestVerifyWatchAdvises(t *testing.T) {
	for _, tt := range []struct {
		name  string
		since time.Duration
		want  string
	}{
		{"a run", 30 * time.Second, "a run is under way, by she@host/1"},
		{"a run that is dead", time.Hour, "`dramigrate plan gpu-a` says whether the pool can be moved"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := startVerb(t, Streams{}, append(preparedCluster(), leaseOf(time.Now().Add(-tt.since))), nil, "verify", "gpu-a", "--watch", "--for", "1s")
			w.wait()
			if out := w.out.take(); !strings.Contains(out, tt.want) {
				t.Errorf("%s: want %q\n%s%s", tt.name, tt.want, out, w.err.take())
			}
		})
	}
}
