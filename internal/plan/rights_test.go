package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dramigrate/dramigrate/internal/access"
)

// special are the rights of a plan beyond those that its verb needs in every case.
func special(t *testing.T, p *Plan) []string {
	t.Helper()
	needs, err := Rights(p)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := access.Of(VerbOf(p.Operation), p.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	var always, out []string
	for _, n := range access.Needs(rules) {
		always = append(always, n.String())
	}
	for _, n := range needs {
		if n.Why == "" {
			t.Errorf("%s is needed for no reason", n)
		}
		if !slices.Contains(always, n.String()) {
			out = append(out, n.String())
		}
	}
	for _, right := range always {
		if !slices.ContainsFunc(needs, func(n access.Need) bool { return n.String() == right }) {
			t.Errorf("%s is needed in every case and missing", right)
		}
	}
	return out
}

func TestRights(t *testing.T) {
	t.Parallel()
	s, shared := prepared(t)
	migrate := intent(Migrate)
	migrate.Shared = shared
	// Pods of the pool hold devices in namespace default alone, and no class is there.
	want := []string{"create pods/eviction in namespace default", "create deviceclasses.resource.k8s.io"}
	if diff := cmp.Diff(want, special(t, build(t, migrate, s))); diff != "" {
		t.Errorf("migrate (-want +got):\n%s", diff)
	}

	prepare := intent(Prepare)
	prepare.Manifests = readManifests(t, manifestFiles())
	if got := special(t, build(t, prepare, testCluster())); !slices.Contains(got, "patch daemonsets.apps nvidia-device-plugin-daemonset in namespace kube-system") {
		t.Errorf("prepare: %v, want the patch of the plugin's DaemonSet", got)
	}

	// There is nothing to roll back, so nothing is needed for it.
	nothing := intent(Rollback)
	nothing.Shared = shared
	if needs, err := Rights(build(t, nothing, s)); err != nil || len(needs) > 0 {
		t.Errorf("a plan without changes needs %v, error %v", needs, err)
	}
}

// The rights to the driver's objects follow from the plan's own changes.
func TestRightsOfManifests(t *testing.T) {
	t.Parallel()
	prepare := intent(Prepare)
	prepare.Manifests = readManifests(t, manifestFiles())
	p := build(t, prepare, testCluster())
	needs, err := Rights(p)
	if err != nil {
		t.Fatal(err)
	}
	applied := map[string]bool{}
	for _, step := range p.Shared {
		for _, c := range step.Changes {
			if c.Verb == "apply" {
				applied[c.Object.Name] = true
			}
		}
	}
	if len(applied) == 0 {
		t.Fatal("the plan applies nothing")
	}
	for name := range applied {
		if !slices.ContainsFunc(needs, func(n access.Need) bool { return n.Manifests && n.Name == name && n.Verb == "patch" }) {
			t.Errorf("no right to apply %s", name)
		}
	}
}
