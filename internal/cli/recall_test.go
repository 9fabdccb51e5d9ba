package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// journalOf is pool gpu-a's, with these runs after one of another image.
func journalOf(runs ...string) *corev1.ConfigMap {
	text := `apiVersion: dramigrate.dev/v1alpha1
kind: Journal
pool: gpu-a
runs:
- {id: r1, operation: migrate, who: me, toolVersion: v1, epoch: 1, planDigest: x, started: "2026-01-01T00:00:00Z", helperImage: first, helperRuntimeClass: old, outcome: stopped}
`
	for _, fields := range runs {
		if !strings.Contains(fields, "outcome:") {
			fields = "outcome: stopped, " + fields
		}
		text += `- {id: r2, operation: migrate, who: me, toolVersion: v1, epoch: 2, planDigest: x, started: "2026-01-02T00:00:00Z", ` + fields + "}\n"
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dramigrate-system", Name: "pool-gpu-a", Labels: map[string]string{cluster.KindLabel: cluster.KindJournal}},
		Data:       map[string]string{cluster.JournalKey: text},
	}
}

// What is printed after a run, and what a person types in a hurry, is a verb and the
// pool's name. The helper pods are then those of the pool's last run that had any.
func TestRunRecallsTheHelper(t *testing.T) {
	const byRoot = `helperImage: "last@sha256:1", helperPullSecret: s, helperDriverRoot: /run/nvidia/driver`
	// A run of another pool's gate may have had no helper pods at all.
	const none = `message: x`
	for _, tt := range []struct {
		name    string
		journal *corev1.ConfigMap
		args    []string
		want    podWay
	}{
		{"all of it", journalOf(byRoot), nil, podWay{image: "last@sha256:1", pullSecret: "s", driverRoot: "/run/nvidia/driver"}},
		{"past a run without pods", journalOf(byRoot, none), nil, podWay{image: "last@sha256:1", pullSecret: "s", driverRoot: "/run/nvidia/driver"}},
		{"nothing from before the last", journalOf(`helperImage: plain`), nil, podWay{image: "plain"}},
		{"one that went to its end, not one that stopped", journalOf(`helperImage: works, outcome: done`, `helperImage: mistyped`), nil, podWay{image: "works"}},
		{"the image is given", journalOf(byRoot), []string{"--helper-image", "other"}, podWay{image: "other", driverRoot: "/run/nvidia/driver"}},
		{"the secret is given", journalOf(byRoot), []string{"--helper-pull-secret", "mine"}, podWay{image: "last@sha256:1", pullSecret: "mine", driverRoot: "/run/nvidia/driver"}},
		{"the runtime class is given", journalOf(byRoot), []string{"--runtime-class", "nvidia"}, podWay{image: "last@sha256:1", pullSecret: "s", runtimeClass: "nvidia"}},
		{"no driver root is given", journalOf(byRoot), []string{"--driver-root", ""}, podWay{image: "last@sha256:1", pullSecret: "s"}},
		{"a class is recalled", journalOf(byRoot, `helperImage: i, helperRuntimeClass: nvidia`), nil, podWay{image: "i", runtimeClass: "nvidia"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := invoke(t, append(preparedCluster(), tt.journal), nil, done, append([]string{"apply", "gpu-a", "--yes"}, tt.args...)...)
			if o.code != ExitOK || len(o.ran) != 1 {
				t.Fatalf("exit code %d, %d runs\n%s%s", o.code, len(o.ran), o.stdout, o.err)
			}
			wantWay(t, o.ran[0].Settings, tt.want)
		})
	}
}

func wantWay(t *testing.T, s plan.Settings, want podWay) {
	t.Helper()
	got := podWay{s.HelperImage, s.PullSecret, s.RuntimeClass, s.DriverRoot}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(podWay{})); diff != "" {
		t.Errorf("helper pods (-want +got):\n%s", diff)
	}
}

