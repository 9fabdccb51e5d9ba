package plan

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func TestPreparePlan(t *testing.T) {
	in := intent(Prepare)
	in.Manifests = readManifests(t, manifestFiles())
	golden(t, "prepare.yaml", build(t, in, testCluster()))
}

func TestPrepareOnDeleteRestartsNothing(t *testing.T) {
	in := intent(Prepare)
	in.Manifests = readManifests(t, manifestFiles())
	in.Settings.PluginRollout = OnDelete
	p := build(t, in, testCluster())
	if len(p.Restarts) != 0 {
		t.Errorf("restarts %v, want none", p.Restarts)
	}
	// One patch makes both edits: a controller that saw the template first would
	// begin to restart pods.
	step := p.Shared[1]
	if step.ID != StepPluginExclude || len(step.Changes) != 1 {
		t.Fatalf("step %s has %d changes", step.ID, len(step.Changes))
	}
	want := `[{"op":"test","path":"/metadata/uid","value":"plugin-uid"},` +
		`{"op":"test","path":"/spec/updateStrategy","value":{"type":"RollingUpdate"}},` +
		`{"op":"replace","path":"/spec/updateStrategy","value":{"type":"OnDelete"}},` +
		`{"op":"test","path":"/spec/template/spec/affinity","value":null},` +
		`{"op":"add","path":"/spec/template/spec/affinity","value":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":` +
		`{"nodeSelectorTerms":[{"matchExpressions":[{"key":"dramigrate.dev/allocation","operator":"DoesNotExist"}]}]}}}}]`
	if got := step.Changes[0].Patch; got != want {
		t.Errorf("patch\n%s\nwant\n%s", got, want)
	}
}

func TestPrepareNeedsADriver(t *testing.T) {
	if _, err := Build(intent(Prepare), testCluster()); err == nil || !strings.Contains(err.Error(), "--driver-manifests") {
		t.Errorf("error %v, want one that names --driver-manifests", err)
	}
}

func TestPrepareRefusesASecondDriver(t *testing.T) {
	s, _ := prepared(t) // a driver is there, and no record says that the tool made it
	in := intent(Prepare)
	in.Manifests = readManifests(t, manifestFiles())
	if _, err := Build(in, s); err == nil || !strings.Contains(err.Error(), "daemonset/dra/driver") {
		t.Errorf("error %v, want one that names the running driver", err)
	}
}

func TestPrepareTwiceHasNothingToDo(t *testing.T) {
	s, record := prepared(t)
	in := intent(Prepare)
	in.Manifests, in.Shared = readManifests(t, manifestFiles()), record
	if p := build(t, in, s); p.Pending() {
		t.Errorf("shared steps %v, want none", p.Shared)
	}
	record.DriverSource = "" // the last step was never reached
	if p := build(t, in, s); !p.Pending() {
		t.Error("nothing to do, though prepare was not recorded")
	}
}

func TestMigratePlan(t *testing.T) {
	s, record := prepared(t)
	in := intent(Migrate)
	in.Shared = record
	golden(t, "migrate.yaml", build(t, in, s))
}

func TestMigrateClass(t *testing.T) {
	name := "nvidia.com/gpu"
	for _, c := range []struct {
		title   string
		classes []resourcev1.DeviceClass
		held    bool
		action  ClassAction
		want    string
	}{
		{"none: the tool's own", nil, false, Create, "dramigrate-nvidia-gpu"},
		{"none, but one came with the manifests", nil, true, Create, "gpu.nvidia.com"},
		{"one carries the name already", []resourcev1.DeviceClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &name}},
		}, true, Adopt, "theirs"},
	} {
		t.Run(c.title, func(t *testing.T) {
			s, record := prepared(t)
			s.Classes = c.classes
			in := intent(Migrate)
			if c.held {
				in.Shared = record
			}
			p := build(t, in, s)
			if p.Class.Action != c.action || p.Class.Name != c.want {
				t.Errorf("class %s %s, want %s %s", p.Class.Action, p.Class.Name, c.action, c.want)
			}
			if (p.Class.Object != nil) != (c.action == Create) {
				t.Errorf("object %v with action %s", p.Class.Object, c.action)
			}
		})
	}
}

// One claim is added for each pod with the resource, wherever its node stands: on the
// plugin, between the mechanisms, or on DRA.
func TestClaimsAreCounted(t *testing.T) {
	s, record := prepared(t)
	s.Pods = append(s.Pods, gpuPod("mig", "m1", "a-2"))
	s.Pods[len(s.Pods)-1].Requests = []cluster.Request{{Container: "main", Resource: "nvidia.com/mig-1g.10gb", Count: 1}}
	node, _ := s.Node("a-3")
	mark := cluster.NodeState{Pool: "gpu-a", Selector: "eks.amazonaws.com/nodegroup=gpu-a", Operation: "migrate", Run: "r1", Epoch: 1,
		Phase: "plugin-off", Advertised: []string{"GPU-1", "GPU-2"}}
	text, err := mark.Encode()
	if err != nil {
		t.Fatal(err)
	}
	node.Annotations = map[string]string{cluster.StateAnnotation: text}
	node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")}
	in := intent(Migrate)
	in.Shared = record
	// x1 and x2 on a-1, x3 on a-3; two GPUs on each of three nodes.
	if got := build(t, in, s).Claims; got == nil || *got != (Claims{Now: 3, AtMost: 6}) {
		t.Errorf("claims %+v, want 3 now and at most 6", got)
	}
	s.Unknown = []cluster.Unknown{{Part: cluster.PartClaims, Reason: "forbidden"}}
	if got := build(t, in, s).Claims; got != nil {
		t.Errorf("claims %+v, want none where they could not be read", got)
	}
}

