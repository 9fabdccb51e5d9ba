package checks

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// workload adds a Deployment that is scaled to zero and would ask for count of a
// resource.
func (s *state) workload(name string, resource corev1.ResourceName, count int64) *cluster.Workload {
	w := cluster.Workload{Kind: cluster.KindDeployment, Namespace: "team", Name: name, Template: cluster.Pod{Namespace: "team"}}
	if count > 0 {
		w.Template.Requests = []cluster.Request{{Container: "main", Resource: resource, Count: count}}
	}
	s.Workloads = append(s.Workloads, w)
	return &s.Workloads[len(s.Workloads)-1]
}

// advertises gives a node one more resource of the plugin, and the pod train that alone.
func (s *state) advertises(resource corev1.ResourceName) {
	n := s.node("n1")
	n.Status.Capacity[resource] = n.Status.Capacity[gpu]
	n.Status.Allocatable[resource] = n.Status.Allocatable[gpu]
	s.pod("train").Requests[0].Resource = resource
}

func needs(key, value string) []corev1.NodeSelectorRequirement {
	return []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}
}

const profile = "nvidia.com/mig-1g.5gb.me"

func TestDRM100AndDRM101(t *testing.T) {
	t.Parallel()
	mapped := func(s *state) {
		s.advertises(profile)
		c := class("mig", "true")
		c.Spec.ExtendedResourceName = ptr.To(profile)
		s.Classes = append(s.Classes, c)
	}
	try(t, "DRM100", []given{
		{"whole GPUs", Migrate, prepared, nil, nil, ""},
		{"a MIG profile", Migrate, prepared, func(s *state) { s.advertises(profile) }, []string{"blocker resource/" + profile}, "asked for on the pool by replicaset/team/train"},
		{"with a class of its own", Migrate, prepared, mapped, nil, ""},
		{"on another pool", Migrate, prepared, func(s *state) { s.advertises(profile); s.pod("train").Node = "m1" }, nil, ""},
		{"a name by model", Migrate, prepared, func(s *state) { s.advertises("nvidia.com/a100") }, []string{"blocker resource/nvidia.com/a100"}, ""},
		{"a network device of the same vendor", Migrate, prepared, func(s *state) { s.advertises("nvidia.com/rdma_shared_device_a") }, nil, ""},
		{"shared replicas are DRM101's", Migrate, prepared, func(s *state) { s.advertises("nvidia.com/gpu.shared") }, nil, ""},
	})
	train := []string{"blocker replicaset/team/train"}
	try(t, "DRM101", []given{
		{"whole GPUs", Migrate, prepared, nil, nil, ""},
		{"replicas", Migrate, prepared, func(s *state) { s.advertises("nvidia.com/gpu.shared") }, train, "asks for nvidia.com/gpu.shared"},
		{"parts of a GPU by HAMi", Migrate, prepared, func(s *state) {
			s.pod("train").Requests = append(s.pod("train").Requests, cluster.Request{Container: "main", Resource: "nvidia.com/gpumem", Count: 4000})
		}, train, "HAMi"},
		{"passthrough", Migrate, prepared, func(s *state) { s.advertises("nvidia.com/GA102GL_A10") }, train, "virtual machines"},
		{"a vGPU", Migrate, prepared, func(s *state) { s.advertises("nvidia.com/GRID_T4-2Q") }, train, "virtual machines"},
		{"passthrough by one name", Migrate, prepared, func(s *state) { s.advertises("nvidia.com/pgpu") }, train, ""},
		{"a profile is DRM100's", Migrate, prepared, func(s *state) { s.advertises(profile) }, nil, ""},
	})
}

