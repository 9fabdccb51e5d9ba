package cli

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

// movedNodes are those of pool gpu-a in the cluster of movedCluster.
var movedNodes = []string{"ip-10-3-1-11.ec2.internal", "ip-10-3-1-12.ec2.internal"}

// movedCluster is one whose pool gpu-a is on DRA and has settled.
func movedCluster(t *testing.T) []runtime.Object {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "clusters", "migrated.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out []runtime.Object
	for _, doc := range strings.Split(string(data), "\n---\n")[1:] { // the first tells of the collection
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

// nodeOf is one of the objects.
func nodeOf(t *testing.T, objects []runtime.Object, name string) *corev1.Node {
	t.Helper()
	for _, o := range objects {
		if n, ok := o.(*corev1.Node); ok && n.Name == name {
			return n
		}
	}
	t.Fatalf("no node %s", name)
	return nil
}

// offers sets what a node offers by the plugin.
func offers(n *corev1.Node, count string) {
	n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse(count)
}

// exported is what of a text file Prometheus would keep: for each verdict its objects,
// and the time.
func exported(t *testing.T, file string) (verdicts map[string][]string, at float64) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(f)
	if err != nil {
		t.Fatal(err)
	}
	verdicts = map[string][]string{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			switch name {
			case "dramigrate_verify_timestamp_seconds":
				at = m.GetGauge().GetValue()
			case "dramigrate_pool_verdict":
				verdicts[labels["verdict"]] = append(verdicts[labels["verdict"]], "pool "+labels["pool"])
			case "dramigrate_node_verdict":
				verdicts[labels["verdict"]] = append(verdicts[labels["verdict"]], labels["node"])
			}
		}
	}
	for _, of := range verdicts {
		slices.Sort(of)
	}
	return verdicts, at
}

func wantExported(t *testing.T, file string, want map[string][]string) {
	t.Helper()
	got, _ := exported(t, file)
	for _, verdict := range []string{"ok", "failed", "unknown", "double"} {
		if !slices.Equal(got[verdict], want[verdict]) {
			t.Errorf("%s of %q, want %q", verdict, got[verdict], want[verdict])
		}
	}
}

// Of two looks the one counts that a person has to act on first: a device in two hands
// before a step that is missing, and that before what could not be seen.
func TestWorse(t *testing.T) {
	order := []int{ExitBlocked, ExitError, ExitUnknown, ExitOK}
	for i, a := range order {
		for j, b := range order {
			if got, want := worse(a, b), order[min(i, j)]; got != want {
				t.Errorf("worse(%d, %d) is %d, want %d", a, b, got, want)
			}
		}
	}
}

// The file tells what the exit code does, and the exit code is that without a file.
func TestVerifyTextfile(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(t *testing.T, objects []runtime.Object)
		code int
		want map[string][]string
	}{
		{"all is well", nil, ExitOK, map[string][]string{"ok": {movedNodes[0], movedNodes[1], "pool gpu-a"}}},
		{"one node offers by both", func(t *testing.T, objects []runtime.Object) {
			offers(nodeOf(t, objects, movedNodes[0]), "2")
		}, ExitBlocked, map[string][]string{"double": {movedNodes[0], "pool gpu-a"}, "ok": {movedNodes[1]}}},
		{"one node is closed", func(t *testing.T, objects []runtime.Object) {
			n := nodeOf(t, objects, movedNodes[1])
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "dramigrate.dev/switching", Effect: corev1.TaintEffectNoSchedule})
		}, ExitError, map[string][]string{"failed": {movedNodes[1], "pool gpu-a"}, "ok": {movedNodes[0]}}},
		{"of one node nothing is recorded", func(t *testing.T, objects []runtime.Object) {
			nodeOf(t, objects, movedNodes[0]).Annotations = nil
		}, ExitUnknown, map[string][]string{"unknown": {movedNodes[0], "pool gpu-a"}, "ok": {movedNodes[1]}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			world := func() []runtime.Object {
				objects := movedCluster(t)
				if tt.edit != nil {
					tt.edit(t, objects)
				}
				return objects
			}
			dir := t.TempDir()
			file := filepath.Join(dir, "gpu-a.prom")
			if o := invoke(t, world(), nil, done, "verify", "gpu-a", "--textfile", file); o.code != tt.code {
				t.Errorf("exit code %d, want %d\n%s%s", o.code, tt.code, o.stdout, o.err)
			}
			if o := invoke(t, world(), nil, done, "verify", "gpu-a"); o.code != tt.code {
				t.Errorf("exit code %d without a file, want %d", o.code, tt.code)
			}
			wantExported(t, file, tt.want)
		})
	}
}

