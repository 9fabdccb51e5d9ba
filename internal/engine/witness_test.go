package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/nvml"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// theGPU is the one of gpu-7.
const theGPU = "GPU-46f59cc3-2558-51a1-8097-000000000007"

// saying is a helper whose node says always the same.
type saying struct {
	helper
	report *nodeprobe.NodeReport
	err    error
	asked  []plan.StepID
}

func (h *saying) Probe(_ context.Context, _ *corev1.Node, step plan.StepID) (*nodeprobe.NodeReport, error) {
	h.asked = append(h.asked, step)
	return h.report, h.err
}

// aReport is of a node on which the plugin offers the GPU and nobody has it.
func aReport() *nodeprobe.NodeReport {
	return &nodeprobe.NodeReport{
		APIVersion: nodeprobe.APIVersion, Kind: nodeprobe.Kind, Node: gpu7.Name, ListCalled: true,
		Parts:      []nodeprobe.Part{nodeprobe.AskKubelet, nodeprobe.AskNVML},
		Advertised: map[string][]string{testResource: {theGPU}}, Holders: []nodeprobe.Holder{},
		Hardware: &nvml.Host{Devices: []nvml.Device{{UUID: theGPU, PCIBusID: "0000:1b:00.0", MIG: []nvml.MIGDevice{}, Processes: []nvml.Process{}}}},
	}
}

// byPlugin gives the GPU to a pod by the plugin.
func byPlugin(r *nodeprobe.NodeReport) {
	r.Holders = append(r.Holders, nodeprobe.Holder{Pod: "team/legacy", Container: "c", Resource: testResource, IDs: []string{theGPU}})
}

// onRecord has the same in the kubelet's checkpoint alone: its List leaves out the pods
// that it has not met again since it started.
func onRecord(r *nodeprobe.NodeReport) {
	r.Files = &nodeprobe.Files{
		DeviceManager: &nodeprobe.DeviceManager{Entries: []nodeprobe.DeviceEntry{
			{PodUID: "uid-of-legacy", Container: "c", Resource: testResource, IDs: []string{theGPU}}}},
		PodFolders: []string{"uid-of-legacy"},
	}
}

func legacyPod() runtime.Object {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "legacy", UID: "uid-of-legacy"},
		Spec:       corev1.PodSpec{NodeName: gpu7.Name, Containers: []corev1.Container{{Name: "c"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func pluginOffersNothing(r *nodeprobe.NodeReport) {
	r.Advertised = map[string][]string{testResource: {}}
}

func unseenHardware(r *nodeprobe.NodeReport) {
	r.Hardware = nil
	r.Unknown = append(r.Unknown, nodeprobe.Unknown{Part: nodeprobe.PartHardware, Reason: "no libnvidia-ml.so.1"})
}

func unreadRecords(r *nodeprobe.NodeReport) {
	r.Unknown = append(r.Unknown, nodeprobe.Unknown{Part: nodeprobe.PartDriverCheckpoints, Reason: "truncated"},
		nodeprobe.Unknown{Part: nodeprobe.PartSockets, Reason: "no such folder"})
}

// published is the GPU as the driver publishes it, and allocated a claim on it for a pod.
func published() *resourcev1.ResourceSlice {
	node, uuid, kind := gpu7.Name, theGPU, "gpu"
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice-of-gpu-7"},
		Spec: resourcev1.ResourceSliceSpec{Driver: testDriver, NodeName: &node,
			Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"uuid": {StringValue: &uuid}, "type": {StringValue: &kind}}}}},
	}
}

func allocated() []runtime.Object {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "claims", UID: "uid-of-claims"},
		Spec:       corev1.PodSpec{NodeName: gpu7.Name, Containers: []corev1.Container{{Name: "c"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "explicit"},
		Status: resourcev1.ResourceClaimStatus{
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "claims", UID: "uid-of-claims"}},
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: testDriver, Pool: gpu7.Name, Device: "gpu-0"}}}},
		},
	}
	return []runtime.Object{pod, claim, published()}
}