// The class that a remedy tells to make must select the devices of that profile, and
// those alone: it is tried on what the driver publishes.
func TestClassRemedy(t *testing.T) {
	t.Parallel()
	s := prepared()
	s.advertises(profile)
	var remedy string
	for _, f := range Run(s.of(Migrate)) {
		if f.Code == "DRM100" {
			remedy = f.Remedy
		}
	}
	if why, _, _ := strings.Cut(remedy, "`"); !strings.Contains(why, "leave the pool on the plugin") {
		t.Errorf("remedy %q of a partitioned pool, which is not moved, says nothing of it", remedy)
	}
	_, command, _ := strings.Cut(remedy, "`echo '")
	body, _, ok := strings.Cut(command, "' | kubectl create -f -`")
	if !ok {
		t.Fatalf("remedy %q, want a command", remedy)
	}
	var c resourcev1.DeviceClass
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatal(err)
	}
	if c.Kind != "DeviceClass" || c.APIVersion != "resource.k8s.io/v1" || c.Name != "nvidia-mig-1g.5gb.me" || *c.Spec.ExtendedResourceName != profile {
		t.Errorf("class %+v", c)
	}
	device := func(name, kind, profile string) resourcev1.Device {
		d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}}}
		if profile != "" {
			d.Attributes["profile"] = resourcev1.DeviceAttribute{StringValue: &profile}
		}
		return d
	}
	slice := nodeSlice("n1", driver)
	slice.Spec.Devices = []resourcev1.Device{
		device("gpu-0", "gpu", ""), device("mig-a", "mig", "1g.5gb"), device("mig-b", "mig", "1g.5gb+me"), device("mig-c", "mig", "2g.10gb"),
	}
	for i, want := range []int{0, 0, 1, 0} {
		one := slice
		one.Spec.Devices = slice.Spec.Devices[i : i+1]
		m, err := cluster.MatchClass(context.Background(), &c, []resourcev1.ResourceSlice{one})
		if err != nil || len(m.Selected[driver]) != want {
			t.Errorf("device %s: %+v, %v, want %d selected", one.Spec.Devices[0].Name, m, err, want)
		}
	}
}

func TestMIGProfile(t *testing.T) {
	t.Parallel()
	for resource, want := range map[string]string{
		"nvidia.com/mig-1g.12gb":          "1g.12gb",
		"nvidia.com/mig-1g.5gb.me":        "1g.5gb+me",
		"nvidia.com/mig-1g.10gb.me.all":   "1g.10gb+me.all",
		"nvidia.com/gpu":                  "",
		"nvidia.com/mig-of-another-brand": "",
	} {
		if got, ok := migProfile(resource); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t, want %q", resource, got, ok, want)
		}
	}
}

// A name is cut to 63 characters, and two that begin alike stay apart
// (NVIDIA/k8s-launch-kit#73). The hash is that of Python's hashlib.
func TestClassName(t *testing.T) {
	t.Parallel()
	long := "nvidia.com/RTX-PRO-6000-BLACKWELL-SERVER-EDITION-MACHINE-TYPE-G4-STANDARD-48"
	a, b := className(long), className(long+"X")
	if a != "nvidia-rtx-pro-6000-blackwell-server-edition-machine-387287a5cd" || len(a) > 63 || a == b || len(b) > 63 {
		t.Errorf("names %s, %s", a, b)
	}
	if got := className("nvidia.com/mig-1g.5gb"); got != "nvidia-mig-1g.5gb" {
		t.Errorf("name %s", got)
	}
}

func TestDRM102(t *testing.T) {
	t.Parallel()
	try(t, "DRM102", []given{
		{"whole GPUs", Migrate, prepared, func(s *state) { s.workload("idle", gpu, 1) }, nil, ""},
		{"a profile without a class", Migrate, prepared, func(s *state) { s.workload("idle", profile, 1) }, []string{"warning resource/" + profile}, "the templates of deployment/team/idle ask for it"},
		{"replicas", Migrate, prepared, func(s *state) { s.workload("idle", "nvidia.com/gpu.shared", 1) }, []string{"warning deployment/team/idle"}, "its template asks for nvidia.com/gpu.shared"},
		{"as many as a claim holds", Migrate, prepared, func(s *state) { s.workload("idle", gpu, 32) }, nil, ""},
		{"one more", Migrate, prepared, func(s *state) { s.workload("idle", gpu, 33) }, []string{"warning deployment/team/idle"}, "asks for 33 of nvidia.com/gpu, and a claim holds 32"},
		{"for another pool", Migrate, prepared, func(s *state) {
			s.workload("idle", gpu, 33).Template.NodeLabels = needs("karpenter.sh/nodepool", "other")
		}, nil, ""},
		{"for this pool", Migrate, prepared, func(s *state) {
			s.workload("idle", gpu, 33).Template.NodeLabels = needs("karpenter.sh/nodepool", "gpu")
		}, []string{"warning deployment/team/idle"}, ""},
		{"a Job that has ended", Migrate, prepared, func(s *state) {
			w := s.workload("ended", gpu, 33)
			w.Kind, w.Finished = cluster.KindJob, true
		}, nil, ""},
		{"a CronJob and its Job", Migrate, prepared, func(s *state) {
			w := s.workload("nightly", gpu, 33)
			w.Kind, w.Suspended = cluster.KindCronJob, true
			w = s.workload("nightly-123", gpu, 33)
			w.Kind, w.Owner = cluster.KindJob, cluster.Owner{Kind: cluster.KindCronJob, Name: "nightly"}
		}, []string{"warning cronjob/team/nightly"}, ""},
	})
}

