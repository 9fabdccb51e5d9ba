package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestRecordName(t *testing.T) {
	seen := map[string]string{}
	for pool, want := range map[string]string{
		"":                       "shared",
		"shared":                 "pool-shared",
		"gpu-a":                  "pool-gpu-a",
		"a.b-1":                  "pool-a.b-1",
		"GPU_a":                  "pool-gpu-a-",
		"gpu/a":                  "pool-gpu-a-",
		"gpu=a":                  "pool-gpu-a-",
		"Ünï":                    "pool--n--",
		strings.Repeat("x", 300): "pool-" + strings.Repeat("x", 200) + "-",
	} {
		got := RecordName(pool)
		hashed := strings.HasSuffix(want, "-")
		if !hashed && got != want || hashed && (!strings.HasPrefix(got, want) || len(got) != len(want)+8) {
			t.Errorf("%q: %q, want %q", pool, got, want)
		}
		if bad := validation.IsDNS1123Subdomain(got); len(bad) > 0 {
			t.Errorf("%q: %q: %v", pool, got, bad)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q share the name %q", pool, other, got)
		}
		seen[got] = pool
	}
}

func TestLoadRecords(t *testing.T) {
	journal := func(name, data string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tool", Name: name, Labels: map[string]string{KindLabel: KindJournal}},
			Data:       map[string]string{JournalKey: data},
		}
	}
	const head = "apiVersion: dramigrate.dev/v1alpha1\nkind: Journal\n"
	holder := "she@host/1"
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tool", Name: "pool-gpu-a", Annotations: map[string]string{LockInfoPrefix + "operation": "migrate"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}
	other := journal("pool-other", head+"pool: other\n")
	other.Namespace = "elsewhere"
	s, err := Load(t.Context(), server(journal("shared", head), journal("pool-gpu-a", head+"pool: gpu-a\nnodes: [a-1]\n"), other, lease),
		LoadOptions{Namespace: "tool"})
	if err != nil || len(s.Unknown) > 0 {
		t.Fatalf("error %v, unknown %v", err, s.Unknown)
	}
	if j := s.Journal("gpu-a"); j == nil || len(j.Nodes) != 1 || s.Journal("") == nil || s.Journal("other") != nil {
		t.Errorf("journals %+v: want those of gpu-a, with a node, and of the shared objects", s.Journals)
	}
	if lock, held := s.Lock("gpu-a"); !held || lock.Holder != holder || lock.Info["operation"] != "migrate" {
		t.Errorf("lock %+v, held %v", lock, held)
	}
	if _, held := s.Lock(""); held {
		t.Error("nobody holds the shared lock")
	}

	// A journal that cannot be understood is no empty one.
	s, err = Load(t.Context(), server(journal("pool-gpu-a", head+"pool: gpu-a\nfuture: 1\n")), LoadOptions{Namespace: "tool"})
	if err != nil {
		t.Fatal(err)
	}
	if why, unknown := s.IsUnknown(PartJournals); !unknown || !strings.Contains(why, "configmap/tool/pool-gpu-a") {
		t.Errorf("unknown %v: want the journals, with the name of the ConfigMap", s.Unknown)
	}
}

// What is written into a file is read from it as it was.
func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	ended := metav1.Unix(2000, 0)
	for _, want := range []Journal{
		{APIVersion: APIVersion, Kind: JournalKind},
		{APIVersion: APIVersion, Kind: JournalKind, Pool: "GPU_a", Selector: "a=b", Nodes: []string{"n1"},
			Runs: []RunRecord{{ID: "r1", Operation: "migrate", Epoch: 3, Started: metav1.Unix(1000, 0), Ended: &ended, Outcome: "done"}},
			Shared: &SharedRecord{DriverSource: "installed", PreImages: []PreImage{{
				Object: ObjectRef{Kind: "DaemonSet", Name: "d", UID: "u"}, Path: "/spec", Before: []byte("null"), After: []byte(`{"a":1}`)}}}},
	} {
		cm, err := EncodeJournal(&want, "tool")
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeJournal(cm)
		if err != nil || cm.Namespace != "tool" || cm.Labels[KindLabel] != KindJournal {
			t.Fatalf("%+v: %v", cm, err)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("journal of %q (-want +got):\n%s", want.Pool, diff)
		}
	}
	since := time.UnixMicro(1234567)
	for _, want := range []LockInfo{
		{Namespace: "tool", Name: "pool-a", TTL: DefaultLockTTL, Info: map[string]string{}},
		{Namespace: "tool", Name: "pool-b", Holder: "she", Since: since, RenewedAt: since.Add(time.Second), ExpiresAt: since.Add(31 * time.Second),
			TTL: 30 * time.Second, Epoch: 7, Info: map[string]string{"operation": "migrate"}},
	} {
		if diff := cmp.Diff(want, LockOf(want.Lease())); diff != "" {
			t.Errorf("lock %s (-want +got):\n%s", want.Name, diff)
		}
	}
}
