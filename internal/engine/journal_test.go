package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
)

func newJournals(client kubernetes.Interface) *Journals {
	return &Journals{Client: client, Namespace: "tool", Clock: clock.RealClock{}}
}

func addRun(id string, epoch int64) func(*cluster.Journal) error {
	return func(j *cluster.Journal) error {
		StartRun(j, cluster.RunRecord{ID: id, Operation: "migrate", Epoch: epoch, Started: metav1.NewTime(time.Unix(1_900_000_000, 0))})
		return nil
	}
}

func runIDs(j *cluster.Journal) []string {
	var ids []string
	for _, r := range j.Runs {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestJournalRoundTrip(t *testing.T) {
	client := newServer(t)
	js := newJournals(client)
	ctx := t.Context()
	if j, found, err := js.Load(ctx, "gpu-a"); err != nil || found || j.Pool != "gpu-a" || len(j.Runs) != 0 {
		t.Fatalf("before the first write: %+v %v %v", j, found, err)
	}
	if _, err := js.Update(ctx, "gpu-a", 3, addRun("r1", 3)); err != nil {
		t.Fatal(err)
	}
	ended := time.Unix(1_900_000_500, 0)
	if _, err := js.Update(ctx, "gpu-a", 3, func(j *cluster.Journal) error {
		EndRun(j, "r1", event.OutcomeStopped, "why", ended)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	j, found, err := js.Load(ctx, "gpu-a")
	if err != nil || !found || len(j.Runs) != 1 {
		t.Fatalf("%+v %v %v", j, found, err)
	}
	if r := j.Runs[0]; r.ID != "r1" || r.Epoch != 3 || r.Outcome != "stopped" || r.Message != "why" || !r.Ended.Time.Equal(ended) {
		t.Errorf("%+v", r)
	}
	cm, err := client.CoreV1().ConfigMaps("tool").Get(ctx, "pool-gpu-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if cm.Annotations["dramigrate.dev/pool"] != "gpu-a" || !strings.HasPrefix(cm.Data["journal.yaml"], "apiVersion: dramigrate.dev/v1alpha1\nkind: Journal\n") {
		t.Errorf("%v\n%s", cm.Annotations, cm.Data["journal.yaml"])
	}
}

// A field that was absent, one that was null-like and a list keep their meaning.
func TestJournalPreImages(t *testing.T) {
	js := newJournals(newServer(t))
	want := []cluster.PreImage{
		{Path: "/a", Before: json.RawMessage("null"), After: json.RawMessage(`{"x":[1,2]}`)},
		{Path: "/b", Before: json.RawMessage(`""`), After: json.RawMessage(`"null"`)},
		{Path: "/c", Before: json.RawMessage(`[{"key":"k","operator":"In","values":["1","true"]}]`), After: json.RawMessage(`[]`)},
	}
	_, err := js.Update(t.Context(), "", 1, func(j *cluster.Journal) error {
		j.Shared = &cluster.SharedRecord{PreImages: want}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	j, _, err := js.Load(t.Context(), "")
	if err != nil || j.Shared == nil {
		t.Fatalf("%+v %v", j, err)
	}
	for i, p := range j.Shared.PreImages {
		if p.Path != want[i].Path || string(p.Before) != string(want[i].Before) || string(p.After) != string(want[i].After) {
			t.Errorf("%s: before %s, after %s", p.Path, p.Before, p.After)
		}
	}
}

func TestJournalFenced(t *testing.T) {
	js := newJournals(newServer(t))
	ctx := t.Context()
	for _, r := range []struct {
		id    string
		epoch int64
	}{{"r1", 3}, {"r2", 5}} {
		if _, err := js.Update(ctx, "a", r.epoch, addRun(r.id, r.epoch)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := js.Update(ctx, "a", 3, func(*cluster.Journal) error {
		t.Error("the change of a fenced run is worked out")
		return nil
	})
	var fenced *FencedError
	if !errors.Is(err, ErrFenced) || !errors.As(err, &fenced) || fenced.Run != "r2" || fenced.Epoch != 5 || fenced.OwnEpoch != 3 {
		t.Errorf("got %v", err)
	}
	if j, _, err := js.Load(ctx, "a"); err != nil || MaxEpoch(j) != 5 || LastRun(j).ID != "r2" {
		t.Errorf("%+v %v", j, err)
	}
}

func TestJournalConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		js := newJournals(client)
		if _, err := js.Update(t.Context(), "a", 1, addRun("r1", 1)); err != nil {
			t.Fatal(err)
		}
		calls := 0
		_, err := js.Update(t.Context(), "a", 1, func(j *cluster.Journal) error {
			if calls++; calls == 1 { // somebody else writes between our read and our write
				if _, err := js.Update(t.Context(), "a", 1, addRun("other", 1)); err != nil {
					return err
				}
			}
			return addRun("r2", 1)(j)
		})
		if err != nil || calls != 2 {
			t.Fatalf("%d calls: %v", calls, err)
		}
		j, _, err := js.Load(t.Context(), "a")
		if got := runIDs(j); err != nil || !slices.Equal(got, []string{"r1", "other", "r2"}) {
			t.Errorf("%v %v", got, err)
		}
	})
}

// While we wait out a conflict, the new run's entry fences us.
func TestJournalFencedBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := newJournals(newServer(t))
		calls := 0
		_, err := js.Update(t.Context(), "a", 1, func(j *cluster.Journal) error {
			if calls++; calls == 1 {
				if _, err := js.Update(t.Context(), "a", 2, addRun("other", 2)); err != nil {
					return err
				}
			}
			return addRun("r1", 1)(j)
		})
		if !errors.Is(err, ErrFenced) || calls != 1 {
			t.Errorf("%d calls: %v", calls, err)
		}
	})
}

func TestJournalGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		tries := 0
		client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			tries++
			return true, nil, apierrors.NewInternalError(errors.New("etcd is away"))
		})
		_, err := newJournals(client).Update(t.Context(), "a", 1, addRun("r1", 1))
		if err == nil || tries != writeTries || !strings.Contains(err.Error(), "configmap/tool/pool-a") {
			t.Errorf("%d tries: %v", tries, err)
		}
		tries = 0
		client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			tries++
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "pool-a", errors.New("no"))
		})
		if _, err = newJournals(client).Update(t.Context(), "a", 1, addRun("r1", 1)); !apierrors.IsForbidden(err) || tries != 1 {
			t.Errorf("%d tries: %v", tries, err)
		}
	})
}