func TestDRM103(t *testing.T) {
	t.Parallel()
	both := func(s *state) *cluster.Workload {
		w := s.workload("nccl", gpu, 4)
		w.Template.Claims, w.Template.ClaimTemplates = []string{""}, []string{"channel"}
		return w
	}
	nccl := []string{"warning deployment/team/nccl"}
	try(t, "DRM103", []given{
		{"a claim template and the resource", Migrate, prepared, func(s *state) { both(s) }, nccl, "uses ResourceClaimTemplate channel and asks for nvidia.com/gpu"},
		{"told in time", Prepare, prepared, func(s *state) { both(s) }, nccl, ""},
		{"wherever it may run", Migrate, prepared, func(s *state) { both(s).Template.NodeLabels = needs("karpenter.sh/nodepool", "other") }, nccl, ""},
		{"the resource alone", Migrate, prepared, func(s *state) { s.workload("idle", gpu, 1) }, nil, ""},
		{"a claim alone", Migrate, prepared, func(s *state) { both(s).Template.Requests = nil }, nil, ""},
		{"its pods are DRM006's", Migrate, prepared, func(s *state) {
			both(s)
			p := s.addPod("nccl-5f-1", "m1", 4)
			p.Claims, p.Labels, p.Owner = []string{"c"}, map[string]string{"pod-template-hash": "5f"}, cluster.Owner{Kind: "ReplicaSet", Name: "nccl-5f"}
		}, nil, ""},
	})
}

// The pod of kubernetes/kubernetes#134880: 1, a sidecar with 1, 2, and a container with 1.
// By the plugin it needs 3: the second init container's 2 beside the sidecar's. Without
// reuse it is 5.
func TestDRM104(t *testing.T) {
	t.Parallel()
	in := func(s *state) {
		s.pod("train").Requests = []cluster.Request{
			{Container: "ic1", Resource: gpu, Count: 1, Init: true}, {Container: "sidecar", Resource: gpu, Count: 1},
			{Container: "ic2", Resource: gpu, Count: 2, Init: true}, {Container: "c1", Resource: gpu, Count: 1},
		}
	}
	for version, want := range map[string][]string{
		"v1.34.4": {"warning replicaset/team/train"}, "v1.35.4": nil, "v1.36.3": nil, "v1.37.2": nil, "v1.38.0-beta.0": nil,
		"unread": {"warning replicaset/team/train"},
	} {
		given{version, Migrate, prepared, func(s *state) { in(s); s.Identity.ServerVersion = version }, want, ""}.run(t, "DRM104")
	}
	try(t, "DRM104", []given{
		{"the numbers", Migrate, prepared, func(s *state) { in(s); s.Identity.ServerVersion = "v1.34.4" }, []string{"warning replicaset/team/train"}, "has 5 devices for it, where the plugin needs 3"},
		{"it emulates 1.34", Migrate, prepared, func(s *state) { in(s); s.Identity.EmulationVersion = "1.34" }, []string{"warning replicaset/team/train"}, ""},
		{"no init containers", Migrate, prepared, func(s *state) { s.Identity.ServerVersion = "v1.34.4" }, nil, ""},
		{"it cannot be known", Migrate, prepared, func(s *state) { in(s); s.Identity.ServerVersion = "" }, []string{"warning replicaset/team/train"}, "cannot be known"},
	})
}