// A saved plan is run as it was reviewed, whatever the pool's last run had.
func TestSavedPlanRecallsNothing(t *testing.T) {
	file := t.TempDir() + "/plan.yaml"
	objects := func() []runtime.Object {
		return append(preparedCluster(), journalOf(`helperImage: "last@sha256:1", helperDriverRoot: /run/nvidia/driver`))
	}
	if o := invoke(t, objects(), nil, done, "plan", "gpu-a", "--helper-image", "reviewed", "--driver-root", "", "--out", file); o.code != ExitOK {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.err)
	}
	o := invoke(t, objects(), nil, done, "apply", file, "--yes")
	if o.code != ExitOK || len(o.ran) != 1 {
		t.Fatalf("exit code %d, %d runs\n%s%s", o.code, len(o.ran), o.stdout, o.err)
	}
	wantWay(t, o.ran[0].Settings, podWay{image: "reviewed"})
	for _, flag := range []string{"--driver-root=/d", "--runtime-class=nvidia"} {
		o := invoke(t, objects(), nil, done, "apply", file, "--yes", flag)
		if o.code != ExitUsage || !strings.Contains(o.err, "a plan is run as it was saved: leave --") || len(o.ran) != 0 {
			t.Errorf("%s: exit code %d, %d runs, stderr %q; want that the plan has it already", flag, o.code, len(o.ran), o.err)
		}
	}
}

// The intent file says it for every pool, over what the last run had and under the flags.
func TestConfigOfTheReach(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		args       []string
		want       podWay
	}{
		{"a driver root", "helper: {image: i, driverRoot: /d}\n", nil, podWay{image: "i", driverRoot: "/d"}},
		{"a runtime class", "helper: {image: i, runtimeClass: nvidia}\n", nil, podWay{image: "i", runtimeClass: "nvidia"}},
		{"the other way by flag", "helper: {image: i, driverRoot: /d}\n", []string{"--runtime-class", "nvidia"}, podWay{image: "i", runtimeClass: "nvidia"}},
		{"the same way by flag", "helper: {image: i, driverRoot: /d}\n", []string{"--driver-root", "/e"}, podWay{image: "i", driverRoot: "/e"}},
		{"neither, by flag", "helper: {image: i, driverRoot: /d}\n", []string{"--driver-root="}, podWay{image: "i"}},
		{"nothing but an image", "helper: {image: i}\n", nil, podWay{image: "i", runtimeClass: "old"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			writeConfig(t, tt.file)
			for _, verb := range []string{"apply", "rollback"} {
				o := invoke(t, append(preparedCluster(), journalOf()), nil, done, append([]string{"plan", "gpu-a", "--for", verb, "-o", "json", "--config", "migration.yaml"}, tt.args...)...)
				var p plan.Plan
				if o.code != ExitOK || json.Unmarshal([]byte(o.stdout), &p) != nil {
					t.Fatalf("%s: exit code %d\n%s%s", verb, o.code, o.stdout, o.err)
				}
				wantWay(t, p.Settings, tt.want)
			}
		})
	}
}

// podsRefused is a cluster that refuses pods, and tells which it was to make.
func podsRefused(t *testing.T, objects []runtime.Object, args ...string) (code int, stderr string, pods []*corev1.Pod) {
	t.Helper()
	var mu sync.Mutex
	w := startVerb(t, Streams{}, objects, func(c *fake.Clientset) {
		c.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			pods = append(pods, a.(clienttesting.CreateAction).GetObject().(*corev1.Pod))
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("none today"))
		})
	}, args...)
	return w.wait(), w.err.take(), pods
}