func TestJournalKeepsTwentyRuns(t *testing.T) {
	js := newJournals(newServer(t))
	for i := range 23 {
		if _, err := js.Update(t.Context(), "a", int64(i), addRun(fmt.Sprint("r", i), int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	j, _, err := js.Load(t.Context(), "a")
	if err != nil || len(j.Runs) != 20 || j.Runs[0].ID != "r3" || LastRun(j).ID != "r22" {
		t.Errorf("%v %v", runIDs(j), err)
	}
}

func TestJournalTooLarge(t *testing.T) {
	client := newServer(t)
	_, err := newJournals(client).Update(t.Context(), "a", 1, func(j *cluster.Journal) error {
		j.Selector = strings.Repeat("x", 256<<10)
		return nil
	})
	var large *JournalTooLargeError
	if !errors.As(err, &large) || large.Bytes <= 256<<10 {
		t.Errorf("got %v", err)
	}
	if _, err := client.CoreV1().ConfigMaps("tool").Get(t.Context(), "pool-a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Error("it was written all the same")
	}
}

func TestJournalRefusesWhatItCannotKeep(t *testing.T) {
	const head = "apiVersion: dramigrate.dev/v1alpha1\nkind: Journal\n"
	for name, tc := range map[string]struct{ data, want string }{
		"a later version": {"apiVersion: dramigrate.dev/v2\nkind: Journal\npool: a\n", "dramigrate.dev/v2"},
		"a new field":     {head + "pool: a\nfuture: 1\n", "future"},
		"another pool's":  {head + "pool: b\n", `"b"`},
		"no yaml":         {"{", "pool-a"},
	} {
		client := newServer(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tool", Name: "pool-a"}, Data: map[string]string{"journal.yaml": tc.data}})
		js := newJournals(client)
		if _, _, err := js.Load(context.Background(), "a"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: load: %v", name, err)
		}
		if _, err := js.Update(context.Background(), "a", 1, addRun("r1", 1)); err == nil {
			t.Errorf("%s: written over", name)
		}
	}
}
