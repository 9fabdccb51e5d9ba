package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// PodEvent is one event about a pod. Events are no part of a Snapshot: they are gone
// after an hour, and a plan must not depend on them.
type PodEvent struct {
	// Type is Normal or Warning.
	Type, Reason string
	// Message has at most 2 KiB.
	Message string
	// Source is who says so ("default-scheduler", "kubelet").
	Source string
	// Last is when it was seen last, Count how often.
	Last  time.Time
	Count int32
}

// Bounds on the events of one pod: those that are read, and those that are kept.
const (
	readEvents = 2_000
	keptEvents = 100
)

// PodEvents are the last events about one pod, the newest first, at most 100. An error
// names the pod; one that may not see events fails with Forbidden.
func PodEvents(ctx context.Context, client kubernetes.Interface, namespace, name string, uid types.UID) ([]PodEvent, error) {
	about := fields.Set{"involvedObject.kind": "Pod", "involvedObject.name": name}
	if uid != "" {
		about["involvedObject.uid"] = string(uid)
	}
	// A Set as it is written is sorted; as a selector it is in the order of a map.
	opts := metav1.ListOptions{FieldSelector: about.String(), Limit: 500}
	var out []PodEvent
	for {
		page, err := client.CoreV1().Events(namespace).List(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("events of pod/%s/%s: %w", namespace, name, err)
		}
		for i := range page.Items {
			out = append(out, podEvent(&page.Items[i]))
		}
		if opts.Continue = page.Continue; opts.Continue == "" || len(out) >= readEvents {
			break
		}
	}
	return newest(out), nil
}

// newest are the last events, the newest first.
func newest(list []PodEvent) []PodEvent {
	slices.SortStableFunc(list, func(a, b PodEvent) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return list[:min(len(list), keptEvents)]
}

// AboutPod is an event with the pod that it is about.
type AboutPod struct {
	Namespace, Name string
	UID             types.UID
	PodEvent
}

// EventOf reads an event; false if it is not about a pod.
func EventOf(e *corev1.Event) (AboutPod, bool) {
	of := e.InvolvedObject
	return AboutPod{of.Namespace, of.Name, of.UID, podEvent(e)}, of.Kind == "Pod"
}

// EventsOf are those of a list that are about one pod, the newest first, at most 100. A
// pod of another UID had the name before.
func EventsOf(list []AboutPod, namespace, name string, uid types.UID) []PodEvent {
	var out []PodEvent
	for i := range list {
		e := &list[i]
		if e.Namespace == namespace && e.Name == name && (uid == "" || e.UID == "" || e.UID == uid) {
			out = append(out, e.PodEvent)
		}
	}
	return newest(out)
}

// podEvent reads an event of either API: the newer one has series instead of counts.
func podEvent(e *corev1.Event) PodEvent {
	out := PodEvent{
		Type: e.Type, Reason: bounded(e.Reason, maxReason), Message: bounded(e.Message, maxMessage),
		Source: cmp.Or(e.Source.Component, e.ReportingController), Last: e.LastTimestamp.Time, Count: e.Count,
	}
	for _, t := range []time.Time{e.EventTime.Time, e.CreationTimestamp.Time} {
		if out.Last.IsZero() {
			out.Last = t
		}
	}
	if e.Series != nil {
		out.Count = e.Series.Count
		if t := e.Series.LastObservedTime.Time; t.After(out.Last) {
			out.Last = t
		}
	}
	out.Count = max(out.Count, 1)
	return out
}