// A run that was killed leaves its helper pod, bound or not. The next one has to
// remove it even where nothing else is left to do.
func TestLeftHelperIsPending(t *testing.T) {
	for _, node := range []string{"a-1", ""} {
		s, record := prepared(t)
		in := intent(Rollback)
		in.Shared = record
		if p := build(t, in, s); p.Pending() {
			t.Fatalf("batches %v on a pool that was never switched", p.Batches)
		}
		s.Pods = append(s.Pods, cluster.Pod{Namespace: "dramigrate-system", Name: "pull", Node: node,
			Labels: map[string]string{cluster.HelperLabel: "pull"}, HelperNode: "a-1"})
		if p := build(t, in, s); !slices.Equal(flatten(p.Batches), []string{"a-1"}) {
			t.Errorf("batches %v with a left pod for a-1, want a-1 alone", p.Batches)
		}
		s.Pods[len(s.Pods)-1].Labels[cluster.HelperLabel] = cluster.HelperForReport // a probe beside runs removes its own
		if p := build(t, in, s); p.Pending() {
			t.Errorf("batches %v for the pod of a probe", p.Batches)
		}
		s.Pods[len(s.Pods)-1].Labels[cluster.HelperLabel] = "pull"
		s.Pods[len(s.Pods)-1].Terminating = true // somebody has removed it
		if p := build(t, in, s); p.Pending() {
			t.Errorf("batches %v for a pod that is going already", p.Batches)
		}
	}
}

func TestMigrateLeavesFinishedNodesAlone(t *testing.T) {
	s, record := prepared(t)
	migrated(t, s, "a-1", true)  // finished
	migrated(t, s, "a-2", false) // open, but its kubelet still remembers the plugin
	in := intent(Migrate)
	in.Shared = record
	p := build(t, in, s)
	if got := flatten(p.Batches); !slices.Equal(got, []string{"a-2", "a-3"}) {
		t.Errorf("nodes %v, want a-2 and a-3", got)
	}
	if len(p.Skipped) != 1 || p.Skipped[0].Node != "a-1" || !strings.Contains(p.Skipped[0].Why, "r1") {
		t.Errorf("skipped %v, want a-1 by run r1", p.Skipped)
	}
}

func TestMigrateBegunNodesFirst(t *testing.T) {
	s, record := prepared(t)
	node, _ := s.Node("a-3")
	node.Spec.Taints = append(node.Spec.Taints, gate.SwitchingTaint())
	in := intent(Migrate)
	in.Shared = record
	if got := flatten(build(t, in, s).Batches); !slices.Equal(got, []string{"a-3", "a-1", "a-2"}) {
		t.Errorf("order %v, want the closed node first", got)
	}
}

func TestMigrateSkipsNodesWithoutDevices(t *testing.T) {
	s, record := prepared(t)
	node, _ := s.Node("a-2")
	node.Status.Capacity, node.Status.Allocatable = nil, nil
	in := intent(Migrate)
	in.Shared = record
	p := build(t, in, s)
	if got := flatten(p.Batches); !slices.Equal(got, []string{"a-1", "a-3"}) {
		t.Errorf("nodes %v, want a-1 and a-3", got)
	}
}

func TestRollbackPlan(t *testing.T) {
	s, record := prepared(t)
	migrated(t, s, "a-1", true)
	s.Slices = []resourcev1.ResourceSlice{{
		ObjectMeta: metav1.ObjectMeta{Name: "a-1-gpu"},
		Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: new("a-1"),
			Pool: resourcev1.ResourcePool{Name: "a-1", Generation: 1, ResourceSliceCount: 1}},
	}}
	s.Claims = []resourcev1.ResourceClaim{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x1-extended-resources-abc", UID: "claim",
			Annotations: map[string]string{"resource.kubernetes.io/extended-resource-claim": "true"}},
		Status: resourcev1.ResourceClaimStatus{
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu.nvidia.com", Pool: "a-1", Device: "gpu-0"}}}},
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "x1", UID: "x1"}},
		},
	}}
	for i := range s.Pods {
		if s.Pods[i].Name == "x1" {
			s.Pods[i].Bridge = &cluster.Bridge{Claim: "x1-extended-resources-abc", Mappings: []cluster.Mapping{
				{Container: "c", Resource: "nvidia.com/gpu", Request: "container-0-request-0"}}}
		}
	}
	in := intent(Rollback)
	in.Shared = record
	golden(t, "rollback.yaml", build(t, in, s))
}