func TestDRM105(t *testing.T) {
	t.Parallel()
	by := func(scheduler, image string) func(*state) {
		return func(s *state) {
			s.pod("train").SchedulerName = scheduler
			if image != "" {
				s.addPod("scheduler", "cpu", 0).Images = []string{image}
			}
		}
	}
	const kai = "ghcr.io/kai-scheduler/kai-scheduler/scheduler:"
	warning, blocker := []string{"warning replicaset/team/train"}, []string{"blocker replicaset/team/train"}
	try(t, "DRM105", []given{
		{"kube-scheduler", Migrate, prepared, by("default-scheduler", ""), nil, ""},
		{"KAI 0.12", Migrate, prepared, by("kai-scheduler", kai+"v0.12.0"), blocker, "kai-scheduler 0.12.0, which puts no pod"},
		{"KAI 0.13 rejects", Migrate, prepared, by("kai-scheduler", kai+"v0.13.0"), blocker, ""},
		{"KAI 0.14", Migrate, prepared, by("kai-scheduler", "ghcr.io/nvidia/kai-scheduler/scheduler:v0.14.2@sha256:0123"), blocker, ""},
		{"KAI 0.15", Migrate, prepared, by("kai-scheduler", kai+"v0.15.0"), warning, "#1943"},
		{"KAI, unseen", Migrate, prepared, by("kai-scheduler", ""), warning, "cannot be seen"},
		{"Volcano", Migrate, prepared, by("volcano", ""), warning, "cannot be known"},
		{"on another pool", Migrate, prepared, func(s *state) { by("volcano", "")(s); s.pod("train").Node = "m1" }, nil, ""},
	})
}

func TestDRM106(t *testing.T) {
	t.Parallel()
	low := func(s *state) { s.addPod("low", "m1", 1).Priority = ptr.To[int32](0) }
	high := func(s *state) {
		low(s)
		s.pod("train").Priority = ptr.To[int32](1000)
	}
	train := []string{"warning replicaset/team/train"}
	for _, version := range []string{"v1.34.4", "v1.35.4", "v1.36.3", "v1.37.2", "v1.38.0-beta.0"} { // no preemption in any
		given{version, Migrate, prepared, func(s *state) { high(s); s.Identity.ServerVersion = version }, train, ""}.run(t, "DRM106")
	}
	try(t, "DRM106", []given{
		{"above another", Migrate, prepared, high, train, "has priority 1000, above that of other pods with nvidia.com/gpu (0)"},
		{"all alike", Migrate, prepared, func(s *state) { high(s); s.pod("low").Priority = ptr.To[int32](1000) }, nil, ""},
		{"it never preempts", Migrate, prepared, func(s *state) { high(s); s.pod("train").PreemptionPolicy = corev1.PreemptNever }, nil, ""},
		{"by its class, scaled to zero", Migrate, prepared, func(s *state) {
			low(s)
			s.PriorityClasses = []cluster.PriorityClass{{Name: "urgent", Value: 5}}
			s.workload("idle", gpu, 1).Template.PriorityClass = "urgent"
		}, []string{"warning deployment/team/idle"}, "has priority 5"},
	})
}

func TestDRM107AndDRM108(t *testing.T) {
	t.Parallel()
	try(t, "DRM107", []given{
		{"alone", Migrate, prepared, nil, nil, ""},
		{"in a group", Migrate, prepared, func(s *state) { s.pod("train").Group = "g-1" }, []string{"warning replicaset/team/train"}, "pod by pod"},
		{"a group without devices", Migrate, prepared, func(s *state) { s.addPod("web", "n1", 0).Group = "g-1" }, nil, ""},
	})
	try(t, "DRM108", []given{
		{"burstable", Migrate, prepared, nil, nil, ""},
		{"guaranteed", Migrate, prepared, func(s *state) { s.pod("train").Guaranteed = true }, []string{"info pool/gpu"}, "which cannot be seen from here"},
		{"once for the pool", Migrate, prepared, func(s *state) {
			s.pod("train").Guaranteed = true
			s.addPod("more", "n2", 1).Guaranteed = true
		}, []string{"info pool/gpu"}, "replicaset/team/more, replicaset/team/train are of QoS class Guaranteed"},
		{"guaranteed without devices", Migrate, prepared, func(s *state) { s.addPod("web", "n1", 0).Guaranteed = true }, nil, ""},
	})
}

