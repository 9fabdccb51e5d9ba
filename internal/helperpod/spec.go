package helperpod

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// What the pods carry, beside the label of everything that the tool creates.
const (
	// RunLabel is the ID of the run that made the pod.
	RunLabel = "dramigrate.dev/run"
	// PurposeLabel is the pod's Purpose.
	PurposeLabel = cluster.HelperLabel
	// attemptAnnotation is different in each pod that is sent to the server: a
	// create whose answer got lost is recognised by it.
	attemptAnnotation = "dramigrate.dev/attempt"
)

// container is the name of a helper pod's only container.
const container = "main"

// stopSeconds is the grace period of the pods. They hold nothing that has to be
// brought to an end, and whoever removes them waits.
const stopSeconds = 5

// pod is what all helper pods have in common: they run once, on one node that the
// scheduler must agree to, and reach nothing.
//
// The node is named by a field of node affinity, as the DaemonSet controller does
// it (pkg/controller/daemon/util/daemonset_util.go, v1.37.2): with spec.nodeName the
// scheduler would not be asked, and nothing would be allocated to the pod.
func (r *Runner) pod(p Purpose, node string, tolerations []corev1.Toleration, w Wait, c corev1.Container) corev1.Pod {
	labels := map[string]string{
		gate.ManagedByLabel: gate.ManagedBy,
		PurposeLabel:        string(p),
	}
	if r.config.Run != "" {
		labels[RunLabel] = r.config.Run
	}
	c.Name = container
	c.ImagePullPolicy = corev1.PullIfNotPresent
	// The last lines of the log, should the container fail without a message.
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	out := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.config.Namespace,
			Name:      podName(p, node, r.config.Run),
			Labels:    labels,
			Annotations: map[string]string{
				cluster.HelperNodeAnnotation: node,
				attemptAnnotation:            string(uuid.NewUUID()),
			},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         ptr.To(int64((w.timeout() + time.Second - 1) / time.Second)),
			TerminationGracePeriodSeconds: ptr.To[int64](stopSeconds),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			// The pods look up no name. A kubelet without cluster DNS warns of every
			// pod that asks for it, over what the pod may really be stuck at.
			DNSPolicy: corev1.DNSDefault,
			SecurityContext: &corev1.PodSecurityContext{
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchFields: []corev1.NodeSelectorRequirement{{
							Key:      metav1.ObjectNameField,
							Operator: corev1.NodeSelectorOpIn,
							Values:   []string{node},
						}},
					}},
				},
			}},
			Tolerations: tolerations,
			Containers:  []corev1.Container{c},
		},
	}
	if r.config.PullSecret != "" {
		out.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: r.config.PullSecret}}
	}
	return out
}

// helperResources are little enough for a node that is full.
func helperResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("5m"),
			corev1.ResourceMemory: resource.MustParse("16Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
	}
}

// everywhere tolerates every taint: whatever keeps workloads off a node, looking at
// it must be possible.
func everywhere() []corev1.Toleration {
	return []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

// bare is what a helper container may do: nothing.
func bare() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func (r *Runner) pullPod(node, image string, w Wait) corev1.Pod {
	return r.pod(ForPull, node, everywhere(), w, corev1.Container{
		Image:           image,
		Args:            []string{"version"},
		Resources:       helperResources(),
		SecurityContext: bare(),
	})
}

// canaryPod asks for the resource as a workload does: by a limit alone. It stays
// with the security defaults of its image as well, but for what no workload needs to
// list its devices.
func (r *Runner) canaryPod(node *corev1.Node, o CanaryOptions) corev1.Pod {
	resources := helperResources()
	// How much memory the image's command needs is not known here.
	resources.Limits = corev1.ResourceList{
		corev1.ResourceName(o.Resource): *resource.NewQuantity(o.Count, resource.DecimalSI),
	}
	c := corev1.Container{
		Image:           o.Image,
		Command:         o.Look,
		Resources:       resources,
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false)},
	}
	if len(o.Look) == 0 {
		c.Args = []string{"version"}
	}
	return r.pod(ForCanary, node.Name, canaryTolerations(node), o.Wait, c)
}

// canaryTolerations let the canary onto a closed node and past the taints that its
// owner set for workloads to tolerate. Taints by which Kubernetes tells that the
// node is not well (node.kubernetes.io/not-ready, …/disk-pressure, …) still keep it
// off: a workload would not start there either.
func canaryTolerations(node *corev1.Node) []corev1.Toleration {
	out := []corev1.Toleration{
		{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: gate.SwitchingTaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}
	for _, t := range node.Spec.Taints {
		if t.Key == gate.SwitchingTaintKey || strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			continue
		}
		out = append(out, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
	}
	return out
}
