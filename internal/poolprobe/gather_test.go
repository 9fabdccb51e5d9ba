package poolprobe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/nvml"
)

const (
	gpuResource = "nvidia.com/gpu"
	gpuDriver   = "gpu.nvidia.com"
)

func uuidOf(node string) string {
	return "GPU-46f59cc3-2558-51a1-8097-" + fmt.Sprintf("%012x", []byte(node)[:min(6, len(node))])
}

// world is a pool of nodes with one GPU each.
type world struct {
	snapshot cluster.Snapshot
}

func (w *world) node(name string, allocatable int64) {
	w.snapshot.Nodes = append(w.snapshot.Nodes, corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{gpuResource: *resource.NewQuantity(allocatable, resource.DecimalSI)}, Capacity: corev1.ResourceList{gpuResource: *resource.NewQuantity(allocatable, resource.DecimalSI)}},
	})
}

func (w *world) publish(node string) {
	w.snapshot.Slices = append(w.snapshot.Slices, resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: gpuDriver, NodeName: ptr.To(node), Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"uuid": {StringValue: ptr.To(uuidOf(node))}, "type": {StringValue: ptr.To("gpu")},
			}}},
		},
	})
}

// claim is one that a pod of the node holds the GPU by.
func (w *world) claim(node, pod string) {
	w.snapshot.Pods = append(w.snapshot.Pods, cluster.Pod{Namespace: "ns", Name: pod, UID: "uid-of-" + "pod", Node: node, Phase: corev1.PodRunning, Claims: []string{pod}})
	w.snapshot.Claims = append(w.snapshot.Claims, resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: pod, UID: "uid-of-claim"},
		Status: resourcev1.ResourceClaimStatus{
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: "uid-of-pod"}},
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: gpuDriver, Pool: node, Device: "gpu-0"}},
			}},
		},
	})
}

func (w *world) options(reports map[string]*nodeprobe.NodeReport) Options {
	var names []string
	for i := range w.snapshot.Nodes {
		names = append(names, w.snapshot.Nodes[i].Name)
	}
	return Options{
		Pool: cluster.NodePool{Name: "a", Nodes: names}, Resource: gpuResource, Driver: gpuDriver,
		Probe: func(_ context.Context, node string) (*nodeprobe.NodeReport, error) {
			if r := reports[node]; r != nil {
				return r, nil
			}
			return nil, errors.New("node/" + node + ": no pod starts")
		},
		Look: func(context.Context) (*cluster.Snapshot, error) { return &w.snapshot, nil },
	}
}

// report is what a node says that was asked for its kubelet and its hardware.
func report(node string, plugin bool, holder string) *nodeprobe.NodeReport {
	r := &nodeprobe.NodeReport{
		APIVersion: nodeprobe.APIVersion, Kind: nodeprobe.Kind, Node: node, ListCalled: true,
		Parts:      []nodeprobe.Part{nodeprobe.AskKubelet, nodeprobe.AskNVML, nodeprobe.AskCheckpoints},
		Advertised: map[string][]string{}, Holders: []nodeprobe.Holder{},
		Hardware: &nvml.Host{Devices: []nvml.Device{{UUID: uuidOf(node), PCIBusID: "0000:1b:00.0", MIG: []nvml.MIGDevice{}, Processes: []nvml.Process{}}}},
		Files: &nodeprobe.Files{
			DeviceManager: &nodeprobe.DeviceManager{}, Claims: []nodeprobe.ClaimRecord{}, DriverCheckpoints: []nodeprobe.DriverCheckpoint{},
			PodFolders: []string{}, Sockets: &nodeprobe.Sockets{},
		},
	}
	if plugin {
		r.Advertised[gpuResource] = []string{uuidOf(node)}
	}
	if holder != "" {
		r.Holders = append(r.Holders, nodeprobe.Holder{Pod: holder, Container: "c", Resource: gpuResource, IDs: []string{uuidOf(node)}})
	}
	return r
}