func TestDRM109(t *testing.T) {
	t.Parallel()
	discovery := func(s *state, exprs ...corev1.NodeSelectorRequirement) {
		ds := s.addDaemonSet("gfd", nil, "", exprs...)
		ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "ctr", Image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", Command: []string{"gpu-feature-discovery"}}}
		s.pod("train").NodeLabels = needs("nvidia.com/gpu.product", "A100")
	}
	off := corev1.NodeSelectorRequirement{Key: "dramigrate.dev/allocation", Operator: corev1.NodeSelectorOpDoesNotExist}
	train := []string{"warning replicaset/team/train"}
	try(t, "DRM109", []given{
		{"it goes with the plugin", Migrate, prepared, func(s *state) { discovery(s, off) }, train, "selects nodes by nvidia.com/gpu.product, which daemonset/kube-system/gfd sets"},
		{"it stays", Migrate, prepared, func(s *state) { discovery(s) }, nil, ""},
		{"nobody selects by its labels", Migrate, prepared, func(s *state) { discovery(s, off); s.pod("train").NodeLabels = nil }, nil, ""},
		{"the operator's label", Migrate, prepared, func(s *state) { discovery(s, off); s.pod("train").NodeLabels = needs("nvidia.com/gpu.present", "true") }, nil, ""},
		{"set by hand", Migrate, prepared, func(s *state) { s.pod("train").NodeLabels = needs("nvidia.com/gpu.product", "A100") }, nil, ""},
		// jfroy/flatops#2620
		{"replicas that are no more", Migrate, migrated, func(s *state) { s.node("n1").Labels["nvidia.com/gpu.replicas"] = "8" }, []string{"warning node/n1"}, "label nvidia.com/gpu.replicas=8 is not true any more"},
		{"replicas on a node with the plugin are DRM008's", Migrate, prepared, func(s *state) { s.node("n1").Labels["nvidia.com/gpu.replicas"] = "8" }, nil, ""},
	})
}

func TestDRM110(t *testing.T) {
	t.Parallel()
	job := func(s *state) { s.pod("train").Owner = cluster.Owner{Kind: "Job", Name: "finetune"} }
	bare := func(s *state) { s.pod("train").Owner = cluster.Owner{} }
	try(t, "DRM110", []given{
		{"a Deployment's", Migrate, prepared, nil, nil, ""},
		{"a Job's", Migrate, prepared, job, []string{"warning job/team/finetune"}, "backoffLimit"},
		{"a Job's on the way back", Rollback, migrated, job, []string{"warning job/team/finetune"}, ""},
		{"a training operator's", Migrate, prepared, func(s *state) {
			s.pod("train").Owner = cluster.Owner{Kind: "PyTorchJob", Name: "llm"}
			s.pod("train").RestartPolicy = corev1.RestartPolicyNever
		}, []string{"warning pytorchjob/team/llm"}, "restartPolicy Never"},
		{"bare pods that may go, kubernetes#125579", Migrate, prepared, func(s *state) { bare(s); s.in.EvictUnmanaged = true }, []string{"warning pod/team/train"}, "ends it for good"},
		{"bare pods that may not are DRM019's", Migrate, prepared, bare, nil, ""},
		{"a Job without devices stays", Migrate, prepared, func(s *state) { s.addPod("etl", "n1", 0).Owner = cluster.Owner{Kind: "Job", Name: "etl"} }, nil, ""},
	})
}

func TestDRM111(t *testing.T) {
	t.Parallel()
	grace := func(seconds int64, drain time.Duration) func(*state) {
		return func(s *state) { s.pod("train").GracePeriodSeconds = &seconds; s.in.DrainTimeout = drain }
	}
	train := []string{"warning replicaset/team/train"}
	try(t, "DRM111", []given{
		{"30 seconds", Migrate, prepared, nil, nil, ""},
		{"five minutes", Migrate, prepared, grace(300, 15*time.Minute), nil, ""},
		{"an hour, and nobody has said how long the drain is", Migrate, prepared, grace(3600, 0), train, "may take 1h0m0s to end"},
		{"ten minutes of fifteen", Migrate, prepared, grace(600, 15*time.Minute), train, "may take 10m0s to end"},
		{"longer than the drain", Rollback, migrated, grace(900, 15*time.Minute), train, "the drain gives up after 15m0s"},
		{"a short drain", Migrate, prepared, grace(60, time.Minute), train, "the drain gives up after 1m0s"},
	})
}