// A collector that has the old file open goes on reading the old one; there is no moment
// at which the name is of half a file, and nothing else is left in the folder.
func TestVerifyTextfileIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "gpu-a.prom")
	const before = "what was there, and is longer than nothing\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	if o := invoke(t, movedCluster(t), nil, done, "verify", "gpu-a", "--textfile", file); o.code != ExitOK {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.err)
	}
	if read, err := io.ReadAll(old); err != nil || string(read) != before {
		t.Errorf("the open file holds %q (%v), want what was there", read, err)
	}
	if _, at := exported(t, file); at != 0 { // the fake clock's
		t.Errorf("of %v seconds since 1970, want 0", at)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v (%v) is in the folder, want the file alone", entries, err)
	}
	// The node exporter runs as another user.
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v (%v), want 0644", info.Mode(), err)
	}

	nowhere := filepath.Join(dir, "nowhere", "gpu-a.prom")
	o := invoke(t, movedCluster(t), nil, done, "verify", "gpu-a", "--textfile", nowhere)
	if want := "--textfile: write " + nowhere + ": no such file or directory"; o.code != ExitError || !strings.Contains(o.err, want) {
		t.Errorf("exit code %d, stderr %q; want %d and %q", o.code, o.err, ExitError, want)
	}
	// A file that cannot be written hides nothing.
	double := movedCluster(t)
	offers(nodeOf(t, double, movedNodes[0]), "2")
	o = invoke(t, double, nil, done, "verify", "gpu-a", "--textfile", nowhere)
	if o.code != ExitBlocked || !strings.Contains(o.stdout, "ADVERTISED TWICE") || !strings.Contains(o.err, "Warning: --textfile: ") {
		t.Errorf("exit code %d, want %d, the verdict and a warning\n%s%s", o.code, ExitBlocked, o.stdout, o.err)
	}
}

// watchVerify is a `verify --watch` of pool gpu-a.
func watchVerify(t *testing.T, args ...string) *watching {
	t.Helper()
	w := startVerb(t, Streams{}, movedCluster(t), nil, append([]string{"verify", "gpu-a", "--watch"}, args...)...)
	synctest.Wait()
	return w
}

func (w *watching) offers(t *testing.T, node, count string) {
	t.Helper()
	n, err := w.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n = n.DeepCopy()
	offers(n, count)
	if _, err := w.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// told are lines without their times.
func told(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		_, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		out = append(out, what)
	}
	return out
}

