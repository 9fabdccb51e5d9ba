package helperpod

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

func specRunner() *Runner {
	return New(nil, nil, Config{Namespace: "dramigrate-system", Run: "4f1c22aa", Image: "registry.example/dramigrate@sha256:0d5e", PullSecret: "registry"})
}

// wantYAML compares a whole pod, so that nothing gets into it unseen.
func wantYAML(t *testing.T, pod corev1.Pod, want string) {
	t.Helper()
	if pod.Annotations[attemptAnnotation] == "" {
		t.Error("the pod carries no attempt")
	}
	delete(pod.Annotations, attemptAnnotation)
	got, err := yaml.Marshal(struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     corev1.PodSpec    `json:"spec"`
	}{pod.ObjectMeta, pod.Spec})
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != strings.TrimLeft(want, "\n") {
		t.Errorf("pod is\n%s\nwant%s", got, want)
	}
}

func TestProbePod(t *testing.T) {
	wantYAML(t, specRunner().probePod("gpu-7", Wait{Timeout: 90 * time.Second}), `
metadata:
  annotations:
    dramigrate.dev/node: gpu-7
  labels:
    app.kubernetes.io/managed-by: dramigrate
    dramigrate.dev/purpose: probe
    dramigrate.dev/run: 4f1c22aa
  name: dramigrate-probe-gpu-7-4ffd5816b9
  namespace: dramigrate-system
spec:
  activeDeadlineSeconds: 90
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchFields:
          - key: metadata.name
            operator: In
            values:
            - gpu-7
  automountServiceAccountToken: false
  containers:
  - args:
    - node-probe
    - --node
    - gpu-7
    - --parts
    - kubelet
    - -o
    - json
    image: registry.example/dramigrate@sha256:0d5e
    imagePullPolicy: IfNotPresent
    name: main
    resources:
      limits:
        memory: 128Mi
      requests:
        cpu: 5m
        memory: 16Mi
    securityContext:
      allowPrivilegeEscalation: false
      capabilities:
        drop:
        - ALL
      readOnlyRootFilesystem: true
      runAsGroup: 0
      runAsUser: 0
    terminationMessagePolicy: FallbackToLogsOnError
    volumeMounts:
    - mountPath: /var/lib/kubelet/pod-resources
      name: pod-resources
      readOnly: true
  dnsPolicy: Default
  enableServiceLinks: false
  imagePullSecrets:
  - name: registry
  restartPolicy: Never
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  terminationGracePeriodSeconds: 5
  tolerations:
  - operator: Exists
  volumes:
  - hostPath:
      path: /var/lib/kubelet/pod-resources
      type: Directory
    name: pod-resources
`)
}

// The canary tolerates what its node's owner set for workloads and what closes a
// node, and not what says that the node is ill.
func TestCanaryPod(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-7"},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{
			{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule},
			{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule},
			{Key: "node.kubernetes.io/disk-pressure", Effect: corev1.TaintEffectNoSchedule},
			{Key: "dramigrate.dev/switching", Effect: corev1.TaintEffectNoSchedule},
			{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoExecute},
		}},
	}
	o := CanaryOptions{Resource: "nvidia.com/gpu", Count: 2, Image: "registry.example/cuda:13", Command: []string{"nvidia-smi", "-L"}}
	wantYAML(t, specRunner().canaryPod(node, o), `
metadata:
  annotations:
    dramigrate.dev/node: gpu-7
  labels:
    app.kubernetes.io/managed-by: dramigrate
    dramigrate.dev/purpose: canary
    dramigrate.dev/run: 4f1c22aa
  name: dramigrate-canary-gpu-7-4ffd5816b9
  namespace: dramigrate-system
spec:
  activeDeadlineSeconds: 120
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchFields:
          - key: metadata.name
            operator: In
            values:
            - gpu-7
  automountServiceAccountToken: false
  containers:
  - command:
    - nvidia-smi
    - -L
    image: registry.example/cuda:13
    imagePullPolicy: IfNotPresent
    name: main
    resources:
      limits:
        nvidia.com/gpu: "2"
      requests:
        cpu: 5m
        memory: 16Mi
    securityContext:
      allowPrivilegeEscalation: false
    terminationMessagePolicy: FallbackToLogsOnError
  dnsPolicy: Default
  enableServiceLinks: false
  imagePullSecrets:
  - name: registry
  restartPolicy: Never
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  terminationGracePeriodSeconds: 5
  tolerations:
  - effect: NoSchedule
    key: node.kubernetes.io/unschedulable
    operator: Exists
  - effect: NoSchedule
    key: dramigrate.dev/switching
    operator: Exists
  - effect: NoSchedule
    key: nvidia.com/gpu
    operator: Equal
    value: present
  - effect: NoExecute
    key: team
    operator: Equal
    value: vision
`)
}

func TestPullPod(t *testing.T) {
	r := New(nil, nil, Config{Namespace: "dramigrate-system"})
	wantYAML(t, r.pullPod("gpu-7", "registry.example/dramigrate:v1", Wait{Timeout: 1500 * time.Millisecond}), `
metadata:
  annotations:
    dramigrate.dev/node: gpu-7
  labels:
    app.kubernetes.io/managed-by: dramigrate
    dramigrate.dev/purpose: pull
  name: dramigrate-pull-gpu-7-4ffd5816b9
  namespace: dramigrate-system
spec:
  activeDeadlineSeconds: 2
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchFields:
          - key: metadata.name
            operator: In
            values:
            - gpu-7
  automountServiceAccountToken: false
  containers:
  - args:
    - version
    image: registry.example/dramigrate:v1
    imagePullPolicy: IfNotPresent
    name: main
    resources:
      limits:
        memory: 128Mi
      requests:
        cpu: 5m
        memory: 16Mi
    securityContext:
      allowPrivilegeEscalation: false
      capabilities:
        drop:
        - ALL
      readOnlyRootFilesystem: true
    terminationMessagePolicy: FallbackToLogsOnError
  dnsPolicy: Default
  enableServiceLinks: false
  restartPolicy: Never
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  terminationGracePeriodSeconds: 5
  tolerations:
  - operator: Exists
`)
}

// The hashes were computed with another SHA-256 (Python's hashlib): a name that
// changed would no longer find what an older version left.
func TestPodName(t *testing.T) {
	long := strings.Repeat("a", 252)
	tests := []struct{ node, want string }{
		{"gpu-7", "dramigrate-probe-gpu-7-4ffd5816b9"},
		{"ip-10-0-1-7.eu-central-1.compute.internal", "dramigrate-probe-ip-10-0-1-7-eu-central-1-compute-in-544f1ccbc9"},
		{long + "a", "dramigrate-probe-" + strings.Repeat("a", 35) + "-32859a3ab6"},
		{long + "b", "dramigrate-probe-" + strings.Repeat("a", 35) + "-7376f2b410"},
	}
	for _, tt := range tests {
		got := podName(ForProbe, tt.node)
		if got != tt.want {
			t.Errorf("podName(%s) = %s, want %s", tt.node, got, tt.want)
		}
		if bad := validation.IsDNS1123Label(got); len(bad) > 0 {
			t.Errorf("%s: %v", got, bad)
		}
	}
	// A cut that ends at a dot: 35 characters are left of the node's name.
	if got := podName(ForProbe, strings.Repeat("a", 34)+".b"); strings.Contains(got, "--") || strings.Contains(got, ".") {
		t.Errorf("podName cut at a dot = %s", got)
	}
}