// probe and verify --probe know the pool's last helper as well.
func TestProbeRecallsTheHelper(t *testing.T) {
	withJournal := func(fields string) []runtime.Object {
		objects := movedCluster(t)
		for _, o := range objects {
			if c, ok := o.(*corev1.ConfigMap); ok && c.Name == "pool-gpu-a" {
				c.Data[cluster.JournalKey] = strings.Replace(c.Data[cluster.JournalKey], "outcome: done", "outcome: done"+fields, 1)
			}
		}
		return objects
	}
	for _, verb := range [][]string{{"probe", "gpu-a"}, {"verify", "gpu-a", "--probe"}} {
		_, stderr, pods := podsRefused(t, withJournal(", helperImage: last, helperPullSecret: s, helperDriverRoot: /d"), verb...)
		if len(pods) != len(movedNodes) {
			t.Fatalf("%q: %d pods, want one for each of %d nodes\n%s", verb, len(pods), len(movedNodes), stderr)
		}
		for _, p := range pods {
			c := p.Spec.Containers[0]
			if c.Image != "last" || len(p.Spec.ImagePullSecrets) != 1 || !strings.Contains(strings.Join(c.Args, " "), "--driver-root /d") || c.SecurityContext.Privileged == nil {
				t.Errorf("%q: image %q, secrets %v, args %q; want those of the last run", verb, c.Image, p.Spec.ImagePullSecrets, c.Args)
			}
		}
		_, stderr, pods = podsRefused(t, withJournal(", helperImage: last, helperDriverRoot: /d"), append(verb, "--runtime-class", "nvidia")...)
		for _, p := range pods {
			if c := p.Spec.Containers[0]; c.SecurityContext.Privileged != nil || p.Spec.RuntimeClassName == nil || *p.Spec.RuntimeClassName != "nvidia" {
				t.Errorf("%q with a runtime class: %+v", verb, c.SecurityContext)
			}
		}
		if len(pods) == 0 {
			t.Errorf("%q with a runtime class: no pods\n%s", verb, stderr)
		}

		// Without an image, and a run that had one, there is nothing to make a pod of.
		code, stderr, pods := podsRefused(t, movedCluster(t), verb...)
		if want := "give the image of the helper pods by --helper-image or the variable DRAMIGRATE_HELPER_IMAGE; no earlier run of the pool has named one"; code != ExitUsage || !strings.Contains(stderr, want) || len(pods) != 0 {
			t.Errorf("%q: exit code %d, %d pods, stderr %q; want %d and %q", verb, code, len(pods), stderr, ExitUsage, want)
		}
	}
	code, stderr, _ := podsRefused(t, withJournal(", helperImage: last"), "probe", "--node", movedNodes[0])
	if code != ExitUsage || !strings.Contains(stderr, "give the image of the helper pods") {
		t.Errorf("nodes of no pool: exit code %d, stderr %q", code, stderr)
	}
}

// The intent file says it to probe and verify as it says it to apply: over what the last
// run had and under the flags.
func TestProbeByConfig(t *testing.T) {
	moved, withJournal := movedCluster(t), movedCluster(t)
	for _, o := range withJournal {
		if c, ok := o.(*corev1.ConfigMap); ok && c.Name == "pool-gpu-a" {
			c.Data[cluster.JournalKey] = strings.Replace(c.Data[cluster.JournalKey], "outcome: done", "outcome: done, helperImage: last, helperDriverRoot: /last", 1)
		}
	}
	const both = "helper: {image: i, pullSecret: s, driverRoot: /d}\n"
	for _, tt := range []struct {
		name, file string
		args       string
		want       podWay
	}{
		{"a driver root", both, "probe gpu-a", podWay{image: "i", pullSecret: "s", driverRoot: "/d"}},
		{"of verify", both, "verify gpu-a --probe", podWay{image: "i", pullSecret: "s", driverRoot: "/d"}},
		{"a runtime class", "helper: {image: i, runtimeClass: nvidia}\n", "probe gpu-a", podWay{image: "i", runtimeClass: "nvidia"}},
		{"the other way by flag", both, "probe gpu-a --runtime-class nvidia", podWay{image: "i", pullSecret: "s", runtimeClass: "nvidia"}},
		{"the image by flag", both, "verify gpu-a --probe --helper-image f", podWay{image: "f", pullSecret: "s", driverRoot: "/d"}},
		{"nothing but an image", "helper: {image: i}\n", "probe gpu-a", podWay{image: "i", driverRoot: "/last"}},
		{"nothing of helpers", "pools: [{name: gpu-a}]\n", "probe gpu-a", podWay{image: "last", driverRoot: "/last"}},
		{"its one pool", both + "pools: [{name: gpu-a}]\n", "probe", podWay{image: "i", pullSecret: "s", driverRoot: "/d"}},
		{"its one pool, verified", both + "pools: [{name: gpu-a}]\n", "verify --probe", podWay{image: "i", pullSecret: "s", driverRoot: "/d"}},
		{"a node of no pool", both + "pools: [{name: gpu-a}, {name: gpu-b}]\n", "probe --node " + movedNodes[0], podWay{image: "i", pullSecret: "s", driverRoot: "/d"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			writeConfig(t, tt.file)
			_, stderr, pods := podsRefused(t, withJournal, append(strings.Fields(tt.args), "--config", "migration.yaml")...)
			if len(pods) == 0 {
				t.Fatalf("no pods\n%s", stderr)
			}
			wantPod(t, pods[0], tt.want)
		})
	}
	for args, want := range map[string]string{
		"probe":              "name one of the pools of migration.yaml: gpu-a, gpu-b",
		"verify":             "name one of the pools of migration.yaml: gpu-a, gpu-b",
		"probe gpu-c":        `pool "gpu-c" is not in migration.yaml`,
		"verify --config no": "open no: no such file or directory",
	} {
		writeConfig(t, "pools: [{name: gpu-a}, {name: gpu-b}]\n")
		words := strings.Fields(args)
		o := invoke(t, moved, nil, done, append([]string{words[0], "--config", "migration.yaml"}, words[1:]...)...)
		if o.code == ExitOK || !strings.Contains(o.err, want) {
			t.Errorf("%s: exit code %d, stderr %q, want %q", args, o.code, o.err, want)
		}
	}
}

