package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/engine"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// world is a Factory over a fake cluster.
type world struct {
	client kubernetes.Interface
	clock  clock.WithTicker
}

func (w *world) Config() (*rest.Config, error)         { return &rest.Config{Host: "fake"}, nil }
func (w *world) Client() (kubernetes.Interface, error) { return w.client, nil }
func (w *world) Clock() clock.WithTicker               { return w.clock }
func (w *world) PodNamespace() (string, error)         { return "team", nil }

// Dynamic serves what every server does; nothing of others is installed.
func (w *world) Dynamic() (dynamic.Interface, error) {
	return dynamicfake.NewSimpleDynamicClient(scheme.Scheme), nil
}

// runnerFunc is an engine that only answers.
type runnerFunc func(context.Context, *plan.Plan, engine.Payload) error

func (f runnerFunc) Run(ctx context.Context, p *plan.Plan, payload engine.Payload) error {
	return f(ctx, p, payload)
}

// preparedCluster has pool gpu-a of one node, and plugin and driver as prepare
// leaves them.
func preparedCluster() []runtime.Object {
	gpus := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
	set := func(namespace, name, folder string, labels map[string]string, operator corev1.NodeSelectorOperator, values ...string) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
			Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "c", Image: "i"}},
					Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
						HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/" + folder}}}},
					Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
						NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
							{Key: "dramigrate.dev/allocation", Operator: operator, Values: values}}}}}}},
				},
			}},
		}
	}
	plugin := set("kube-system", "plugin", "device-plugins", map[string]string{"name": "nvidia-device-plugin-ds"}, corev1.NodeSelectorOpDoesNotExist)
	return []runtime.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "cluster-uid"}},
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "a-1", UID: "a-1", Labels: map[string]string{"eks.amazonaws.com/nodegroup": "gpu-a", "nvidia.com/gpu.count": "2"}},
			Status: corev1.NodeStatus{
				Capacity: gpus, Allocatable: gpus, NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.2"},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		},
		plugin,
		set("dra", "driver", "plugins_registry", map[string]string{"dra-driver-nvidia-gpu-component": "kubelet-plugin"}, corev1.NodeSelectorOpIn, "dra"),
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "plugin-1", UID: "p1",
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "plugin", UID: plugin.UID, Controller: ptr.To(true)}}},
			Spec:   corev1.PodSpec{NodeName: "a-1", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		},
	}
}

type outcome struct {
	code        int
	stdout, err string
	ran         []*plan.Plan
}

// invoke runs a command line on a fake cluster. stdin is what a person types on a
// terminal; nil is no terminal.
func invoke(t *testing.T, objects []runtime.Object, stdin *string, run runnerFunc, args ...string) outcome {
	t.Helper()
	return invokeContext(t, t.Context(), objects, stdin, run, args...)
}

func invokeContext(t *testing.T, ctx context.Context, objects []runtime.Object, stdin *string, run runnerFunc, args ...string) outcome {
	t.Helper()
	return invokeWith(t, ctx, func(authorizationv1.ResourceAttributes) bool { return true }, objects, stdin, run, args...)
}

// invokeAs runs a command line for a caller who may do only some things.
func invokeAs(t *testing.T, may func(authorizationv1.ResourceAttributes) bool, objects []runtime.Object, args ...string) outcome {
	t.Helper()
	return invokeWith(t, t.Context(), may, objects, nil, done, args...)
}

func invokeWith(t *testing.T, ctx context.Context, may func(authorizationv1.ResourceAttributes) bool, objects []runtime.Object, stdin *string, run runnerFunc, args ...string) outcome {
	t.Helper()
	var out, err bytes.Buffer
	streams := Streams{In: strings.NewReader(""), Out: &out, Err: &err}
	if stdin != nil {
		streams.In, streams.InTTY = strings.NewReader(*stdin), true
	}
	client := fake.NewClientset(objects...)
	client.Discovery().(*discoveryfake.FakeDiscovery).FakedServerVersion = &version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2"}
	client.Resources = append(client.Resources, &metav1.APIResourceList{GroupVersion: "resource.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "deviceclasses", Kind: "DeviceClass"}}})
	allow(client, may)
	var ran []*plan.Plan
	a := &app{
		Streams: streams, Factory: &world{client: client, clock: clocktesting.NewFakeClock(time.Unix(0, 0))},
		build: Build{Version: "v0"},
		newRunner: func(d engine.Deps) (Runner, error) {
			return runnerFunc(func(ctx context.Context, p *plan.Plan, payload engine.Payload) error {
				ran = append(ran, p)
				d.Sink(event.RunStarted{Stamp: event.StampAt(time.Unix(0, 0).UTC()), Run: "r1", Plan: p})
				return run(ctx, p, payload)
			}), nil
		},
	}
	root := newRoot(a, "dramigrate")
	code := runRoot(ctx, root, args, streams)
	return outcome{code, out.String(), err.String(), ran}
}

// allow answers what the caller may do. A fake cluster would refuse everything.
func allow(client *fake.Clientset, may func(authorizationv1.ResourceAttributes) bool) {
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = a == nil || may(*a)
		return true, review, nil
	})
}