func TestDRM112(t *testing.T) {
	t.Parallel()
	two := func(s *state) { // NVIDIA/k8s-device-plugin#1690
		s.pod("train").Requests = []cluster.Request{{Container: "a", Resource: gpu, Count: 1}, {Container: "b", Resource: gpu, Count: 1}}
	}
	shared := func(s *state) { s.node("n1").Labels["nvidia.com/gpu.replicas"] = "4" }
	try(t, "DRM112", []given{
		{"two containers, shared", Migrate, prepared, func(s *state) { two(s); shared(s) }, []string{"warning replicaset/team/train"}, "needs 2 whole ones"},
		{"two containers, not shared", Migrate, prepared, two, nil, ""},
		{"one container, shared", Migrate, prepared, shared, nil, ""},
	})
}

func TestDRM114(t *testing.T) {
	t.Parallel()
	claiming := func(s *state) *cluster.Workload {
		w := s.workload("explicit", "", 0)
		w.Template.Claims, w.Template.ClaimTemplates = []string{""}, []string{"one-gpu"}
		return w
	}
	running := func(by string) func(*state) {
		return func(s *state) {
			claiming(s)
			p := s.addPod("explicit-7c-1", "n2", 0)
			p.Claims, p.Labels, p.Owner = []string{"c"}, map[string]string{"pod-template-hash": "7c"}, cluster.Owner{Kind: "ReplicaSet", Name: "explicit-7c"}
			s.claim("c", by, "n2", "gpu-1", "explicit-7c-1")
		}
	}
	explicit := []string{"warning deployment/team/explicit"}
	try(t, "DRM114", []given{
		{"the resource's name", Rollback, migrated, func(s *state) { s.workload("idle", gpu, 1) }, nil, ""},
		{"a class by its implicit name", Rollback, migrated, func(s *state) { s.workload("explicit", "deviceclass.resource.kubernetes.io/gpu.nvidia.com", 1) }, explicit, "which no plugin serves"},
		{"another driver's class by its implicit name", Rollback, migrated, func(s *state) {
			s.Classes = append(s.Classes, resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "nic"}, Spec: class("", `device.driver == "net.example"`).Spec})
			s.workload("explicit", "deviceclass.resource.kubernetes.io/nic", 1)
		}, nil, ""},
		{"a template of claims, without pods", Rollback, migrated, func(s *state) { claiming(s) }, explicit, "ResourceClaimTemplate one-gpu; whether that is for devices of gpu.nvidia.com cannot be known"},
		{"a template of claims, by its pods", Rollback, migrated, running(driver), explicit, "those of its pods hold devices of gpu.nvidia.com"},
		{"a template of claims of another driver", Rollback, migrated, running("compute-domain.nvidia.com"), nil, ""},
		{"for another pool", Rollback, migrated, func(s *state) { claiming(s).Template.NodeLabels = needs("karpenter.sh/nodepool", "other") }, nil, ""},
		{"not on the way there", Migrate, migrated, func(s *state) { claiming(s) }, nil, ""},
	})
}

// What the finding tells to do is what explain tells: a pod with both is served where the
// pool is on DRA.
func TestDRM006Remedy(t *testing.T) {
	t.Parallel()
	s := prepared()
	s.pod("train").Claims = []string{"own"}
	const want = "keep it by its node selector to pools that are on DRA, where both are served"
	if got := remedies(Run(s.of(Migrate)), "DRM006"); !strings.Contains(got, want) {
		t.Errorf("remedy %q, want one with %q", got, want)
	}
	if c, _ := Find("DRM006"); !strings.Contains(c.Fix, want) {
		t.Errorf("explain says %q, want %q in it", c.Fix, want)
	}
}