// wantPod holds a pod against how it was to be made.
func wantPod(t *testing.T, p *corev1.Pod, want podWay) {
	t.Helper()
	got := podWay{image: p.Spec.Containers[0].Image}
	for _, s := range p.Spec.ImagePullSecrets {
		got.pullSecret = s.Name
	}
	if p.Spec.RuntimeClassName != nil {
		got.runtimeClass = *p.Spec.RuntimeClassName
	}
	if _, root, found := strings.Cut(strings.Join(p.Spec.Containers[0].Args, " "), "--driver-root "); found {
		got.driverRoot, _, _ = strings.Cut(root, " ")
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(podWay{})); diff != "" {
		t.Errorf("the pod (-want +got):\n%s", diff)
	}
}

// Who may not read the journal can say by flags what it would.
func TestProbeWithoutTheJournal(t *testing.T) {
	run := func(args ...string) (int, string, int) {
		pods := 0
		w := startVerb(t, Streams{}, movedCluster(t), func(c *fake.Clientset) {
			c.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "pool-gpu-a", errors.New("not yours"))
			})
			c.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				pods++
				return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("none today"))
			})
		}, append([]string{"probe", "gpu-a", "--parallel", "1"}, args...)...)
		return w.wait(), w.err.take(), pods
	}
	if code, stderr, pods := run(); code != ExitUsage || pods != 0 || !strings.Contains(stderr, "the pool's journal, which may name one, could not be read: configmap/dramigrate-system/pool-gpu-a: ") {
		t.Errorf("without an image: exit code %d, %d pods, stderr %q", code, pods, stderr)
	}
	if code, stderr, pods := run("--helper-image", "i"); code != ExitUnknown || pods != 2 || !strings.Contains(stderr, "Warning: how the pool's last run got at the GPUs is not known: ") {
		t.Errorf("with an image: exit code %d, %d pods, stderr %q", code, pods, stderr)
	}
	if code, stderr, pods := run("--helper-image", "i", "--driver-root", "/d"); code != ExitUnknown || pods != 2 || strings.Contains(stderr, "journal") || strings.Contains(stderr, "Warning") {
		t.Errorf("with all of it: exit code %d, %d pods, stderr %q", code, pods, stderr)
	}
}

// Reports that cannot be saved hide no verdict.
func TestProbeSaveFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, stderr, _ := podsRefused(t, movedCluster(t), "probe", "gpu-a", "--helper-image", "i", "--driver-root", "/d", "--save", filepath.Join(file, "reports"))
	if code != ExitUnknown || !strings.Contains(stderr, "Warning: --save: ") {
		t.Errorf("exit code %d, want %d and a warning: %s", code, ExitUnknown, stderr)
	}
}
