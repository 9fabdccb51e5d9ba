package drain

import (
	"context"
	"errors"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	kubectldrain "k8s.io/kubectl/pkg/drain"
)

// filter asks kubectl's own drain which of the pods may be evicted: it skips
// DaemonSet and mirror pods, and refuses unmanaged pods and pods with emptyDir data
// unless the options allow them. warnings is what kubectl would print.
//
// kubectl's filters come before any that a caller adds, so that a pod which is of
// no interest would fail the node. They are therefore shown the wanted pods alone.
func (d *Evictor) filter(ctx context.Context, node string, wanted []corev1.Pod) (pods []corev1.Pod, warnings string, err error) {
	helper := &kubectldrain.Helper{
		Ctx:                 ctx,
		Client:              listClient{Interface: d.o.Client, pods: wanted},
		Force:               d.o.EvictUnmanaged,
		GracePeriodSeconds:  -1, // each pod's own
		IgnoreAllDaemonSets: true,
		DeleteEmptyDirData:  d.o.DeleteEmptyDirData,
		Out:                 io.Discard,
		ErrOut:              io.Discard,
	}
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil, "", errors.Join(errs...)
	}
	return list.Pods(), list.Warnings(), nil
}

// listClient answers a list of pods with those it holds, everything else is the
// client's.
type listClient struct {
	kubernetes.Interface
	pods []corev1.Pod
}

func (c listClient) CoreV1() typedcorev1.CoreV1Interface {
	return listCore{CoreV1Interface: c.Interface.CoreV1(), pods: c.pods}
}

type listCore struct {
	typedcorev1.CoreV1Interface
	pods []corev1.Pod
}

func (c listCore) Pods(namespace string) typedcorev1.PodInterface {
	return listPods{PodInterface: c.CoreV1Interface.Pods(namespace), pods: c.pods}
}

type listPods struct {
	typedcorev1.PodInterface
	pods []corev1.Pod
}

func (c listPods) List(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
	return &corev1.PodList{Items: c.pods}, nil
}