func gather(t *testing.T, w *world, o Options) *Result {
	t.Helper()
	got, err := Gather(t.Context(), &w.snapshot, o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestGather(t *testing.T) {
	w := &world{}
	w.node("clean", 1)
	w.node("offered", 1)
	w.publish("offered")
	w.node("held", 0)
	w.publish("held")
	w.claim("held", "explicit")
	w.node("silent", 1)
	w.node("silent2x", 1)
	w.publish("silent2x")
	w.node("without", 0)
	got := gather(t, w, w.options(map[string]*nodeprobe.NodeReport{
		"clean": report("clean", true, "ns/legacy"), "offered": report("offered", true, ""), "held": report("held", false, "ns/legacy"),
	}))
	want := map[string]struct {
		verdict                    nodeprobe.Verdict
		source                     Source
		plugin, dra, both, holders int
		says                       []string
	}{
		"clean":    {verdict: nodeprobe.Clean, source: FromNode, plugin: 1, holders: 1},
		"offered":  {verdict: nodeprobe.DoubleAdvertised, source: FromNode, both: 1},
		"held":     {verdict: nodeprobe.DoubleHeld, source: FromNode, dra: 1, holders: 2, says: []string{"ns/legacy", "ns/explicit"}},
		"silent":   {verdict: nodeprobe.Undecided, source: FromAPI, says: []string{"no report"}},
		"silent2x": {verdict: nodeprobe.DoubleAdvertised, source: FromAPI, says: []string{"from the API alone", "nvidia.com/gpu is 1"}},
	}
	for _, n := range got.Nodes {
		w, ok := want[n.Name]
		delete(want, n.Name)
		if !ok {
			t.Errorf("node %s has no devices", n.Name)
			continue
		}
		if n.Verdict != w.verdict || n.Source != w.source || n.Plugin != w.plugin || n.DRA != w.dra || n.Both != w.both || len(n.Holders) != w.holders {
			t.Errorf("%s: %s by %s, plugin %d, DRA %d, both %d, holders %v, reasons %q; want %+v", n.Name, n.Verdict, n.Source, n.Plugin, n.DRA, n.Both, n.Holders, n.Reasons, w)
		}
		for _, text := range w.says {
			if !slices.ContainsFunc(n.Reasons, func(s string) bool { return strings.Contains(s, text) }) {
				t.Errorf("%s: no reason says %q: %q", n.Name, text, n.Reasons)
			}
		}
		if (n.Error == "") != (n.Source == FromNode) {
			t.Errorf("%s: error %q", n.Name, n.Error)
		}
	}
	if len(want) != 0 {
		t.Errorf("not in the result: %v", want)
	}
	if got.Verdict != nodeprobe.DoubleHeld {
		t.Errorf("verdict %s, want the worst", got.Verdict)
	}
}

// A pool without devices proves nothing.
func TestGatherNothing(t *testing.T) {
	if got := gather(t, &world{}, (&world{}).options(nil)); got.Verdict != nodeprobe.Undecided || got.Nodes == nil {
		t.Errorf("%+v", got)
	}
}

// A device that a pod hands to another while the node is looked at is in one hand at a
// time: the API and the node then tell of different moments.
func TestGatherBetweenTwoMoments(t *testing.T) {
	empty, taken := &world{}, &world{}
	for _, w := range []*world{empty, taken} {
		w.node("held", 0)
		w.publish("held")
	}
	taken.claim("held", "explicit")
	for _, tt := range []struct {
		name   string
		looks  []*world
		after  *nodeprobe.NodeReport // what the node says the second time
		want   nodeprobe.Verdict
		probes int32
	}{
		{"gone by the second look", []*world{taken, taken}, report("held", false, ""), nodeprobe.Clean, 2},
		{"still there", []*world{taken, taken}, report("held", false, "ns/legacy"), nodeprobe.DoubleHeld, 2},
		{"was there all the time", nil, nil, nodeprobe.DoubleHeld, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := &empty.snapshot
			if tt.looks == nil {
				before, tt.looks = &taken.snapshot, []*world{taken}
			}
			o := taken.options(nil)
			var probes atomic.Int32
			o.Probe = func(context.Context, string) (*nodeprobe.NodeReport, error) {
				if probes.Add(1) == 1 {
					return report("held", false, "ns/legacy"), nil
				}
				return tt.after, nil
			}
			looks := 0
			o.Look = func(context.Context) (*cluster.Snapshot, error) { looks++; return &tt.looks[looks-1].snapshot, nil }
			got, err := Gather(t.Context(), before, o)
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict != tt.want || probes.Load() != tt.probes {
				t.Errorf("%s after %d probes, want %s after %d: %q", got.Verdict, probes.Load(), tt.want, tt.probes, got.Nodes[0].Reasons)
			}
		})
	}
}

// What could not be read of the API makes no node clean.
func TestGatherWithoutClaims(t *testing.T) {
	w := &world{}
	w.node("held", 1)
	w.publish("held")
	w.snapshot.Unknown = []cluster.Unknown{{Part: cluster.PartSlices, Reason: "forbidden"}, {Part: cluster.PartClaims, Reason: "forbidden"}}
	w.snapshot.Slices = nil
	r := report("held", true, "")
	r.Files.Sockets.Drivers = []string{gpuDriver} // whether it offers anything only the API tells
	if got := gather(t, w, w.options(map[string]*nodeprobe.NodeReport{"held": r})); got.Verdict != nodeprobe.Undecided {
		t.Errorf("verdict %s, want unknown", got.Verdict)
	}
}

// No more than Parallel nodes are asked at a time, each once, and an interrupt ends it.
func TestGatherIsBounded(t *testing.T) {
	w := &world{}
	reports := map[string]*nodeprobe.NodeReport{}
	for i := range 50 {
		name := fmt.Sprintf("%05d", i)
		w.node(name, 1)
		reports[name] = report(name, true, "")
	}
	o := w.options(reports)
	o.Parallel = 3
	var mu sync.Mutex
	now, most, asked := 0, 0, 0
	o.Probe = func(_ context.Context, node string) (*nodeprobe.NodeReport, error) {
		mu.Lock()
		now++
		asked++
		most = max(most, now)
		mu.Unlock()
		defer func() { mu.Lock(); now--; mu.Unlock() }()
		return reports[node], nil
	}
	if got := gather(t, w, o); got.Verdict != nodeprobe.Clean || most > 3 || asked != 50 {
		t.Errorf("verdict %s; %d nodes asked, %d at a time", got.Verdict, asked, most)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	signal := errors.New("SIGINT")
	o.Probe = func(ctx context.Context, _ string) (*nodeprobe.NodeReport, error) {
		cancel(signal)
		return nil, context.Cause(ctx)
	}
	if _, err := Gather(ctx, &w.snapshot, o); !errors.Is(err, signal) {
		t.Errorf("error %v, want the interrupt", err)
	}
}

// BenchmarkGather200 joins what 200 nodes say with the API, their answers stubbed.
func BenchmarkGather200(b *testing.B) {
	w := &world{}
	reports := map[string]*nodeprobe.NodeReport{}
	for i := range 200 {
		name := fmt.Sprintf("%05d", i)
		w.node(name, 1)
		reports[name] = report(name, true, "ns/legacy")
	}
	o := w.options(reports)
	for b.Loop() {
		if _, err := Gather(b.Context(), &w.snapshot, o); err != nil {
			b.Fatal(err)
		}
	}
}
