package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestProjectPod(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	gpus := func(n string) corev1.ResourceRequirements {
		q := resource.MustParse(n)
		return corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": q, "cpu": resource.MustParse("1")},
			Limits:   corev1.ResourceList{"nvidia.com/gpu": q},
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "train-0", UID: "u1",
			Labels:            map[string]string{"app": "train"},
			Annotations:       map[string]string{corev1.MirrorPodAnnotationKey: "x"},
			DeletionTimestamp: &now,
			OwnerReferences: []metav1.OwnerReference{
				{Kind: "Node", Name: "other"},
				{Kind: "Job", Name: "train", UID: "u2", Controller: ptr.To(true)},
			},
		},
		Spec: corev1.PodSpec{
			NodeName:      "gpu-1",
			SchedulerName: "default-scheduler",
			ResourceClaims: []corev1.PodResourceClaim{
				{Name: "own", ResourceClaimName: ptr.To("shared-claim")},
				{Name: "made", ResourceClaimTemplateName: ptr.To("t")},
				{Name: "pending", ResourceClaimTemplateName: ptr.To("t")},
				{Name: "needless", ResourceClaimTemplateName: ptr.To("t")},
			},
			Volumes: []corev1.Volume{
				{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "b", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}}},
			},
			InitContainers: []corev1.Container{
				{Name: "warm", Image: "warm:1", Resources: gpus("1")},
				{Name: "side", Image: "side:1", Resources: gpus("2"), RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
			},
			Containers: []corev1.Container{
				{Name: "main", Image: "main:1", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
					"nvidia.com/gpu": resource.MustParse("4"),
					"amd.com/gpu":    resource.MustParse("0"),
					"deviceclass.resource.kubernetes.io/gpu.nvidia.com": resource.MustParse("1"),
				}}},
			},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ResourceClaimStatuses: []corev1.PodResourceClaimStatus{
				{Name: "made", ResourceClaimName: ptr.To("train-0-made-x7")},
				{Name: "needless"},
			},
			ExtendedResourceClaimStatus: &corev1.PodExtendedResourceClaimStatus{
				ResourceClaimName: "train-0-extended-resources-9",
				RequestMappings: []corev1.ContainerExtendedResourceRequest{
					{ContainerName: "main", ResourceName: "nvidia.com/gpu", RequestName: "container-2-request-0"},
				},
			},
			ContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
				{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}},
			},
		},
	}
	want := Pod{
		CPU:            1000,
		ClaimTemplates: []string{"t", "t", "t"},
		Namespace:      "team", Name: "train-0", UID: "u1", Node: "gpu-1", Phase: corev1.PodRunning,
		Labels: map[string]string{"app": "train"},
		Owner:  Owner{Kind: "Job", Name: "train", UID: "u2"},
		Static: true, Terminating: true, Ready: true, LocalStorage: true,
		SchedulerName: "default-scheduler",
		Requests: []Request{
			{Container: "warm", Resource: "nvidia.com/gpu", Count: 1, Init: true},
			{Container: "side", Resource: "nvidia.com/gpu", Count: 2},
			{Container: "main", Resource: "deviceclass.resource.kubernetes.io/gpu.nvidia.com", Count: 1},
			{Container: "main", Resource: "nvidia.com/gpu", Count: 4},
		},
		// A status entry without a name says that no claim was needed; one without
		// an entry is not generated yet.
		Claims: []string{"shared-claim", "train-0-made-x7", ""},
		Bridge: &Bridge{Claim: "train-0-extended-resources-9", Mappings: []Mapping{
			{Container: "main", Resource: "nvidia.com/gpu", Request: "container-2-request-0"},
		}},
		HostPaths: []string{"/var/log"},
		Images:    []string{"warm:1", "side:1", "main:1"},
		Waiting:   "CrashLoopBackOff",
		Placement: &Placement{},
	}
	if diff := cmp.Diff(want, ProjectPod(pod)); diff != "" {
		t.Errorf("ProjectPod (-want +got):\n%s", diff)
	}
}

func TestIsExtended(t *testing.T) {
	t.Parallel()
	for name, want := range map[corev1.ResourceName]bool{
		"cpu":                     false,
		"hugepages-2Mi":           false,
		"kubernetes.io/batch":     false,
		"x.kubernetes.io/thing":   false,
		"requests.nvidia.com/gpu": false,
		"nvidia.com/gpu":          true,
		"nvidia.com/mig-1g.5gb":   true,
		"deviceclass.resource.kubernetes.io/gpu.nvidia.com": true,
	} {
		if got := IsExtended(name); got != want {
			t.Errorf("IsExtended(%s) = %t, want %t", name, got, want)
		}
	}
}

func TestDevicesNeeded(t *testing.T) {
	t.Parallel()
	const r = "nvidia.com/gpu"
	for _, tt := range []struct {
		name     string
		requests []Request
		want     int64
	}{
		{"no request", nil, 0},
		{"another resource", []Request{{Resource: "amd.com/gpu", Count: 4}}, 0},
		{"each container has its own", []Request{{Resource: r, Count: 2}, {Resource: r, Count: 3}}, 5},
		{"an init container reuses what later ones get", []Request{{Resource: r, Count: 4, Init: true}, {Resource: r, Count: 4}}, 4},
		{"an init container needs more than later ones get", []Request{{Resource: r, Count: 8, Init: true}, {Resource: r, Count: 3}}, 8},
		{"init containers share the largest shortfall",
			[]Request{{Resource: r, Count: 5, Init: true}, {Resource: r, Count: 6, Init: true}, {Resource: r, Count: 4}}, 6},
		{"a sidecar that started before cannot be reused",
			[]Request{{Resource: r, Count: 2}, {Resource: r, Count: 3, Init: true}, {Resource: r, Count: 1}}, 5},
	} {
		p := Pod{Requests: tt.requests}
		if got := p.DevicesNeeded(r); got != tt.want {
			t.Errorf("%s: DevicesNeeded = %d, want %d", tt.name, got, tt.want)
		}
	}
}
