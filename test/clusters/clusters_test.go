// Package clusters plans on the clusters of testdata/clusters: what real ones look
// like, one file each. What a plan has to say about a cluster is written down here
// from what Kubernetes and the vendors do; the whole plan, as a reviewer sees it, is
// the golden beside the cluster's file.
package clusters

import (
	"bytes"
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/offline"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	folder  = filepath.Join("..", "..", "testdata", "clusters")
	drivers = filepath.Join("..", "..", "testdata", "drivers")
)

// wanted is what a plan has to say.
type wanted struct {
	op plan.Operation
	// pool is the pool's name; selector is for pools that no well-known label names.
	pool, selector string
	// into is the pool that the workloads move to.
	into string
	// manifests are the driver's folder for prepare; empty if the driver runs.
	manifests string
	// findings are all of them: severity, code, object.
	findings []string
	// refused says that apply has to refuse.
	refused bool
	// batches are the nodes in their order, batches separated by "|".
	batches string
	skipped []string
	// evicted and restarted are pods, namespace/name.
	evicted, restarted []string
	// gate is the gate's name; the own key if empty.
	gate string
	// class is what becomes of the DeviceClass: action and name.
	class string
	// resources are the plugin's; nvidia.com/gpu alone if empty.
	resources []string
}

// site is one cluster and what the plans for it have to say.
type site struct {
	name             string
	resource, driver string // NVIDIA's if empty
	// owners are the plugin's and the driver's DaemonSets with their owners.
	owners map[string]string
	// ignored are the objects that the tool has no use for, by kind.
	ignored map[string]int
	plans   []wanted
}

func TestClusters(t *testing.T) {
	t.Parallel()
	for _, c := range sites() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.load(t)
			c.resource, c.driver = cmp.Or(c.resource, "nvidia.com/gpu"), cmp.Or(c.driver, "gpu.nvidia.com")
			if diff := gocmp.Diff(c.owners, owners(s, c), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			for _, w := range c.plans {
				t.Run(w.name(), func(t *testing.T) { c.check(t, s, w) })
			}
		})
	}
}

// TestObjectsAloneProveNothing reads the clusters without the head that says what the
// objects are all of: they are as before, and no plan may be taken for fine.
func TestObjectsAloneProveNothing(t *testing.T) {
	t.Parallel()
	for _, c := range sites() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(folder, c.name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			_, objects, _ := bytes.Cut(data, []byte("\n---\n"))
			file := filepath.Join(t.TempDir(), "objects.yaml")
			if err := os.WriteFile(file, objects, 0o600); err != nil {
				t.Fatal(err)
			}
			s, _, err := offline.Read(t.Context(), []string{file}, offline.Options{Namespace: gate.DefaultNamespace, Advice: true})
			if err != nil {
				t.Fatal(err)
			}
			c.resource, c.driver = cmp.Or(c.resource, "nvidia.com/gpu"), cmp.Or(c.driver, "gpu.nvidia.com")
			for _, w := range c.plans {
				p := c.plan(t, s, w)
				blind := slices.ContainsFunc(p.Findings, func(f checks.Finding) bool { return f.Code == "DRM011" && f.Severity == checks.Unknown })
				if !blind || !checks.Stops(p.Findings) {
					t.Errorf("%s: findings %+v, want DRM011 to stop apply", w.name(), p.Findings)
				}
			}
		})
	}
}

// TestEveryClusterIsPlanned fails for a file that nobody plans on.
func TestEveryClusterIsPlanned(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, f := range files {
		got = append(got, strings.TrimSuffix(filepath.Base(f), ".yaml"))
	}
	for _, c := range sites() {
		want = append(want, c.name)
	}
	slices.Sort(want)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("clusters (-planned +files):\n%s", diff)
	}
}

