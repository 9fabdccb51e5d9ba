package checks

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/access"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// Every check has a state in which it cannot know. TestUnreadParts has it of a check that
// needs parts of the cluster; any other says it itself of an object that tells too little,
// or another check of the same run does, or what it reads always tells.
func TestEachCheckCannotKnow(t *testing.T) {
	t.Parallel()
	garbled := annotate("n1", gate.StateAnnotation, "{")
	unsaid := func(s *state) { s.node("n1").Status.NodeInfo = corev1.NodeSystemInfo{} }
	states := map[string]struct {
		operation string
		from      func() *state
		change    func(*state)
		by        string // the check that says it; its own code if empty
		want      Severity
		says      string
	}{
		"DRM002": {Migrate, prepared, unsaid, "", Unknown, "cannot be read"},
		"DRM008": {Migrate, prepared, unlabel("n1", gfdCount), "", Info, "no label tells"},
		"DRM009": {Migrate, prepared, unlabel("n1", gfdCount), "", Info, "no label tells"},
		"DRM011": {Migrate, prepared, unread(cluster.PartPods), "", Unknown, "could not be read"},
		"DRM012": {Migrate, prepared, garbled, "", Unknown, "cannot be read"},
		"DRM021": {Migrate, prepared, func(s *state) { s.node("n1").Status.Conditions = nil }, "", Unknown, "has no condition Ready"},
		"DRM030": {Migrate, prepared, func(s *state) {
			right := cluster.Right{Verb: "patch", Resource: "nodes"}
			s.in.Rights, s.in.Runs = []access.Need{{Right: right}}, true
			s.Access = &cluster.Access{Reviews: []cluster.AccessReview{{Right: right, Answer: cluster.Unanswered}}}
		}, "", Unknown, "does not say whether the caller may"},
		"DRM031": {Migrate, prepared, both(servedAPI(), unread(cluster.PartResourceAPI), func(s *state) { s.Source = &cluster.Source{} }), "", Unknown, "do not tell"},
		"DRM033": {Rollback, migrated, unsaid, "", Info, "cannot be known"},
		"DRM035": {Migrate, prepared, unsaid, "", Warning, "cannot be known"},
		// A kubelet writes its kernel and its own version at once, or neither
		// (pkg/kubelet/nodestatus/setters.go, VersionInfo, v1.37.2).
		"DRM037": {Migrate, prepared, unsaid, "DRM002", Unknown, "cannot be read"},
		// Where the workloads went, and whose cordon it is, is in the node's annotation.
		"DRM052": {MigrateInto, prepared, garbled, "DRM012", Unknown, "cannot be read"},
		"DRM055": {Migrate, prepared, garbled, "DRM012", Unknown, "cannot be read"},
		"DRM058": {Migrate, prepared, probed("n1", func(w *Witness) { w.Undecided = "no answer" }), "DRM094", Unknown, "cannot be told"},
		"DRM090": {Migrate, prepared, func(s *state) {
			n := s.node("n1")
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "AcceleratedHardwareReady", Status: corev1.ConditionUnknown})
		}, "", Warning, "cannot be known"},
		"DRM093": {Migrate, prepared, probed("n1", func(*Witness) {}), "", Info, "cannot be known"},
	}
	// What these read is given with what they are about.
	given := map[string]string{
		"DRM049": "the class is the run's own",
		"DRM059": "a report has its time",
		"DRM077": "no label is the configuration that is common to all",
		"DRM081": "no label is no upgrade",
		"DRM091": "no annotation is no machine config",
	}
	for _, c := range All() {
		s, own := states[c.Code]
		_, told := given[c.Code]
		ways := 0
		for _, way := range []bool{len(c.Needs) > 0, own, told} {
			if way {
				ways++
			}
		}
		if ways != 1 {
			t.Errorf("%s: %d of parts that it needs, a state in which it cannot know, and a reason why there is none; want one", c.Code, ways)
		}
		delete(states, c.Code)
		delete(given, c.Code)
		if !own {
			continue
		}
		if !slices.Contains(c.Operations, s.operation) {
			t.Errorf("%s is not asked by %s", c.Code, s.operation)
		}
		by := c.Code
		if s.by != "" {
			by = s.by
		}
		st := s.from()
		s.change(st)
		findings := Run(st.of(s.operation))
		if !slices.ContainsFunc(findings, func(f Finding) bool {
			return f.Code == by && f.Severity == s.want && strings.Contains(f.Message, s.says)
		}) {
			t.Errorf("%s: findings %+v, want %s of %s that says %q", c.Code, findings, s.want, by, s.says)
		}
	}
	if len(states)+len(given) > 0 {
		t.Errorf("states %v and reasons %v are of no check", sortedKeys(states), sortedKeys(given))
	}
}
