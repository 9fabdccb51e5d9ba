package offline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// mostDevices is far beyond any count of an extended resource, bytes included, and so far
// below what an int64 holds that the counts of a thousand nodes can be added.
const mostDevices = 1 << 53

// decodeObject is decode for an object of a cluster, which no server would have taken with
// counts that are none.
func decodeObject(raw []byte, into any) error {
	if err := decode(raw, into); err != nil {
		return err
	}
	switch o := into.(type) {
	case *corev1.Node:
		return cmp.Or(checkCounts("status.capacity", o.Status.Capacity), checkCounts("status.allocatable", o.Status.Allocatable))
	case *corev1.Pod:
		return checkPodCounts("spec", &o.Spec)
	case *appsv1.DaemonSet:
		return checkPodCounts("spec.template.spec", &o.Spec.Template.Spec)
	case *appsv1.Deployment:
		return checkPodCounts("spec.template.spec", &o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		return checkPodCounts("spec.template.spec", &o.Spec.Template.Spec)
	case *batchv1.Job:
		return checkPodCounts("spec.template.spec", &o.Spec.Template.Spec)
	case *batchv1.CronJob:
		return checkPodCounts("spec.jobTemplate.spec.template.spec", &o.Spec.JobTemplate.Spec.Template.Spec)
	case *corev1.ResourceQuota:
		return cmp.Or(checkQuota("spec.hard", o.Spec.Hard), checkQuota("status.hard", o.Status.Hard), checkQuota("status.used", o.Status.Used))
	}
	return nil
}

func checkPodCounts(field string, spec *corev1.PodSpec) error {
	if err := checkContainers(field+".initContainers", spec.InitContainers); err != nil {
		return err
	}
	return checkContainers(field+".containers", spec.Containers)
}

func checkContainers(field string, containers []corev1.Container) error {
	for i := range containers {
		at := fmt.Sprintf("%s[%d].resources", field, i)
		if err := checkCounts(at+".requests", containers[i].Resources.Requests); err != nil {
			return err
		}
		if err := checkCounts(at+".limits", containers[i].Resources.Limits); err != nil {
			return err
		}
	}
	return nil
}

// checkCounts refuses counts of extended resources that are negative or not whole
// (pkg/apis/core/validation/validation.go, validateResourceQuantityValue, v1.37.2), or
// that nobody can have.
func checkCounts(field string, list corev1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		if !cluster.IsExtended(name) {
			continue
		}
		switch {
		case q.CmpInt64(mostDevices) > 0:
			return fmt.Errorf("%s[%s]: is %s, more than this version counts (%d): correct it, or leave the object out", field, name, q.String(), int64(mostDevices))
		case q.Sign() < 0 || q.CmpInt64(q.Value()) != 0:
			return notCounted(field, name, q.String(), "a whole number of devices, not negative")
		}
	}
	return nil
}

// checkQuota refuses negative limits and uses. Of what a quota may be, a server does not
// ask that it is whole, and a limit beyond all counts is none.
func checkQuota(field string, list corev1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; q.Sign() < 0 {
			return notCounted(field, name, q.String(), "not negative")
		}
	}
	return nil
}

func notCounted(field string, name corev1.ResourceName, is, must string) error {
	return fmt.Errorf("%s[%s]: must be %s, is %s, which no API server takes: correct it, or collect the file again", field, name, must, is)
}