// load reads the cluster's file, which has to be as good as a live look at it.
func (c site) load(t *testing.T) *cluster.Snapshot {
	t.Helper()
	s, ignored, err := offline.Read(t.Context(), []string{filepath.Join(folder, c.name+".yaml")}, offline.Options{Namespace: gate.DefaultNamespace, Advice: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Unknown) > 0 || s.Source != nil {
		t.Errorf("unknown %v, source %+v: want the whole cluster", s.Unknown, s.Source)
	}
	if diff := gocmp.Diff(c.ignored, ignored, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("ignored objects (-want +got):\n%s", diff)
	}
	return s
}

func (w wanted) name() string {
	if w.pool == "" {
		return string(w.op)
	}
	if w.into != "" {
		return string(w.op) + "-" + w.pool + "-into-" + w.into
	}
	return string(w.op) + "-" + w.pool
}

func owners(s *cluster.Snapshot, c site) map[string]string {
	out := map[string]string{}
	inv := gate.Detect(s)
	for _, p := range inv.PluginsFor(c.resource) {
		out[p.DaemonSet.Namespace+"/"+p.DaemonSet.Name] = p.Owner.String()
	}
	for _, d := range inv.DriversFor(c.driver) {
		out[d.DaemonSet.Namespace+"/"+d.DaemonSet.Name] = d.Owner.String()
	}
	return out
}

func (c site) check(t *testing.T, s *cluster.Snapshot, w wanted) {
	p := c.plan(t, s, w)
	if w.resources == nil {
		w.resources = []string{c.resource}
	}
	var findings, skipped, evicted, restarted, batches []string
	for _, f := range p.Findings {
		if f.Severity == checks.Info {
			continue // what only informs is in the golden
		}
		findings = append(findings, string(f.Severity)+" "+f.Code+" "+f.Object)
	}
	for _, n := range p.Skipped {
		skipped = append(skipped, n.Node+" "+n.Why)
	}
	for _, e := range p.Evictions {
		evicted = append(evicted, e.Pod)
	}
	for _, r := range p.Restarts {
		restarted = append(restarted, r.Pod)
	}
	for _, b := range p.Batches {
		batches = append(batches, strings.Join(b.Nodes, " "))
	}
	same := func(what string, want, got []string) {
		t.Helper()
		slices.Sort(want)
		slices.Sort(got)
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	same("findings", w.findings, findings)
	same("nodes left alone", w.skipped, skipped)
	same("pods evicted", w.evicted, evicted)
	same("pods restarted", w.restarted, restarted)
	same("resources", w.resources, p.Resources)
	if got := strings.Join(batches, " | "); got != w.batches {
		t.Errorf("batches %q, want %q", got, w.batches)
	}
	if got := checks.Stops(p.Findings); got != w.refused {
		t.Errorf("apply refuses: %t, want %t", got, w.refused)
	}
	if want := cmp.Or(w.gate, gate.OwnKeyName); p.Gate.Name != want {
		t.Errorf("gate %s, want %s", p.Gate.Name, want)
	}
	if p.Class != nil && string(p.Class.Action)+" "+p.Class.Name != w.class {
		t.Errorf("class %s %s, want %s", p.Class.Action, p.Class.Name, w.class)
	}
	golden(t, filepath.Join(folder, c.name, w.name()+".txt"), p)
}

func (c site) plan(t *testing.T, s *cluster.Snapshot, w wanted) *plan.Plan {
	t.Helper()
	in := plan.Intent{
		Operation: w.op, ToolVersion: "v0.1.0", Namespace: gate.DefaultNamespace, Resource: c.resource, Driver: c.driver,
	}
	if journal := s.Journal(""); journal != nil {
		in.Shared = journal.Shared
	}
	var err error
	switch w.op {
	case plan.Prepare:
		in.Settings.PluginRollout = plan.RollingUpdate
		if w.manifests != "" {
			in.Manifests, err = plan.ReadManifests(os.DirFS(filepath.Join(drivers, w.manifests)))
		}
	case plan.Migrate, plan.Rollback:
		in.Settings = plan.Settings{
			MaxUnavailable: plan.DefaultMaxUnavailable, Drain: plan.DrainGPU,
			DrainTimeout: metav1.Duration{Duration: plan.DefaultDrainTimeout}, HelperImage: "registry.example.com/dramigrate:v0.1.0",
		}
		if w.op == plan.Migrate {
			in.Settings.Soak = metav1.Duration{Duration: plan.DefaultSoak}
			in.Settings.KubeletGrace = metav1.Duration{Duration: plan.DefaultKubeletGrace}
		}
		in.Pool, err = cluster.SelectPool(s, w.pool, w.selector)
		if err == nil && w.into != "" {
			in.Into, err = cluster.SelectPool(s, w.into, "")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Build(in, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// golden compares the plan's table with a file that a person has read. The digest
// changes with every field of a plan and tells a reader nothing, so it is left out.
func golden(t *testing.T, path string, p *plan.Plan) {
	t.Helper()
	p.Digest = "(left out)"
	var b bytes.Buffer
	if err := report.Plan(report.Sheet{Writer: colorprofile.NewWriter(&b, nil)}, p); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
