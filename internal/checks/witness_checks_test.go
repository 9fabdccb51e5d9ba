package checks

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		{"ids that are no UUIDs", Migrate, prepared, is(two, "0", "1"), nil, ""},
		{"the hardware was not looked at", Migrate, prepared, is(nil, a), nil, ""},
		{"a node that has moved", Migrate, migrated, is(two), nil, ""},
	})
}
