package checks

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// probed is a node that was asked at noon.
func probed(node string, change func(*Witness)) func(*state) {
	return func(s *state) {
		w := Witness{Node: node, Time: time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)}
		change(&w)
		s.in.Witnesses = append(s.in.Witnesses, w)
	}
}

func TestDRM058(t *testing.T) {
	t.Parallel()
	held := func(w *Witness) { w.Double, w.Held = []string{"pod a/legacy and pod a/claims have GPU-1"}, true }
	anew := func(s *state) {
		s.node("n1").CreationTimestamp = metav1.NewTime(time.Date(2026, 11, 3, 12, 0, 1, 0, time.UTC))
	}
	try(t, "DRM058", []given{
		{"two pods on one GPU", Migrate, prepared, probed("n1", held), []string{"blocker node/n1"}, "in two hands: pod a/legacy and pod a/claims have GPU-1"},
		{"offered by both", Migrate, prepared, probed("n1", func(w *Witness) { w.Double = []string{"x"} }), []string{"blocker node/n1"}, "offered by both mechanisms"},
		{"before a rollback", Rollback, migrated, probed("n1", held), []string{"blocker node/n1"}, ""},
		{"an old word still counts", Migrate, prepared, probed("n1", func(w *Witness) { held(w); w.Aged = true }), []string{"blocker node/n1"}, ""},
		{"of another machine of this name", Migrate, prepared, both(probed("n1", held), anew), nil, ""},
		{"of another pool", Migrate, prepared, probed("m1", held), nil, ""},
		{"clean", Migrate, prepared, probed("n1", func(*Witness) {}), nil, ""},
		{"nobody was asked", Migrate, prepared, nil, nil, ""},
	})
}

func TestDRM059(t *testing.T) {
	t.Parallel()
	try(t, "DRM059", []given{
		{"old", Migrate, prepared, probed("n1", func(w *Witness) { w.Aged = true }), []string{"warning node/n1"}, "2026-11-03T12:00:00Z"},
		{"of a node that is gone", Migrate, prepared, probed("n9", func(*Witness) {}), []string{"warning node/n9"}, "not in the cluster"},
		{"of another machine of this name", Migrate, prepared, both(probed("n1", func(*Witness) {}), func(s *state) {
			s.node("n1").CreationTimestamp = metav1.NewTime(time.Date(2026, 11, 4, 0, 0, 0, 0, time.UTC))
		}), []string{"warning node/n1"}, "made anew"},
		{"old, of another pool", Migrate, prepared, probed("m1", func(w *Witness) { w.Aged = true }), nil, ""},
		{"of now", Migrate, prepared, probed("n1", func(*Witness) {}), nil, ""},
	})
}

func TestDRM093(t *testing.T) {
	t.Parallel()
	const a, b, part = "GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec", "GPU-0bfeb96d-8a9f-59d4-beff-12eb65372aea", "MIG-11111111-2558-51a1-8097-3d34cde0c8ec"
	is := func(gpus map[string][]string, ids ...string) func(*state) {
		return probed("n1", func(w *Witness) { w.GPUs, w.Offered = gpus, map[string][]string{gpu: ids, "example.com/nic": {"0"}} })
	}
	two := map[string][]string{a: nil, b: nil}
	try(t, "DRM093", []given{
		{"the same", Migrate, prepared, is(two, a, b), nil, ""},
		{"replicas are one device", Migrate, prepared, is(two, a+"::0", a+"::1", b), nil, ""},
		{"a GPU is not offered", Migrate, prepared, is(two, a), []string{"warning node/n1"}, "shows " + b},
		{"an id that is not there", Migrate, prepared, is(map[string][]string{a: nil}, a, b), []string{"warning node/n1"}, "offers " + b},
		{"by a partition", Migrate, prepared, is(map[string][]string{a: {part}}, part), nil, ""},
		{"ids that are no UUIDs", Migrate, prepared, is(two, "0", "1"), []string{"info node/n1"}, "cannot be known: the plugin's device IDs are no UUIDs"},
		{"the hardware was not looked at", Migrate, prepared, is(nil, a), []string{"info node/n1"}, "cannot be known: its report has not all of its hardware"},
		{"the kubelet did not answer", Migrate, prepared, probed("n1", func(w *Witness) { w.GPUs = two }), []string{"info node/n1"}, "nothing of the kubelet"},
		{"a node that has moved", Migrate, migrated, is(two), nil, ""},
	})
}

// A node that was asked and could not tell, and one that was not asked, are not clean.
func TestDRM094(t *testing.T) {
	t.Parallel()
	open := func(w *Witness) { w.Undecided = "hardware: NVML is not there" }
	clean := func(*Witness) {}
	try(t, "DRM094", []given{
		{"nobody was asked", Migrate, prepared, nil, nil, ""},
		{"all have answered", Migrate, prepared, both(probed("n1", clean), probed("n2", clean)), nil, ""},
		{"one could not tell", Migrate, prepared, both(probed("n1", open), probed("n2", clean)), []string{"unknown node/n1"}, "cannot be told whether a device is in two hands: hardware: NVML is not there"},
		{"one was not asked", Migrate, prepared, probed("n1", clean), []string{"unknown node/n2"}, "no report is of it"},
		{"before a rollback", Rollback, migrated, probed("n1", clean), []string{"unknown node/n2"}, ""},
		{"a double is DRM058's", Migrate, prepared, both(probed("n1", func(w *Witness) { open(w); w.Double = []string{"x"} }), probed("n2", clean)), nil, ""},
		{"only another pool was asked", Migrate, prepared, probed("m1", clean), []string{"unknown pool/gpu"}, "nodes n1, n2: no report is of it"},
	})
}

// A move into another pool asks the nodes of both.
func TestReportsOfBothSides(t *testing.T) {
	t.Parallel()
	s := prepared()
	probed("m1", func(w *Witness) { w.Double, w.Held = []string{"pod a and pod b have GPU-1"}, true })(s)
	in := s.of(Migrate)
	got := brief(RunBoth(in, cluster.NodePool{Name: "new", Nodes: []string{"m1"}}), "DRM058")
	if diff := cmp.Diff([]string{"blocker node/m1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDRM095(t *testing.T) {
	t.Parallel()
	leftover := func(s *state) { s.addPod("left", "n1", 1) }
	try(t, "DRM095", []given{
		{"nobody", Verify, migrated, nil, nil, ""},
		{"a pod of the plugin on a node that is on DRA", Verify, migrated, leftover, []string{"blocker node/n1"}, "is on DRA, and pod/team/left got its device by the plugin"},
		{"before the rest of the pool moves", Migrate, migrated, leftover, []string{"blocker node/n1"}, ""},
		{"while a run has the node closed", Migrate, migrated, both(leftover, taint("n1", "dramigrate.dev/switching")), []string{"warning node/n1"}, ""},
		{"the way back ends it", Rollback, migrated, leftover, []string{"warning node/n1"}, ""},
		{"a pod that DRA serves", Verify, migrated, func(s *state) {
			leftover(s)
			s.bridge("left", gpu, "n1", "gpu-0")
		}, nil, ""},
		{"a node of the plugin", Migrate, prepared, leftover, nil, ""},
	})
}
