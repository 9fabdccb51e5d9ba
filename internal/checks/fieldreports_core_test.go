package checks

import (
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// fieldReport is a public report from the field: the state that it tells of, and what has to
// be said about that ("CODE severity object"), or with none that nothing may be.
type fieldReport struct {
	name      string
	operation string
	from      func() *state
	change    func(*state)
	// codes are the checks that are looked at; all if there is none.
	codes []string
	want  []string
	says  string // a part of the message of the first
}

// Reports about versions, advertisement and classes, each by the state that it shows.
func TestFieldReportsCore(t *testing.T) {
	t.Parallel()
	eight := func(s *state) { // n1 advertises eight GPUs and is as NVIDIA's discovery sees it
		both(has("n1", gpu, "8"), label("n1", gfdCount, "8"))(s)
	}
	for _, r := range []fieldReport{
		{"B-001 both mechanisms on a node", Migrate, prepared, both(eight, func(s *state) {
			s.Slices = append(s.Slices, nodeSlice("n1", driver, "gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5", "gpu-6", "gpu-7"))
			s.runDaemon("driver", "n1")
		}), []string{"DRM010"}, []string{"DRM010 blocker node/n1"}, "8 of nvidia.com/gpu are allocatable by the plugin while gpu.nvidia.com publishes 8 devices"},
		{"B-003 ComputeDomain slices beside the plugin", Migrate, prepared, both(eight, func(s *state) {
			s.Slices = append(s.Slices, nodeSlice("n1", "compute-domain.nvidia.com", "channel-0", "daemon-0"))
		}), nil, nil, ""},
		{"B-007 a second class for a taken name", Migrate, prepared, func(s *state) {
			s.Classes = []resourcev1.DeviceClass{class("older", ofGPUs), class("newer", ofGPUs)}
			s.Classes[1].CreationTimestamp = metav1.Unix(60, 0)
		}, []string{"DRM005"}, []string{"DRM005 blocker deviceclass/older"}, "deviceclass/newer does, which is the one in force"},
		{"B-009 three classes, two of one second", Migrate, prepared, func(s *state) {
			s.Classes = []resourcev1.DeviceClass{class("a", ofGPUs), class("b", ofGPUs), class("c", ofGPUs)}
			s.Classes[1].CreationTimestamp, s.Classes[2].CreationTimestamp = metav1.Unix(60, 0), metav1.Unix(60, 0)
		}, []string{"DRM005"}, []string{"DRM005 blocker deviceclass/a", "DRM005 blocker deviceclass/c"}, "as deviceclass/b does"},
		{"B-017 both gates in 1.37.0-rc.0", Migrate, prepared, both(serverVersion("v1.37.0-rc.0", ""), kubelet("v1.37.0-rc.0", "n1", "n2"),
			gates([]string{cluster.FeatureExtendedResource, cluster.FeatureNodeAllocatable}, nil)), nil,
			[]string{"DRM036 warning server"}, "DRANodeAllocatableResources is on (kubernetes_feature_enabled"},
		{"B-021 privileged, the variable, no request", Migrate, prepared, func(s *state) {
			p := s.addPod("jupyter", "n1", 0)
			p.Privileged, p.VisibleDevices, p.Owner = true, "all", cluster.Owner{}
		}, nil, []string{"DRM044 warning pod/team/jupyter"}, "NVIDIA_VISIBLE_DEVICES=all"},
		{"B-061 stale numbers after a change of MIG", Migrate, prepared, both(eight, has("n1", "nvidia.com/mig-1g.5gb", "56"), has("n1", "nvidia.com/mig-7g.40gb", "8")),
			[]string{"DRM040"}, []string{"DRM040 warning node/n1"}, "56 of nvidia.com/mig-1g.5gb, 8 of nvidia.com/mig-7g.40gb besides: one of these is stale"},
		{"B-063 a resource of zero is left for ever", Migrate, prepared, has("n1", "nvidia.com/gpu.shared", "0"), nil, nil, ""},
		{"B-065 pods use a resource that was patched in", Migrate, prepared, both(has("n1", "example.com/dongle", "4"), func(s *state) {
			s.addPod("dongle", "n1", 0).Requests = []cluster.Request{{Container: "main", Resource: "example.com/dongle", Count: 1}}
		}), nil, []string{"DRM040 info node/n1"}, "replicaset/team/dongle use it"},
		{"B-067 two plugin pods, one of them ending", Rollback, rolledBack, func(s *state) {
			old := *s.pod("plugin-n1")
			old.Name, old.UID, old.Terminating = "plugin-old", "old", true
			s.Pods = append(s.Pods, old)
		}, nil, []string{"DRM038 warning node/n1"}, "plugin-old"},
		{"B-077 two plugin pods for minutes", Prepare, untouched, func(s *state) {
			s.addDaemonSet("second", map[string]string{"app": "nvidia-device-plugin-daemonset"}, pluginFolder)
			s.runDaemon("second", "n1")
		}, []string{"DRM038"}, []string{"DRM038 warning node/n1"}, "all serve nvidia.com/gpu there"},
		{"B-079 capacity 16, allocatable 0", Migrate, prepared, both(has("n1", gpu, "16"), label("n1", gfdCount, "16"), allocatable("n1", gpu, "0")),
			nil, []string{"DRM026 warning node/n1"}, "has 16 of nvidia.com/gpu and none of them allocatable"},
		{"B-091 a slice without devices", Rollback, migrated, func(s *state) { s.Slices[1].Spec.Devices = nil }, nil, []string{"DRM041 warning node/n2"}, "a slice without devices"},
		{"B-095 a slice, and no pod of its driver", Rollback, migrated, func(s *state) { s.stop("driver", "n2") }, nil, []string{"DRM042 warning node/n2"}, "no pod of it runs there"},
		{"B-107 a kubelet without the feature", Migrate, prepared, kubelet("v1.29.0", "n1", "n2"), nil, []string{"DRM002 blocker pool/gpu"}, "kubelet v1.29.0"},
		{"B-115 WSL2", Migrate, prepared, func(s *state) {
			s.node("n1").Status.NodeInfo.KernelVersion = "6.6.87.2-microsoft-standard-WSL2"
		}, nil, []string{"DRM037 blocker node/n1"}, ""},
		{"B-117 another release's class has the name", Migrate, prepared, func(s *state) {
			s.in.NewClass = "gpu.nvidia.com"
			s.Classes = []resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{
				Name: "gpu.nvidia.com", Annotations: map[string]string{helmOwned: "other", "meta.helm.sh/release-namespace": "gpu"},
			}}}
		}, []string{"DRM028"}, []string{"DRM028 blocker deviceclass/gpu.nvidia.com"}, "owned by Helm release gpu/other"},
		{"B-119 the class may be taken away by its owner", Migrate, prepared, func(s *state) {
			carries("gpu.nvidia.com", ofGPUs)(s)
			s.Classes[0].Annotations = map[string]string{helmOwned: "dra", "meta.helm.sh/release-namespace": "gpu"}
		}, []string{"DRM048"}, []string{"DRM048 info deviceclass/gpu.nvidia.com"}, "new pods on every switched node wait"},
		{"B-143 a name over 63 characters", Migrate, prepared, func(s *state) {
			carries("gpu.nvidia.com-"+strings.Repeat("rtx-pro-6000-", 5), ofGPUs)(s)
			s.Classes[0].Name = strings.TrimSuffix(s.Classes[0].Name, "-")
		}, []string{"DRM045"}, []string{"DRM045 info deviceclass/gpu.nvidia.com-rtx-pro-6000-rtx-pro-6000-rtx-pro-6000-rtx-pro-6000-rtx-pro-6000"}, "cannot be asked for"},
		{"B-155 seven of eight, and a restart would make it eight", Migrate, prepared, both(eight, allocatable("n1", gpu, "7")), nil, []string{"DRM039 warning node/n1"}, "7 of 8 nvidia.com/gpu are allocatable: 1 not healthy"},
		{"B-155 the way back hides what the driver found", Rollback, migrated, func(s *state) {
			s.node("n1").Annotations["dramigrate.dev/state"] = `{"pool":"gpu","operation":"migrate","run":"r","advertised":["GPU-n1-gpu-0","GPU-n1-gpu-1","GPU-8"],"openedAt":"2026-01-01T00:00:00Z"}`
		}, nil, []string{"DRM039 warning node/n1"}, "GPU-8"},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := r.from()
			if r.change != nil {
				r.change(s)
			}
			findings := shown(Run(s.of(r.operation)))
			if len(r.codes) > 0 {
				findings = Only(s.of(r.operation), r.codes)
			}
			var got []string
			for _, f := range findings {
				got = append(got, f.Code+" "+string(f.Severity)+" "+f.Object)
			}
			if strings.Join(got, "\n") != strings.Join(r.want, "\n") {
				t.Fatalf("findings %q, want %q", got, r.want)
			}
			if len(findings) > 0 && !strings.Contains(findings[0].Message, r.says) {
				t.Errorf("message %q, want one with %q", findings[0].Message, r.says)
			}
		})
	}
}
