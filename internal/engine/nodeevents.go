package engine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/event"
)

// record writes an Event on the node, for auditors. It decides nothing, so a cluster
// that refuses it stops nothing.
func (n *nodeRun) record(ctx context.Context, kind, reason, message string) {
	now := metav1.NewTime(n.deps.Clock.Now())
	ev := &corev1.Event{
		// Events on cluster-scoped objects stand in the namespace "default".
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "dramigrate-", Namespace: metav1.NamespaceDefault},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.ref.Name, UID: n.ref.UID},
		Reason:         reason, Message: message, Type: kind,
		Source:         corev1.EventSource{Component: FieldManager},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		ReportingController: "dramigrate.dev/dramigrate", ReportingInstance: n.deps.Holder,
	}
	if len(ev.ReportingInstance) > 128 {
		ev.ReportingInstance = ev.ReportingInstance[:128]
	}
	if _, err := n.client.CoreV1().Events(ev.Namespace).Create(ctx, ev, metav1.CreateOptions{FieldManager: FieldManager}); err != nil {
		n.emit(event.Warned{Stamp: n.stamp(), Node: n.ref.Name, Message: fmt.Sprintf("no Event recorded: %v", err)})
	}
}
