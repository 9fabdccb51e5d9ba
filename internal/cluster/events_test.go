package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

func TestPodEvents(t *testing.T) {
	t.Parallel()
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	c := server()
	var asked clienttesting.ListActionImpl
	c.PrependReactor("list", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		asked = a.(clienttesting.ListActionImpl)
		return true, &corev1.EventList{Items: []corev1.Event{
			{Type: "Warning", Reason: "FailedScheduling", Message: "0/9 nodes", Source: corev1.EventSource{Component: "default-scheduler"},
				LastTimestamp: metav1.Time{Time: at(100)}, Count: 7},
			{Type: "Normal", Reason: "Scheduled", ReportingController: "gang-scheduler", EventTime: metav1.MicroTime{Time: at(50)},
				Series: &corev1.EventSeries{Count: 3, LastObservedTime: metav1.MicroTime{Time: at(200)}}},
			{Type: "Normal", Reason: "Pulled", Source: corev1.EventSource{Component: "kubelet"}, ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: at(10)}}},
		}}, nil
	})
	got, err := PodEvents(context.Background(), c, "team", "train-0", "u1")
	if err != nil {
		t.Fatal(err)
	}
	want := []PodEvent{
		{"Normal", "Scheduled", "", "gang-scheduler", at(200), 3},
		{"Warning", "FailedScheduling", "0/9 nodes", "default-scheduler", at(100), 7},
		{"Normal", "Pulled", "", "kubelet", at(10), 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if s := asked.ListOptions.FieldSelector; asked.Namespace != "team" || s != "involvedObject.kind=Pod,involvedObject.name=train-0,involvedObject.uid=u1" {
		t.Errorf("asked for %q in %q", s, asked.Namespace)
	}
}

func TestPodEventsAreBounded(t *testing.T) {
	t.Parallel()
	c := server()
	pages := 0
	c.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &corev1.EventList{ListMeta: metav1.ListMeta{Continue: "more"}}
		for i := range 500 {
			list.Items = append(list.Items, corev1.Event{Reason: fmt.Sprint(pages*500 + i), LastTimestamp: metav1.Unix(int64(pages*500+i), 0)})
		}
		pages++
		return true, list, nil
	})
	got, err := PodEvents(context.Background(), c, "team", "train-0", "")
	if err != nil || len(got) != 100 || got[0].Reason != "1999" || pages != 4 {
		t.Errorf("%d events of %d pages, %v, want the newest 100 of 4 pages", len(got), pages, err)
	}
}

func TestPodEventsForbidden(t *testing.T) {
	t.Parallel()
	c := server()
	c.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no such right"))
	})
	if _, err := PodEvents(context.Background(), c, "team", "train-0", ""); !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want Forbidden", err)
	}
}