func done(context.Context, *plan.Plan, engine.Payload) error { return nil }

func TestApplyRunsThePlanThatItShows(t *testing.T) {
	var again *plan.Plan
	o := invoke(t, preparedCluster(), nil, func(ctx context.Context, _ *plan.Plan, payload engine.Payload) (err error) {
		again, err = payload.Replan(ctx)
		return err
	}, "apply", "gpu-a", "--yes", "--helper-image", "helper:1")
	if o.code != ExitOK || len(o.ran) != 1 {
		t.Fatalf("exit code %d, %d runs\n%s%s", o.code, len(o.ran), o.stdout, o.err)
	}
	p := o.ran[0]
	if p.Operation != plan.Migrate || p.Settings.HelperImage != "helper:1" || !strings.Contains(o.stdout, p.Digest) {
		t.Errorf("ran %s with %q; its digest %s is not on stdout", p.Operation, p.Settings.HelperImage, p.Digest)
	}
	if again.Digest != p.Digest {
		t.Errorf("planned again under the lock: %s, was %s", again.Digest, p.Digest)
	}
	if !strings.Contains(o.err, "run  migrate of pool gpu-a, run r1") || strings.Contains(o.stdout, "run r1") {
		t.Errorf("progress is not on stderr alone:\n%s", o.err)
	}
	if !strings.Contains(o.err, "dramigrate verify gpu-a") {
		t.Errorf("no next step is named:\n%s", o.err)
	}
}

func TestConfirmation(t *testing.T) {
	for _, c := range []struct {
		title, typed string
		code         int
	}{
		{"the pool's name", "gpu-a\n", ExitOK},
		{"another name", "gpu-b\n", ExitInterrupted},
		{"yes is not the name", "yes\n", ExitInterrupted},
		{"nothing", "", ExitInterrupted},
	} {
		t.Run(c.title, func(t *testing.T) {
			o := invoke(t, preparedCluster(), &c.typed, done, "apply", "gpu-a", "--helper-image", "h")
			if o.code != c.code || (len(o.ran) == 1) != (c.code == ExitOK) {
				t.Errorf("exit code %d, %d runs; want %d\n%s", o.code, len(o.ran), c.code, o.err)
			}
			if !strings.Contains(o.err, "Type the pool's name, gpu-a, to go on:") {
				t.Errorf("the question is not on stderr:\n%s", o.err)
			}
		})
	}
}