// A soak in which the plugin came back for a while: each change is one line, the file is
// of the last look, and the exit code of the worst.
func TestVerifyWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gpu-a.prom")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := watchVerify(t, "--for", "10m", "--textfile", file)
		if got, want := told(w.out.take()), []string{"node/" + movedNodes[0] + "  ok", "node/" + movedNodes[1] + "  ok", "pool/gpu-a  ok"}; !slices.Equal(got, want) {
			t.Errorf("first %q, want %q", got, want)
		}
		wantExported(t, file, map[string][]string{"ok": {movedNodes[0], movedNodes[1], "pool gpu-a"}})

		w.offers(t, movedNodes[0], "2")
		look := "node/" + movedNodes[0] + "  devices are offered by one mechanism only (from the API alone)  "
		allocatable := "node/" + movedNodes[0] + "  nothing is allocatable by the device plugin  "
		memory := "node/" + movedNodes[0] + "  the kubelet's memory of the plugin is cleared for good  "
		got := told(w.settle())
		want := []string{
			look + "DOUBLE: ADVERTISED TWICE: allocatable nvidia.com/gpu is 2, and gpu.nvidia.com publishes 2 devices: one device may be given away twice",
			allocatable + "FAILED: nvidia.com/gpu is 2",
			memory + "UNKNOWN: the kubelet has met the plugin again since the node had settled (allocatable nvidia.com/gpu is 2): keep the plugin off, and `dramigrate apply gpu-a` settles the node anew",
			"node/" + movedNodes[0] + "  DRM010  BLOCKER: 2 of nvidia.com/gpu are allocatable, and no plugin is there that serves them, while gpu.nvidia.com publishes 2 devices",
			"pool/gpu-a  DOUBLE",
		}
		if !slices.Equal(got, want) {
			t.Errorf("when both offer %q, want %q", got, want)
		}
		wantExported(t, file, map[string][]string{"double": {movedNodes[0], "pool gpu-a"}, "ok": {movedNodes[1]}})

		// What comes to nothing is no line.
		w.offers(t, movedNodes[1], "2")
		w.offers(t, movedNodes[1], "0")
		if got := w.settle(); got != "" {
			t.Errorf("after nothing: %q", got)
		}
		w.offers(t, movedNodes[0], "0")
		if got, want := told(w.settle()), []string{look + "ok", allocatable + "ok", memory + "ok", "node/" + movedNodes[0] + "  DRM010  is not found any more", "pool/gpu-a  ok"}; !slices.Equal(got, want) {
			t.Errorf("when it is over %q, want %q", got, want)
		}
		wantExported(t, file, map[string][]string{"ok": {movedNodes[0], movedNodes[1], "pool gpu-a"}})
		if code := w.wait(); code != ExitBlocked {
			t.Errorf("exit code %d, want %d: it was double once\n%s", code, ExitBlocked, w.err.take())
		}
		if took := time.Since(began); took != 10*time.Minute {
			t.Errorf("took %s, want the 10m of --for", took)
		}
	})
}

// What the checks find comes and goes while it watches, and counts as it does for one look.
func TestVerifyWatchFindings(t *testing.T) {
	const reason = "CHG-7, no pod here asks for the name"
	for _, tt := range []struct {
		name string
		args []string
		code int
		word string
		pool []string // what is told of the pool with the finding, and after it
	}{
		{"a blocker", nil, ExitBlocked, "BLOCKER: ", []string{"pool/gpu-a  ok, but for what the findings say", "pool/gpu-a  ok"}},
		{"one that is skipped", []string{"--config", "migration.yaml"}, ExitOK, "SKIPPED: ", []string{"", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects := movedCluster(t)
			writeConfig(t, "pools: [{name: gpu-a, skips: [{code: DRM036, object: server, reason: '"+reason+"'}]}]\n")
			synctest.Test(t, func(t *testing.T) {
				w := startVerb(t, Streams{}, objects, nil, append([]string{"verify", "gpu-a", "--watch", "--for", "10m"}, tt.args...)...)
				synctest.Wait()
				if got := w.out.take(); strings.Contains(got, "DRM036") || !strings.HasSuffix(got, "pool/gpu-a  ok\n") {
					t.Errorf("first:\n%s", got)
				}
				for i, named := range []bool{true, false} {
					list, err := w.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
					if err != nil {
						t.Fatal(err)
					}
					for k := range list.Items {
						s := &list.Items[k]
						for d := range s.Spec.Devices {
							s.Spec.Devices[d].NodeAllocatableResources = nil
							if named {
								s.Spec.Devices[d].NodeAllocatableResources = map[corev1.ResourceName]resourcev1.NodeAllocatableResource{corev1.ResourceCPU: {}}
							}
						}
						if _, err := w.ResourceV1().ResourceSlices().Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
							t.Fatal(err)
						}
					}
					var about, pool []string
					for _, line := range told(w.settle()) {
						if strings.HasPrefix(line, "pool/") {
							pool = append(pool, line)
						} else {
							about = append(about, line)
						}
					}
					want := "server  DRM036  is not found any more"
					if named {
						want = "server  DRM036  " + tt.word
					}
					if len(about) != 1 || !strings.HasPrefix(about[0], want) {
						t.Errorf("found %v: told %q, want the one line %q", named, about, want)
					}
					if got := strings.Join(pool, "\n"); got != tt.pool[i] {
						t.Errorf("found %v: of the pool %q, want %q", named, got, tt.pool[i])
					}
				}
				if code := w.wait(); code != tt.code {
					t.Errorf("exit code %d, want %d\n%s", code, tt.code, w.err.take())
				}
			})
		})
	}
}