// watched is what is watched of gpu-7.
func watched(t *testing.T, client kubernetes.Interface) *Live {
	t.Helper()
	live := NewLive(client, clock.RealClock{})
	if err := live.Start(t.Context(), gpu7.Name); err != nil {
		t.Fatal(err)
	}
	return live
}

// probed is the run of a node that says what edits make of a clean report, on a cluster
// with these objects beside the node. told are the warnings.
func probed(t *testing.T, objects []runtime.Object, edits ...func(*nodeprobe.NodeReport)) (n *nodeRun, h *saying, told *[]string) {
	t.Helper()
	node := aNode(nil)
	node.Status.Allocatable = corev1.ResourceList{testResource: resource.MustParse("1")}
	n, _ = aNodeRun(t)
	client := newServer(t, append([]runtime.Object{node}, objects...)...)
	n.Engine.client = client
	n.live = watched(t, client)
	told = &[]string{}
	n.deps.Sink = func(e event.Event) {
		if w, ok := e.(event.Warned); ok {
			*told = append(*told, w.Node+": "+w.Message)
		}
	}
	h = &saying{report: aReport()}
	for _, edit := range edits {
		edit(h.report)
	}
	n.helper = h
	return n, h, told
}

// The four probes of a node, in the order of a migration and a rollback.
var probes = []plan.StepID{plan.StepProbeBefore, plan.StepPodResourcesList, plan.StepOpen, plan.StepPluginOn}

// TestProbeJudges holds what the node says against the API, at each of the steps that
// ask. A double hold stops all of them. An offer by both stops those at which the plugin
// is known to be off, or back with the driver gone; before it is turned off that is
// what the step after next will end.
func TestProbeJudges(t *testing.T) {
	const (
		both = "pod team/legacy, container c, by plugin resource nvidia.com/gpu holds " + theGPU +
			", and pod team/claims by claim team/explicit holds gpu.nvidia.com/gpu-7/gpu-0; " +
			"pod team/legacy, container c, by plugin resource nvidia.com/gpu holds " + theGPU + ", and DRA offers gpu.nvidia.com/gpu-7/gpu-0"
		held    = "a device is in two hands, by the node's own word: "
		end     = "; next: end one of the two pods, then the same command goes on"
		offered = "the plugin offers " + theGPU + " as nvidia.com/gpu, and DRA offers gpu.nvidia.com/gpu-7/gpu-0"
		twice   = "a device is offered by both mechanisms, by the node's own word: " + offered +
			"; next: `dramigrate probe a --node gpu-7 -o wide` shows who offers it"
		blind = "gpu-7: the node's hardware was not looked at (no libnvidia-ml.so.1): what it says rests on its kubelet"
	)
	for _, tt := range []struct {
		name    string
		objects []runtime.Object
		edits   []func(*nodeprobe.NodeReport)
		// fails is the whole error, but before the plugin is off, where it is before.
		fails, before string
		// told are the warnings, and before the plugin is off also.
		told, beforeTold []string
	}{
		{name: "the plugin's alone", edits: []func(*nodeprobe.NodeReport){byPlugin}},
		{name: "the driver's alone", objects: allocated(), edits: []func(*nodeprobe.NodeReport){pluginOffersNothing}},
		{name: "in two hands after the plugin is gone", objects: allocated(), edits: []func(*nodeprobe.NodeReport){pluginOffersNothing, byPlugin},
			fails: held + both + end, before: held + both + end},
		{name: "in two hands, the hardware unseen", objects: allocated(), edits: []func(*nodeprobe.NodeReport){pluginOffersNothing, byPlugin, unseenHardware},
			fails: held + both + end, before: held + both + end, told: []string{blind}},
		{name: "offered by both", objects: []runtime.Object{published()},
			fails: twice, beforeTold: []string{"gpu-7: offered by both mechanisms until the plugin is off: " + offered}},
		{name: "offered by both, the hardware unseen", objects: []runtime.Object{published()}, edits: []func(*nodeprobe.NodeReport){unseenHardware},
			fails: twice, told: []string{blind}, beforeTold: []string{"gpu-7: offered by both mechanisms until the plugin is off: " + offered}},
		{name: "the hardware unseen", edits: []func(*nodeprobe.NodeReport){unseenHardware}, told: []string{blind}},
		{name: "records unread", edits: []func(*nodeprobe.NodeReport){unreadRecords},
			told: []string{"gpu-7: what the node has on record was not read in full (driverCheckpoints: truncated): a pod that only its record names may be unseen"}},
		{name: "in two hands by the kubelet's record alone", objects: append(allocated(), legacyPod()), edits: []func(*nodeprobe.NodeReport){pluginOffersNothing, onRecord},
			fails: held + both + end, before: held + both + end},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, step := range probes {
				n, h, told := probed(t, tt.objects, tt.edits...)
				fails, want := tt.fails, tt.told
				if step == plan.StepProbeBefore {
					fails, want = tt.before, append(append([]string{}, tt.told...), tt.beforeTold...)
				}
				got, err := n.probe(t.Context(), step)
				switch {
				case fails == "" && (err != nil || got == nil || got.Node != gpu7.Name):
					t.Errorf("%s: report %v, error %v; want the node's report", step, got, err)
				case fails != "" && (err == nil || err.Error() != fails):
					t.Errorf("%s: error\n%v\nwant\n%s", step, err, fails)
				}
				if strings.Join(*told, "\n") != strings.Join(want, "\n") {
					t.Errorf("%s: told %q, want %q", step, *told, want)
				}
				if len(h.asked) != 1 || h.asked[0] != step {
					t.Errorf("asked at %q, want once at %s", h.asked, step)
				}
			}
		})
	}
}

