package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/plan"
)

// writeConfig goes into a folder of its own and writes migration.yaml there.
func writeConfig(t *testing.T, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("migration.yaml", []byte("apiVersion: dramigrate.dev/v1alpha1\nkind: MigrationConfig\n"+text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestConfigFillsWhatFlagsLeaveOut(t *testing.T) {
	writeConfig(t, `
toolNamespace: gpu-tools
helper: {image: "helper:1", pullSecret: registry}
class: {name: gold}
soak: 7m
drain: {evict: all, timeout: 9m, deleteEmptyDirData: true}
deadlines: {canary: 6m}
pools:
- name: gold-pool
  selector: eks.amazonaws.com/nodegroup=gpu-a
  drain: {deleteEmptyDirData: false, evictUnmanaged: true}
  batches: {maxUnavailable: 50%, explicit: [{nodes: [a-1]}]}
`)
	o := invoke(t, preparedCluster(), nil, done, "apply", "--yes", "--config", "migration.yaml", "--drain", "gpu", "--kubelet-grace", "6m")
	if o.code != ExitOK || len(o.ran) != 1 {
		t.Fatalf("exit code %d, %d runs\n%s%s", o.code, len(o.ran), o.stdout, o.err)
	}
	p := o.ran[0]
	want := plan.Settings{
		MaxUnavailable: "50%", Drain: "gpu", DrainTimeout: metav1.Duration{Duration: 9 * time.Minute}, EvictUnmanaged: true,
		Soak: metav1.Duration{Duration: 7 * time.Minute}, KubeletGrace: metav1.Duration{Duration: 6 * time.Minute},
		HelperImage: "helper:1", PullSecret: "registry", ClassName: "gold",
		Batches:   []plan.Batch{{Nodes: []string{"a-1"}}},
		Deadlines: plan.Deadlines{Canary: metav1.Duration{Duration: 6 * time.Minute}},
	}
	if diff := cmp.Diff(want, p.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if p.Namespace != "gpu-tools" || p.Pool.Name != "gold-pool" || p.Pool.Selector != "eks.amazonaws.com/nodegroup=gpu-a" || p.Class.Name != "gold" {
		t.Errorf("namespace %s, pool %+v, class %s", p.Namespace, p.Pool, p.Class.Name)
	}

	// Flags override, also by saying the default.
	o = invoke(t, preparedCluster(), nil, done, "apply", "gold-pool", "--yes", "--config", "migration.yaml",
		"--tool-namespace", "dramigrate-system", "--soak", "30s", "--helper-image", "helper:2", "--evict-unmanaged=false", "--max-unavailable", "10%")
	if o.code != ExitOK || len(o.ran) != 1 {
		t.Fatalf("exit code %d, %d runs\n%s%s", o.code, len(o.ran), o.stdout, o.err)
	}
	p = o.ran[0]
	if s := p.Settings; p.Namespace != "dramigrate-system" || s.Soak.Duration != 30*time.Second || s.HelperImage != "helper:2" || s.EvictUnmanaged || s.MaxUnavailable != "10%" {
		t.Errorf("namespace %s, settings %+v", p.Namespace, s)
	}
}

func TestConfigOfPrepare(t *testing.T) {
	writeConfig(t, "pluginRollout: on-delete\ndriver: {name: gpu.nvidia.com, manifests: sub/driver}\n")
	// The folder is looked for beside the file.
	if o := invoke(t, preparedCluster(), nil, done, "plan", "--for", "prepare", "--config", "migration.yaml"); o.code != ExitError || !strings.Contains(o.err, "--driver-manifests sub/driver: ") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
	writeConfig(t, "pluginRollout: on-delete\n")
	o := invoke(t, preparedCluster(), nil, done, "plan", "--for", "prepare", "--config", "migration.yaml", "-o", "yaml")
	if !strings.Contains(o.stdout, "pluginRollout: on-delete") {
		t.Errorf("exit code %d\n%s%s", o.code, o.stdout, o.err)
	}
	// What is for prepare alone does not stop other verbs.
	writeConfig(t, "driver: {manifests: sub/driver}\n")
	if o := invoke(t, preparedCluster(), nil, done, "plan", "gpu-a", "--config", "migration.yaml"); o.code != ExitOK {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
	if o := invoke(t, preparedCluster(), nil, done, "unprepare", "--dry-run", "--config", "migration.yaml"); strings.Contains(o.err, "manifests") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
}

func TestConfigUsage(t *testing.T) {
	for _, c := range []struct{ title, text, args, want string }{
		{"several pools", "pools: [{name: a}, {name: b}]\n", "plan", "name one of the pools of migration.yaml: a, b"},
		{"another pool", "pools: [{name: a}, {name: b}]\n", "plan gpu-a", `pool "gpu-a" is not in migration.yaml, which names a, b`},
		{"a selector without a name", "pools: [{name: a}]\n", "plan -l x=y", "--selector needs --pool beside --config migration.yaml: one of a"},
		{"no pool at all", "soak: 1s\n", "plan", "name the pool"},
		{"an unknown field", "sook: 1s\n", "plan gpu-a", "--config migration.yaml:3:1: sook: unknown field"},
		{"beside a saved plan", "soak: 1s\n", "apply --plan plan.yaml --yes", "a plan is run as it was saved: leave --config out"},
	} {
		t.Run(c.title, func(t *testing.T) {
			writeConfig(t, c.text)
			o := invoke(t, preparedCluster(), nil, done, append(strings.Fields(c.args), "--config", "migration.yaml")...)
			if o.code != ExitUsage || !strings.Contains(o.err, c.want) || o.stdout != "" {
				t.Errorf("exit code %d\n%s%s", o.code, o.stdout, o.err)
			}
		})
	}
	if o := invoke(t, preparedCluster(), nil, done, "plan", "gpu-a", "--config", "none.yaml"); o.code != ExitError || !strings.Contains(o.err, "--config: open none.yaml") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
}

// A rollback of a pool that the file makes by a selector finds it by the name.
func TestConfigOfRollback(t *testing.T) {
	writeConfig(t, "soak: 5m\npools: [{name: gold-pool, selector: eks.amazonaws.com/nodegroup=gpu-a}]\n")
	o := invoke(t, preparedCluster(), nil, done, "rollback", "--dry-run", "--config", "migration.yaml", "-o", "json")
	if o.code != ExitOK || !strings.Contains(o.stdout, `"name": "gold-pool"`) || strings.Contains(o.stdout, `"soak"`) {
		t.Errorf("exit code %d\n%s%s", o.code, o.stdout, o.err)
	}
}
