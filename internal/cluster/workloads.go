package cluster

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// The values of Workload.Kind.
const (
	KindDeployment  = "Deployment"
	KindStatefulSet = "StatefulSet"
	KindJob         = "Job"
	KindCronJob     = "CronJob"
)

// Workload is what makes pods that ask for devices. It is there also while it has no
// pod: scaled to zero, suspended, or before its time.
type Workload struct {
	Kind, Namespace, Name string
	UID                   types.UID
	// Replicas is how many pods it wants at a time; of a Job and of each Job of a
	// CronJob the parallelism.
	Replicas int32
	// Suspended is true for a Job or CronJob that makes no pods until it is resumed.
	Suspended bool
	// Finished is true for a Job that is complete or has failed: it makes no pod again.
	Finished bool
	// Owner is the controlling owner, such as the CronJob of a Job, or an operator's
	// object; zero if a person or a deployment tool made the workload.
	Owner Owner
	// Queue is the Kueue LocalQueue that admits the workload, or its pods.
	Queue string
	// Template is the pod that it would make: of its identity there is the namespace
	// alone, and of its status nothing.
	Template Pod
}

// Ref is the workload as messages name it: "deployment/namespace/name".
func (w *Workload) Ref() string {
	kind := map[string]string{
		KindDeployment: "deployment", KindStatefulSet: "statefulset", KindJob: "job", KindCronJob: "cronjob",
	}[w.Kind]
	return kind + "/" + w.Namespace + "/" + w.Name
}

// The functions below take from a workload what the tool needs of it; false if its
// pods would ask for no extended resource and no claim.

// ProjectDeployment projects a Deployment.
func ProjectDeployment(d *appsv1.Deployment) (Workload, bool) {
	w := Workload{Kind: KindDeployment, Replicas: ptr.Deref(d.Spec.Replicas, 1)}
	return w.of(&d.ObjectMeta, &d.Spec.Template)
}

// ProjectStatefulSet projects a StatefulSet.
func ProjectStatefulSet(s *appsv1.StatefulSet) (Workload, bool) {
	w := Workload{Kind: KindStatefulSet, Replicas: ptr.Deref(s.Spec.Replicas, 1)}
	return w.of(&s.ObjectMeta, &s.Spec.Template)
}

// ProjectJob projects a Job.
func ProjectJob(j *batchv1.Job) (Workload, bool) {
	w := Workload{Kind: KindJob, Replicas: ptr.Deref(j.Spec.Parallelism, 1), Suspended: ptr.Deref(j.Spec.Suspend, false)}
	w.Finished = slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
	return w.of(&j.ObjectMeta, &j.Spec.Template)
}

// ProjectCronJob projects a CronJob.
func ProjectCronJob(c *batchv1.CronJob) (Workload, bool) {
	job := &c.Spec.JobTemplate.Spec
	w := Workload{Kind: KindCronJob, Replicas: ptr.Deref(job.Parallelism, 1), Suspended: ptr.Deref(c.Spec.Suspend, false)}
	w.Queue = c.Spec.JobTemplate.Labels[QueueLabel]
	return w.of(&c.ObjectMeta, &job.Template)
}

func (w Workload) of(meta *metav1.ObjectMeta, t *corev1.PodTemplateSpec) (Workload, bool) {
	w.Namespace, w.Name, w.UID = meta.Namespace, meta.Name, meta.UID
	if ref := metav1.GetControllerOf(meta); ref != nil {
		w.Owner = Owner{Kind: ref.Kind, Name: ref.Name, UID: ref.UID}
	}
	w.Template = ProjectPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Labels: t.Labels, Finalizers: t.Finalizers},
		Spec:       t.Spec,
	})
	if queue := meta.Labels[QueueLabel]; queue != "" {
		w.Queue = queue
	} else if w.Queue == "" {
		w.Queue = w.Template.Queue
	}
	return w, len(w.Template.Requests) > 0 || len(t.Spec.ResourceClaims) > 0
}

// Object is an object that the workload is projected from again: it stands for the
// workload in files, as Pod.Object does for a pod.
func (w *Workload) Object() runtime.Object {
	meta := metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, UID: w.UID}
	if w.Queue != "" {
		meta.Labels = map[string]string{QueueLabel: w.Queue}
	}
	if w.Owner != (Owner{}) {
		meta.OwnerReferences = []metav1.OwnerReference{{
			Kind: w.Owner.Kind, Name: w.Owner.Name, UID: w.Owner.UID, Controller: ptr.To(true),
		}}
	}
	replicas, suspend, template := ptr.To(w.Replicas), ptr.To(w.Suspended), w.Template.template()
	switch w.Kind {
	case KindDeployment:
		return &appsv1.Deployment{TypeMeta: typeOf(appsv1.SchemeGroupVersion.WithKind(w.Kind)), ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{Replicas: replicas, Template: template}}
	case KindStatefulSet:
		return &appsv1.StatefulSet{TypeMeta: typeOf(appsv1.SchemeGroupVersion.WithKind(w.Kind)), ObjectMeta: meta,
			Spec: appsv1.StatefulSetSpec{Replicas: replicas, Template: template}}
	case KindCronJob:
		job := batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Parallelism: replicas, Template: template}}
		return &batchv1.CronJob{TypeMeta: typeOf(batchv1.SchemeGroupVersion.WithKind(w.Kind)), ObjectMeta: meta,
			Spec: batchv1.CronJobSpec{Suspend: suspend, JobTemplate: job}}
	default:
		job := &batchv1.Job{TypeMeta: typeOf(batchv1.SchemeGroupVersion.WithKind(KindJob)), ObjectMeta: meta,
			Spec: batchv1.JobSpec{Parallelism: replicas, Suspend: suspend, Template: template}}
		if w.Finished {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}
		return job
	}
}

// template is a template that the projected pod is made of again. It has no status that
// could tell the QoS class: resources of the whole pod stand for it.
func (p *Pod) template() corev1.PodTemplateSpec {
	pod := p.Object()
	if p.Guaranteed {
		if pod.Spec.Resources == nil {
			pod.Spec.Resources = &corev1.ResourceRequirements{}
		}
		pod.Spec.Resources.Limits = pod.Spec.Resources.Requests
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Finalizers: p.Finalizers},
		Spec:       pod.Spec,
	}
}
