package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/plan"
)

const head = "apiVersion: dramigrate.dev/v1alpha1\nkind: MigrationConfig\n"

func minutes(n int) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(n) * time.Minute}
}

// The reference shows every field in one example.
func TestTheReferencesExample(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "config.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "\n```yaml\n")
	block, _, found := strings.Cut(block, "\n```\n")
	if !found {
		t.Fatal("the page has no YAML block")
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "migration.yaml")
	if err := os.WriteFile(file, []byte(block), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		APIVersion: "dramigrate.dev/v1alpha1", Kind: "MigrationConfig",
		ToolNamespace: "dramigrate-system", Resource: "nvidia.com/gpu",
		Driver:        Driver{Name: "gpu.nvidia.com", Manifests: filepath.Join(folder, "driver")},
		PluginRollout: OnDelete,
		Helper: Helper{
			Image:      "registry.example/dramigrate-helper@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
			PullSecret: "registry", DriverRoot: "/run/nvidia/driver",
		},
		Class: Class{Name: "gold-gpu"},
		PoolSettings: PoolSettings{
			Drain:        Drain{Evict: EvictGPU, Timeout: ptr.To(minutes(15)), DeleteEmptyDirData: ptr.To(false), EvictUnmanaged: ptr.To(false)},
			Soak:         &metav1.Duration{Duration: 30 * time.Second},
			KubeletGrace: &metav1.Duration{Duration: 310 * time.Second},
			Deadlines: plan.Deadlines{ClaimsGone: minutes(5), PluginGone: minutes(2), DriverReady: minutes(5), SlicesComplete: minutes(2),
				Canary: minutes(3), SlicesGone: minutes(2), PluginReady: minutes(5)},
		},
		Batches: Batches{MaxUnavailable: "10%", First: 1},
		Pools: []Pool{
			{Name: "gpu-a", PoolSettings: PoolSettings{Soak: ptr.To(minutes(10))}, Batches: PoolBatches{Batches: Batches{MaxUnavailable: "2"}}},
			{Name: "research", Selector: "example.com/team=research,nvidia.com/gpu.product=A100",
				PoolSettings: PoolSettings{Drain: Drain{EvictUnmanaged: ptr.To(true)}, Deadlines: plan.Deadlines{DriverReady: minutes(15)}},
				Batches:      PoolBatches{Explicit: []plan.Batch{{Nodes: []string{"r-01"}}, {Nodes: []string{"r-02", "r-03", "r-04"}}}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestForPool(t *testing.T) {
	c, err := Parse("f", []byte(head+`
soak: 1m
drain: {evict: all, timeout: 5m, evictUnmanaged: true}
deadlines: {canary: 9m, driverReady: 8m}
batches: {maxUnavailable: 3, first: 2}
pools:
- name: a
  soak: 0s
  drain: {evictUnmanaged: false}
  deadlines: {canary: 4m}
- name: b
  batches: {explicit: [{nodes: [x]}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	a := c.ForPool("a")
	want := Pool{Name: "a",
		PoolSettings: PoolSettings{
			Drain:     Drain{Evict: EvictAll, Timeout: ptr.To(minutes(5)), EvictUnmanaged: ptr.To(false)},
			Soak:      ptr.To(minutes(0)),
			Deadlines: plan.Deadlines{Canary: minutes(4), DriverReady: minutes(8)},
		},
		Batches: PoolBatches{Batches: Batches{MaxUnavailable: "3", First: 2}},
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("pool a (-want +got):\n%s", diff)
	}
	if b := c.ForPool("b"); *b.Soak != minutes(1) || b.Batches.First != 0 || b.Batches.MaxUnavailable != "3" {
		t.Errorf("pool b: %+v", b)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		title, text string
		want        string // the whole error
	}{
		{"an empty file", "", "f: is empty"},
		{"comments alone", "# nothing\n", "f: is empty"},
		{"no mapping", "- a\n", `f:1:1: must hold fields, is a list`},
		{"another kind", "apiVersion: v1\nkind: Pod\nspec: {}\n", `f:1:1: apiVersion "v1", kind "Pod": want dramigrate.dev/v1alpha1, MigrationConfig`},
		{"a later version", "apiVersion: dramigrate.dev/v1\nkind: MigrationConfig\n",
			`f:1:1: apiVersion "dramigrate.dev/v1", kind "MigrationConfig": want dramigrate.dev/v1alpha1, MigrationConfig`},
		{"a second document", head + "---\na: b\n", "f:3:1: holds a second document; one file is one MigrationConfig"},
		{"no YAML", head + "a: [b\n", "f: not YAML, near line 2: did not find expected ',' or ']'"},
		{"a tab", head + "drain:\n\tevict: gpu\n", "f: not YAML, near line 4: found character that cannot start any token"},
		{"an unknown field", head + "drian: {}\n", "f:3:1: drian: unknown field; known are apiVersion, batches, class, deadlines, drain, driver, helper, kind, kubeletGrace, pluginRollout, pools, resource, skips, soak, toolNamespace"},
		{"an unknown field, deep", head + "pools:\n- name: a\n  batches:\n    frist: 2\n", "f:6:5: pools[0].batches.frist: unknown field; known are explicit, first, maxUnavailable"},
		{"explicit batches of no pool", head + "batches: {explicit: []}\n", "f:3:11: batches.explicit: unknown field; known are first, maxUnavailable"},
		{"a field twice", head + "soak: 1s\nresource: a/b\nsoak: 2s\n", "f:5:1: soak: stands twice, first in line 3"},
		{"a number for a text", head + "driver: {name: 5}\n", "f:3:16: driver.name: must be a text, is the number 5; write it in quotes"},
		{"a truth value for a text", head + "resource: true\n", "f:3:11: resource: must be a text, is the truth value true; write it in quotes"},
		{"a text for a number", head + "batches: {first: one}\n", `f:3:18: batches.first: must be a whole number, is "one"`},
		{"a fraction", head + "batches: {first: 1.5}\n", `f:3:18: batches.first: must be a whole number, is the number 1.5`},
		{"a text for a truth value", head + "drain:\n  evictUnmanaged: yes\n", `f:4:19: drain.evictUnmanaged: must be true or false, is "yes"`},
		{"a list for fields", head + "helper: []\n", "f:3:9: helper: must hold fields, is a list"},
		{"fields for a list", head + "pools: {name: a}\n", "f:3:8: pools: must be a list, is a group of fields"},
		{"a number for a duration", head + "soak: 30\n", "f:3:7: soak: must be a duration such as 90s or 15m, is the number 30"},
		{"no duration", head + "soak: long\n", `f:3:7: soak: must be a duration such as 90s or 15m, is "long"`},
		{"an alias", head + "drain: &d {evict: gpu}\npools:\n- {name: a, drain: *d}\n",
			"f:3:8: drain: anchors and aliases are not read; write the value out\nf:5:20: pools[0].drain: anchors and aliases are not read; write the value out"},
		{"a merge key", head + "drain: {<<: {evict: gpu}}\n", "f:3:9: drain.<<: unknown field; known are deleteEmptyDirData, evict, evictUnmanaged, timeout"},

		{"a negative soak", head + "soak: -1s\n", "f:3:7: soak: -1s: must not be negative"},
		{"no time to drain", head + "drain: {timeout: 0s}\n", "f:3:18: drain.timeout: 0s: must be more than 0"},
		{"no time to wait", head + "pools:\n- name: a\n  deadlines: {canary: 0s}\n", "f:5:23: pools[0].deadlines.canary: 0s: must be at least 1s"},
		{"no share", head + "batches: {maxUnavailable: 110%}\n", `f:3:27: batches.maxUnavailable: max-unavailable "110%": must not be more than 100%`},
		{"an empty first batch", head + "batches: {first: 0}\n", "f:3:18: batches.first: 0: must be at least 1"},
		{"another drain", head + "drain: {evict: some}\n", `f:3:16: drain.evict: "some": must be gpu or all`},
		{"a driver root of nowhere", head + "helper: {driverRoot: run/nvidia}\n", `f:3:22: helper.driverRoot: "run/nvidia": must be an absolute path of the node`},
		{"two ways to the GPUs", head + "helper:\n  driverRoot: /d\n  runtimeClass: nvidia\n", "f:4:15: helper.driverRoot: has no place beside runtimeClass, which hands out the GPUs already; leave one of them out"},
		{"another rollout", head + "pluginRollout: never\n", `f:3:16: pluginRollout: "never": must be rolling-update or on-delete`},
		{"a pool without a name", head + "pools:\n- selector: a=b\n", "f:4:3: pools[0]: has no name"},
		{"two pools of one name", head + "pools:\n- name: a\n- name: a\n", `f:5:9: pools[1].name: "a" is the name of pools[0] already`},
		{"a node twice", head + "pools:\n- name: a\n  batches:\n    explicit:\n    - nodes: [x, y]\n    - nodes: [y]\n", `f:8:15: pools[0].batches.explicit[1].nodes[0]: node "y" is in explicit[0] already`},
		{"a batch of nothing", head + "pools:\n- name: a\n  batches: {explicit: [{}]}\n", "f:5:24: pools[0].batches.explicit[0]: has no nodes"},
		{"first beside explicit", head + "pools:\n- name: a\n  batches: {first: 1, explicit: [{nodes: [x]}]}\n", "f:5:20: pools[0].batches.first: has no effect beside explicit batches; leave it out"},
	} {
		t.Run(c.title, func(t *testing.T) {
			got, err := Parse("f", []byte(c.text))
			if err == nil || got != nil || err.Error() != c.want {
				t.Errorf("error\n%v\nwant\n%s", err, c.want)
			}
			var wrong *Error
			if !errors.As(err, &wrong) {
				t.Errorf("%T is no *Error", err)
			}
		})
	}
	for _, c := range []struct{ title, text, want string }{
		{"a namespace", head + "toolNamespace: A_B\n", `f:3:16: toolNamespace: "A_B": `},
		{"a class", head + "class: {name: A}\n", `f:3:15: class.name: "A": `},
		{"an empty class", head + "class: {name: ''}\n", `f:3:15: class.name: "": `},
		{"a runtime class", head + "helper: {runtimeClass: A_B}\n", `f:3:24: helper.runtimeClass: "A_B": `},
		{"a resource", head + "resource: a/b/c\n", `f:3:11: resource: "a/b/c": `},
		{"a selector", head + "pools:\n- {name: a, selector: 'a('}\n", "f:4:23: pools[0].selector: "},
		{"a node", head + "pools:\n- name: a\n  batches: {explicit: [{nodes: [A_]}]}\n", `f:5:33: pools[0].batches.explicit[0].nodes[0]: node "A_": `},
	} {
		if _, err := Parse("f", []byte(c.text)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s…", c.title, err, c.want)
		}
	}
}

func TestAllErrorsInTheOrderOfTheFile(t *testing.T) {
	_, err := Parse("f", []byte(head+"zzz: 1\nsoak: 5\nresource: a/b\naaa: 1\n"))
	if err == nil {
		t.Fatal("no error")
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		place, _, _ := strings.Cut(line, ": ")
		lines = append(lines, place)
	}
	if diff := cmp.Diff([]string{"f:3:1", "f:4:7", "f:6:1"}, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValuesAreThoseOfAPlan(t *testing.T) {
	for got, want := range map[string]string{
		string(RollingUpdate): plan.RollingUpdate, string(OnDelete): plan.OnDelete,
		string(EvictGPU): plan.DrainGPU, string(EvictAll): plan.DrainAll,
	} {
		if got != want {
			t.Errorf("%q, in a plan %q", got, want)
		}
	}
}

// A section with nothing but comments in it is null, and leaves things as they are.
func TestNullIsNothing(t *testing.T) {
	c, err := Parse("f", []byte(head+"drain:\npools:\nsoak:\nclass: {name: }\ndeadlines: {canary: ~}\n"))
	if err != nil || c.Soak != nil || c.Pools != nil || c.Class.Name != "" {
		t.Errorf("%+v, error %v", c, err)
	}
}

func TestLoadIsBounded(t *testing.T) {
	folder := t.TempDir()
	big := filepath.Join(folder, "big.yaml")
	if err := os.WriteFile(big, []byte(head+strings.Repeat("# all work and no play\n", maxSize/20)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big); err == nil || !strings.Contains(err.Error(), "is larger than 1048576 bytes") {
		t.Errorf("error %v", err)
	}
	if _, err := Load(filepath.Join(folder, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	// Deep nesting is the parser's to bound.
	if _, err := Parse("f", []byte(head+"drain: "+strings.Repeat("[", 100_000))); err == nil {
		t.Error("no error of deep nesting")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head))
	f.Add([]byte(head + "pools:\n- name: a\n  batches: {explicit: [{nodes: [x]}]}\n"))
	f.Add([]byte(head + "soak: &a 1s\ndrain: *a\n"))
	f.Add([]byte(head + "\"\\u001b[31m\": 1\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data)
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v, error %v", c, err)
		}
	})
}