// An interrupt ends a watch as its time does.
func TestVerifyWatchInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchVerify(t)
		if code := w.stop(); code != ExitOK {
			t.Errorf("exit code %d, want 0\n%s", code, w.err.take())
		}
		w = watchVerify(t)
		w.offers(t, movedNodes[1], "1")
		w.settle()
		if code := w.stop(); code != ExitBlocked {
			t.Errorf("exit code %d, want %d", code, ExitBlocked)
		}
		n := startVerb(t, Streams{}, movedCluster(t), func(c *fake.Clientset) { forbid(c, "nodes") }, "verify", "gpu-a", "--watch")
		synctest.Wait()
		if code := n.stop(); code != ExitUnknown || n.out.take() != "" {
			t.Errorf("without nodes: exit code %d, want %d\n%s", code, ExitUnknown, n.err.take())
		}
	})
}

// What cannot go together is said before the cluster is asked.
func TestVerifyUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--probe", "--helper-image", "i", "--driver-root", "run/nvidia"}, "--driver-root run/nvidia: give an absolute path of the node"},
		{[]string{"--probe", "--helper-image", "i", "--driver-root", "/d", "--runtime-class", "nvidia"}, "give either --runtime-class or --driver-root"},
		{[]string{"--probe", "--helper-image", "i", "--parallel", "0"}, "--parallel must be at least 1"},
		{[]string{"--watch", "--probe", "--helper-image", "i"}, "--watch makes no pods"},
		{[]string{"--for", "1m"}, "--for is how long --watch goes on; give --watch"},
		{[]string{"--watch", "--for", "-1m"}, "--for must not be negative"},
		{[]string{"--watch", "-o", "json"}, "--watch has no output format json"},
	} {
		o := invoke(t, movedCluster(t), nil, done, append([]string{"verify", "gpu-a"}, tt.args...)...)
		if o.code != ExitUsage || !strings.Contains(o.err, tt.want) || o.stdout != "" {
			t.Errorf("%q: exit code %d, stderr %q; want %d and %q", tt.args, o.code, o.err, ExitUsage, tt.want)
		}
	}
}

// While it watches, too, a file that cannot be written hides nothing of what was seen.
func TestVerifyWatchTextfileFails(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere", "gpu-a.prom")
	synctest.Test(t, func(t *testing.T) {
		double := movedCluster(t)
		offers(nodeOf(t, double, movedNodes[0]), "2")
		w := startVerb(t, Streams{}, double, nil, "verify", "gpu-a", "--watch", "--textfile", nowhere)
		code := w.wait()
		if stderr := w.err.take(); code != ExitBlocked || !strings.Contains(stderr, "Warning: --textfile: ") {
			t.Errorf("exit code %d, want %d and a warning: %s", code, ExitBlocked, stderr)
		}
	})
}