// Several devices in two hands are one error, which names the pods of each.
func TestProbeNamesEveryDevice(t *testing.T) {
	const other = "GPU-46f59cc3-2558-51a1-8097-000000000008"
	objects := allocated()
	slice := objects[2].(*resourcev1.ResourceSlice)
	uuid := other
	slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: "gpu-1",
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &uuid}}})
	claim := objects[1].(*resourcev1.ResourceClaim)
	results := &claim.Status.Allocation.Devices.Results
	*results = append(*results, resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: testDriver, Pool: gpu7.Name, Device: "gpu-1"})
	n, _, _ := probed(t, objects, pluginOffersNothing, byPlugin, func(r *nodeprobe.NodeReport) {
		r.Holders = append(r.Holders, nodeprobe.Holder{Pod: "team/second", Container: "c", Resource: testResource, IDs: []string{other}})
	})
	_, err := n.probe(t.Context(), plan.StepOpen)
	for _, want := range []string{"team/legacy", "team/second", "team/claims", "gpu-7/gpu-0", "gpu-7/gpu-1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

// A node that is blind says so once, however often it is asked.
func TestProbeTellsBlindOnce(t *testing.T) {
	n, h, told := probed(t, nil, unseenHardware)
	for _, step := range probes {
		if _, err := n.probe(t.Context(), step); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	if len(*told) != 1 || len(h.asked) != len(probes) {
		t.Errorf("told %q in %d probes, want one warning in %d", *told, len(h.asked), len(probes))
	}
}

// Without the node's word, or without the API to hold it against, there is no report.
func TestProbeFails(t *testing.T) {
	n, h, _ := probed(t, nil)
	h.report, h.err = nil, errors.New("node/gpu-7: no pod starts")
	if got, err := n.probe(t.Context(), plan.StepOpen); !errors.Is(err, h.err) || got != nil {
		t.Errorf("report %v, error %v; want the helper's", got, err)
	}

	n, _, told := probed(t, nil, unseenHardware)
	client := newServer(t, aNode(nil))
	n.live = watched(t, client)
	client.PrependReactor("list", "resourceslices", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(resourcev1.Resource("resourceslices"), "", errors.New("not yours"))
	})
	got, err := n.probe(t.Context(), plan.StepOpen)
	if got != nil || !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "hold the node's word against the API: ") {
		t.Errorf("report %v, error %v; want that slices are forbidden", got, err)
	}
	if len(*told) != 0 {
		t.Errorf("told %q of a report that could not be judged", *told)
	}
}