func TestExitCodesOfRuns(t *testing.T) {
	for _, c := range []struct {
		title string
		err   error
		code  int
		want  string
	}{
		{"done", nil, ExitOK, ""},
		{"locked", &engine.LockedError{LockInfo: cluster.LockInfo{Namespace: "n", Name: "pool-gpu-a", Holder: "she@host"}}, ExitLocked, "she@host"},
		{"refused", &engine.RefusedError{Reason: "the cluster has changed", Hint: "look at a new plan"}, ExitRefused, "look at a new plan"},
		{"stopped", fmt.Errorf("wrapped: %w", &engine.StoppedError{Err: errors.New("node/a-1: drain: a budget"), Hint: "run it again"}), ExitStopped, "node/a-1: drain: a budget; run it again"},
		{"stopped by another's lock", &engine.StoppedError{Err: &engine.LockedError{}}, ExitStopped, ""},
		{"anything else", errors.New("no such thing"), ExitError, "no such thing"},
	} {
		t.Run(c.title, func(t *testing.T) {
			o := invoke(t, preparedCluster(), nil, func(context.Context, *plan.Plan, engine.Payload) error { return c.err },
				"apply", "gpu-a", "--yes", "--helper-image", "h")
			if o.code != c.code || !strings.Contains(o.err, c.want) {
				t.Errorf("exit code %d, want %d; stderr:\n%s", o.code, c.code, o.err)
			}
			if n := strings.Count(o.err, "Error: "); (c.err == nil) != (n == 0) || n > 1 {
				t.Errorf("%d error lines:\n%s", n, o.err)
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	o := invokeContext(t, ctx, preparedCluster(), nil, done, "apply", "gpu-a", "--yes", "--helper-image", "h")
	if o.code != ExitInterrupted || len(o.ran) != 0 || !strings.Contains(o.err, "nothing was changed") {
		t.Errorf("exit code %d, %d runs\n%s", o.code, len(o.ran), o.err)
	}

	// Part-way it is not 130: there is something to go on with.
	ctx, cancel = context.WithCancelCause(t.Context())
	o = invokeContext(t, ctx, preparedCluster(), nil, func(ctx context.Context, _ *plan.Plan, _ engine.Payload) error {
		cancel(errInterrupted)
		return &engine.StoppedError{Err: context.Cause(ctx), Hint: "run it again"}
	}, "apply", "gpu-a", "--yes", "--helper-image", "h")
	if o.code != ExitStopped || !strings.Contains(o.err, "run it again") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
}

func TestDryRunClientAndNothingToDo(t *testing.T) {
	o := invoke(t, preparedCluster(), nil, done, "apply", "gpu-a", "--dry-run")
	if o.code != ExitOK || len(o.ran) != 0 || !strings.Contains(o.stdout, "Plan: move pool gpu-a") {
		t.Errorf("exit code %d, %d runs\n%s%s", o.code, len(o.ran), o.stdout, o.err)
	}
	o = invoke(t, preparedCluster(), nil, done, "rollback", "gpu-a", "--yes", "--helper-image", "h")
	if o.code != ExitOK || len(o.ran) != 0 || !strings.Contains(o.err, "Nothing to do.") {
		t.Errorf("exit code %d, %d runs\n%s%s", o.code, len(o.ran), o.stdout, o.err)
	}
}

func TestDetailedExitCode(t *testing.T) {
	if o := invoke(t, preparedCluster(), nil, done, "plan", "gpu-a", "--detailed-exitcode"); o.code != ExitChanges {
		t.Errorf("exit code %d, want %d\n%s%s", o.code, ExitChanges, o.stdout, o.err)
	}
	if o := invoke(t, preparedCluster(), nil, done, "plan", "gpu-a"); o.code != ExitOK {
		t.Errorf("exit code %d, want 0\n%s%s", o.code, o.stdout, o.err)
	}
	if o := invoke(t, preparedCluster(), nil, done, "plan", "gpu-a", "--for", "rollback", "--detailed-exitcode"); o.code != ExitOK {
		t.Errorf("nothing to do: exit code %d, want 0\n%s%s", o.code, o.stdout, o.err)
	}
}

func TestUnlock(t *testing.T) {
	// A lock of 60 s that was renewed that long before now.
	lease := func(ago time.Duration) []runtime.Object {
		renewed := time.Unix(0, 0).Add(-ago)
		return []runtime.Object{&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "dramigrate-system", Name: "pool-gpu-a", ResourceVersion: "1"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("she@host/1"), LeaseDurationSeconds: ptr.To[int32](60), LeaseTransitions: ptr.To[int32](3),
				RenewTime: &metav1.MicroTime{Time: renewed}, AcquireTime: &metav1.MicroTime{Time: renewed.Add(-time.Minute)}},
		}}
	}
	alive, dead := lease(30*time.Second), lease(61*time.Second)
	right, wrong := "gpu-a\n", "gpu-b\n"
	for _, c := range []struct {
		title string
		lease []runtime.Object
		typed *string
		args  string
		code  int
		want  string
	}{
		{"nobody holds it", nil, nil, "", ExitOK, "nobody holds it"},
		{"nobody holds it any more", nil, nil, "--yes --holder she@host/1", ExitOK, "nobody holds it"},
		{"another name", alive, &wrong, "", ExitInterrupted, "not confirmed"},
		{"the name, alive", alive, &right, "", ExitOK, "The lock is free."},
		{"the name, dead", dead, &right, "", ExitOK, "The lock is free."},
		{"no terminal, alive", alive, nil, "", ExitUsage, "give --yes and --holder 'she@host/1'"},
		{"no terminal, dead", dead, nil, "", ExitUsage, "give --yes to take the lock from she@host/1"},
		{"no terminal, named", alive, nil, "--holder she@host/1", ExitUsage, "give --yes to take the lock from she@host/1"},
		{"--yes, alive", alive, nil, "--yes", ExitLocked,
			"lease dramigrate-system/pool-gpu-a: she@host/1 may be alive: its lock expires at 1970-01-01T00:00:30Z unless it is renewed, and --yes alone takes one that has expired; wait until then, or add --holder 'she@host/1' to take it all the same"},
		{"--yes on a terminal, alive", alive, &right, "--yes", ExitLocked, "--holder 'she@host/1'"},
		{"--yes, alive, named", alive, nil, "--yes --holder she@host/1", ExitOK, "The lock is free."},
		{"--yes, alive, another named", alive, nil, "--yes --holder he@host/2", ExitLocked, "is held by she@host/1, not by he@host/2; nothing was taken"},
		{"--yes, dead, another named", dead, nil, "--yes --holder he@host/2", ExitLocked, "is held by she@host/1, not by he@host/2"},
		{"the name, another named", alive, &right, "--holder he@host/2", ExitLocked, "is held by she@host/1, not by he@host/2"},
		{"no holder in --holder", alive, nil, "--yes --holder=", ExitUsage, "--holder: name the holder"},
	} {
		t.Run(c.title, func(t *testing.T) {
			o := invoke(t, c.lease, c.typed, done, append([]string{"unlock", "gpu-a"}, strings.Fields(c.args)...)...)
			if o.code != c.code || !strings.Contains(o.err, c.want) {
				t.Errorf("exit code %d, want %d; want %q\n%s%s", o.code, c.code, c.want, o.stdout, o.err)
			}
			if shown := strings.Contains(o.stdout, "held by    she@host/1"); shown != (c.lease != nil && c.args != "--yes --holder=") {
				t.Errorf("the holder is shown: %v\n%s", shown, o.stdout)
			}
		})
	}
}

// A lock that looks expired is taken without a question only after nobody has renewed it
// for 60 s / 4 + 60 s / 12.
func TestUnlockWatchesTheExpired(t *testing.T) {
	const watches = "lease dramigrate-system/pool-gpu-a: watching for 20s whether she@host/1 renews it\n"
	for _, c := range []struct {
		title string
		then  func(*watching, *coordinationv1.Lease) int // after 12 s; waits for the end
		took  time.Duration
		code  int
		want  string
		left  string // who holds it in the end
	}{
		{title: "dead", then: func(w *watching, _ *coordinationv1.Lease) int { return w.wait() }, took: 20 * time.Second, code: ExitOK, want: watches + "The lock is free.\n"},
		{title: "alive, by a clock that is behind", took: 12 * time.Second, code: ExitLocked, left: "she@host/1",
			then: func(w *watching, l *coordinationv1.Lease) int {
				l.ResourceVersion, l.Spec.RenewTime.Time = "2", l.Spec.RenewTime.Add(15*time.Second)
				_, _ = w.CoordinationV1().Leases(l.Namespace).Update(context.Background(), l, metav1.UpdateOptions{})
				return w.wait()
			},
			want: watches + "Error: lease dramigrate-system/pool-gpu-a: she@host/1 may be alive: its lock, which had expired by this machine's clock, changed while it was watched; nothing was taken: look at it again, or add --holder 'she@host/1' to take it all the same\n"},
		{title: "interrupted", took: 12 * time.Second, code: ExitInterrupted, left: "she@host/1",
			then: func(w *watching, _ *coordinationv1.Lease) int { return w.stop() },
			want: watches + "Error: lease dramigrate-system/pool-gpu-a: watched whether she@host/1 renews it: interrupted; nothing was changed\n"},
	} {
		t.Run(c.title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lease := &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: "dramigrate-system", Name: "pool-gpu-a", ResourceVersion: "1"},
					Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("she@host/1"), LeaseDurationSeconds: ptr.To[int32](60),
						LeaseTransitions: ptr.To[int32](3), RenewTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}},
				}
				begin := time.Now()
				w := startVerb(t, Streams{}, []runtime.Object{lease.DeepCopy()}, nil, "unlock", "gpu-a", "--yes")
				time.Sleep(12 * time.Second)
				synctest.Wait()
				code := c.then(w, lease)
				if said := w.err.take(); code != c.code || said != c.want {
					t.Errorf("exit code %d, want %d; said\n%swant\n%s", code, c.code, said, c.want)
				}
				if took := time.Since(begin); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				after, err := w.CoordinationV1().Leases(lease.Namespace).Get(t.Context(), lease.Name, metav1.GetOptions{})
				if err != nil || *after.Spec.HolderIdentity != c.left {
					t.Errorf("lease %+v, %v; want it held by %q", after.Spec, err, c.left)
				}
			})
		})
	}
}

// Whoever takes the lock after it was shown keeps it.
func TestUnlockIsNotOfTheNextRun(t *testing.T) {
	shown := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dramigrate-system", Name: "pool-gpu-a", ResourceVersion: "1"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("she@host/1"), LeaseDurationSeconds: ptr.To[int32](60),
			LeaseTransitions: ptr.To[int32](3), RenewTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}},
	}
	next := shown.DeepCopy()
	next.Spec.HolderIdentity, next.Spec.LeaseTransitions = ptr.To("he@host/2"), ptr.To[int32](4)
	next.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	for _, args := range [][]string{{"--yes"}, {"--yes", "--holder", "she@host/1"}} {
		reads := 0
		w := startVerb(t, Streams{}, nil, func(client *fake.Clientset) {
			client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				if reads++; reads > 1 {
					return true, next, nil
				}
				return true, shown, nil
			})
		}, append([]string{"unlock", "gpu-a"}, args...)...)
		code := w.wait()
		if text := w.err.take(); code != ExitLocked || !strings.Contains(text, "is not as it was shown any more: he@host/2 holds it") {
			t.Errorf("%s: exit code %d\n%s", args, code, text)
		}
	}
}
