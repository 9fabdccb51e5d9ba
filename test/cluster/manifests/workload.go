package manifests

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// WorkloadImage prints the GPUs that its container sees and waits.
	WorkloadImage = "nvcr.io/nvidia/cuda:13.0.1-base"
	// WorkloadContainer is the name of the container in [Workload] and [WorkloadPod].
	WorkloadContainer = "cuda"
	// appLabel carries a workload's name on its pods.
	appLabel = "app"
	// resourceGPU is the name under which the device plugin advertises GPUs.
	resourceGPU corev1.ResourceName = "nvidia.com/gpu"
)

// Workload is a Deployment of pods that ask for one GPU each in the way of the
// device plugin, on nodes with the labels of pool.
func Workload(namespace, name string, replicas int32, pool map[string]string) *appsv1.Deployment {
	return NVIDIA().Workload(namespace, name, replicas, pool)
}

// Workload is such a Deployment for the GPUs of the make.
func (m Make) Workload(namespace, name string, replicas int32, pool map[string]string) *appsv1.Deployment {
	labels := workloadLabels(name)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       m.workloadSpec(pool),
			},
		},
	}
}

// WorkloadPod is one pod like those of [Workload], owned by nobody and not
// started again when it ends.
func WorkloadPod(namespace, name string, pool map[string]string) *corev1.Pod {
	spec := NVIDIA().workloadSpec(pool)
	spec.RestartPolicy = corev1.RestartPolicyNever
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: workloadLabels(name)},
		Spec:       spec,
	}
}

// Budget keeps at least minAvailable pods of the [Workload] of that name.
func Budget(namespace, name string, minAvailable int) *policyv1.PodDisruptionBudget {
	available := intstr.FromInt(minAvailable)
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: workloadLabels(name)},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &available,
			Selector:     &metav1.LabelSelector{MatchLabels: workloadLabels(name)},
		},
	}
}

func workloadLabels(name string) map[string]string {
	return map[string]string{appLabel: name}
}

func (m Make) workloadSpec(pool map[string]string) corev1.PodSpec {
	return corev1.PodSpec{
		NodeSelector: maps.Clone(pool),
		Tolerations: []corev1.Toleration{{
			Key:      string(m.Resource),
			Operator: corev1.TolerationOpExists,
			Effect:   corev1.TaintEffectNoSchedule,
		}},
		Containers: []corev1.Container{{
			Name:  WorkloadContainer,
			Image: m.Image,
			Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{m.Resource: resource.MustParse("1")},
			},
		}},
	}
}
