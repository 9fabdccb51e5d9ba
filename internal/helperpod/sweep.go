package helperpod

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// Sweep removes the helper pods that earlier runs have left for a node, when they
// were killed. A canary among them holds a device, and nothing else would ever remove
// it. Sweep does not wait until they are gone: a drain does, and so does a pod of the
// same purpose. The caller holds the pool's lock, so that no other run needs them; reports, which take
// no lock, are left alone while they may be in use.
func (r *Runner) Sweep(ctx context.Context, node string) error {
	pods := r.client.CoreV1().Pods(r.config.Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: PurposeLabel})
	if err != nil {
		return fmt.Errorf("node/%s: look for left helper pods: %w", node, err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Annotations[cluster.HelperNodeAnnotation] != node || p.Labels[RunLabel] == r.config.Run || p.DeletionTimestamp != nil || r.inUse(p) {
			continue
		}
		err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("node/%s: remove left helper pod %s/%s: %w", node, p.Namespace, p.Name, err)
		}
	}
	return nil
}

// inUse says that somebody may still read the pod who holds no lock: a report's pod has
// a deadline, and whoever made it removes it soon after.
func (r *Runner) inUse(p *corev1.Pod) bool {
	if p.Labels[PurposeLabel] != string(ForReport) || p.Spec.ActiveDeadlineSeconds == nil {
		return false
	}
	deadline := time.Duration(*p.Spec.ActiveDeadlineSeconds)*time.Second + removal
	return r.clock.Since(p.CreationTimestamp.Time) < deadline
}