// A node that has left the pool, or lost its pool's label, is put back all the same.
func TestRollbackFindsMarkedNodes(t *testing.T) {
	s, _ := prepared(t)
	migrated(t, s, "b-1", true)
	in := intent(Rollback)
	if got := flatten(build(t, in, s).Batches); !slices.Equal(got, []string{"b-1"}) {
		t.Errorf("nodes %v, want b-1, which carries the pool's mark", got)
	}
}

func TestUnpreparePlan(t *testing.T) {
	s, record := prepared(t)
	in := intent(Unprepare)
	in.Shared = record
	golden(t, "unprepare.yaml", build(t, in, s))
}

// Under OnDelete a plugin pod that ran all the time is of the former template, which
// is current again afterwards; one that was made meanwhile is not.
func TestUnprepareRestarts(t *testing.T) {
	s, record := prepared(t)
	for i := range s.Pods {
		if s.Pods[i].Owner.Kind == "DaemonSet" && s.Pods[i].Node == "a-2" {
			s.Pods[i].Labels["pod-template-generation"] = "5"
		}
	}
	in := intent(Unprepare)
	in.Shared = record
	p := build(t, in, s)
	if len(p.Restarts) != 1 || p.Restarts[0].Node != "a-2" {
		t.Errorf("restarts %v, want the pod on a-2 alone", p.Restarts)
	}
}

func TestUnprepareLeavesForeignDeviceClassAlone(t *testing.T) {
	name := "nvidia.com/gpu"
	s, record := prepared(t)
	s.Classes = []resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &name}}}
	in := intent(Unprepare)
	in.Shared = record
	for _, step := range build(t, in, s).Shared {
		if step.ID == StepDeviceClassDelete {
			t.Errorf("deletes %s, which the tool did not make", step.Target.Name)
		}
	}
}

func TestUnprepareWithoutPrepare(t *testing.T) {
	if p := build(t, intent(Unprepare), testCluster()); p.Pending() {
		t.Errorf("shared steps %v, want none", p.Shared)
	}
}

func TestDrainAll(t *testing.T) {
	s, record := prepared(t)
	in := intent(Migrate)
	in.Shared, in.Settings.Drain = record, DrainAll
	var pods []string
	for _, e := range build(t, in, s).Evictions {
		pods = append(pods, e.Pod)
	}
	// In the order of the batches; x4 is on another pool's node.
	if want := []string{"default/x1", "default/x2", "default/web", "default/x3"}; !slices.Equal(pods, want) {
		t.Errorf("evictions %v, want %v", pods, want)
	}
}

func TestPlacingARunningDriverNamesItsPods(t *testing.T) {
	s, _ := prepared(t)
	driver := &s.DaemonSets[0]
	driver.Spec.Template.Spec.Affinity = nil
	driver.Labels = nil
	s.Pods = append(s.Pods, daemonPod(driver, "a-1", "1"), daemonPod(driver, "b-1", "1"))
	migrated(t, s, "a-1", true)
	p := build(t, intent(Prepare), s)
	got := map[string]string{}
	for _, r := range p.Restarts {
		got[r.Node] = r.Why
	}
	if !strings.Contains(got["b-1"], "leaves") || !strings.Contains(got["a-1"], "template") || len(got) != 2 {
		t.Errorf("restarts %v, want a-1 restarted and b-1 removed", got)
	}
	if i := slices.IndexFunc(p.Shared, func(s Step) bool { return s.ID == StepDriverPlace }); i < 0 || p.Shared[i].Target.Name != driver.Name {
		t.Errorf("no step places the driver: %v", p.Shared)
	}
}

func TestSameSnapshotSameBytes(t *testing.T) {
	bytes := func() string {
		s, record := prepared(t)
		in := intent(Migrate)
		in.Shared = record
		data, err := yaml.Marshal(build(t, in, s))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if first, second := bytes(), bytes(); first != second {
		t.Error("two plans of one snapshot differ")
	}
}

func TestBuildRefuses(t *testing.T) {
	in := intent(Migrate)
	in.Pool.Nodes = []string{"gone"}
	if _, err := Build(in, testCluster()); err == nil || !strings.Contains(err.Error(), "node/gone") {
		t.Errorf("error %v, want one that names node/gone", err)
	}
	if _, err := Build(Intent{Operation: "melt"}, testCluster()); err == nil {
		t.Error("an unknown operation was planned")
	}
	s := testCluster()
	s.DaemonSets[0].Spec.Template.Spec.NodeSelector = map[string]string{"dramigrate.dev/allocation": "x"}
	in = intent(Prepare)
	in.Manifests = readManifests(t, manifestFiles())
	if _, err := Build(in, s); err == nil || !strings.Contains(err.Error(), "nvidia-device-plugin-daemonset") {
		t.Errorf("error %v, want one that names the DaemonSet", err)
	}
}

func flatten(list []Batch) []string {
	var out []string
	for _, b := range list {
		out = append(out, b.Nodes...)
	}
	return out
}
