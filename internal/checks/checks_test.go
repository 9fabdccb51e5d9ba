package checks

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// brief is what the cases compare: the findings of one check.
func brief(findings []Finding, code string) []string {
	var out []string
	for _, f := range findings {
		if f.Code == code {
			out = append(out, string(f.Severity)+" "+f.Object)
		}
	}
	return out
}

// shown leaves out DRM097's note: that nobody is shown what a driver may do is so in every
// cluster that has one.
func shown(findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Code == "DRM097" && f.Severity == Info })
}

// A cluster in order has no finding, whatever is done next: a check that always
// fires is as useless as one that never does.
func TestNoFindingsInOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		operation string
		state     *state
	}{
		{Prepare, untouched()},
		{Prepare, prepared()},
		{Migrate, prepared()},
		{Migrate, migrated()}, // nothing to do
		{Rollback, migrated()},
		{Rollback, rolledBack()}, // nothing to do
		{Unprepare, rolledBack()},
	} {
		if got := shown(Run(tt.state.of(tt.operation))); len(got) > 0 {
			t.Errorf("%s: %+v, want no finding", tt.operation, got)
		}
	}
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	var codes []string
	for _, c := range All() {
		codes = append(codes, c.Code)
		if c.Why == "" || c.Fix == "" || len(c.Sources) == 0 || slices.Contains(c.Sources, "") {
			t.Errorf("%s: a check says why, what to do, and where that is written", c.Code)
		}
		if !regexp.MustCompile(`^DRM\d{3}$`).MatchString(c.Code) || c.Title == "" || c.Run == nil {
			t.Errorf("check %q, title %q: a check has a code, a title and a function", c.Code, c.Title)
		}
		for _, op := range c.Operations {
			if !slices.Contains([]string{Prepare, Migrate, Rollback, Unprepare, Verify, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto}, op) {
				t.Errorf("%s: unknown operation %q", c.Code, op)
			}
		}
		if len(c.Operations) == 0 {
			t.Errorf("%s: applies to nothing", c.Code)
		}
	}
	slices.Sort(codes)
	if len(slices.Compact(slices.Clone(codes))) != len(codes) {
		t.Errorf("codes %v, want each once", codes)
	}
	for _, s := range Sections() {
		if !slices.IsSortedFunc(s.Checks, func(a, b Check) int { return strings.Compare(a.Code, b.Code) }) {
			t.Errorf("group %q: want its checks by code", s.Group)
		}
	}
}

// What could not be read must never pass: every check that needs a part is named as
// not run, and reports nothing itself.
func TestUnreadParts(t *testing.T) {
	t.Parallel()
	for _, c := range All() {
		for _, op := range c.Operations {
			for _, part := range c.Needs {
				s := prepared()
				s.Unknown = []cluster.Unknown{{Part: part, Reason: "no such right"}}
				s.in.HelperImage, s.in.Witnesses = "example.com/helper:v1", []Witness{{Node: "n1"}}
				findings := Run(s.of(op))
				if c.Advises {
					if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Code == "DRM011" && strings.Contains(f.Message, c.Code) }) {
						t.Errorf("%s, %s: unread %s: findings %+v, want DRM011 that names the check", c.Code, op, part, findings)
					}
					continue
				}
				if !Stops(findings) {
					t.Errorf("%s, %s: unread %s does not stop apply", c.Code, op, part)
				}
				i := slices.IndexFunc(findings, func(f Finding) bool { return f.Code == "DRM011" && f.Object == part })
				if i < 0 || findings[i].Severity != Unknown || !strings.Contains(findings[i].Message, c.Code) || !strings.Contains(findings[i].Message, "no such right") {
					t.Errorf("%s, %s: unread %s: findings %+v, want DRM011 that names the check and the server's answer", c.Code, op, part, findings)
				}
				if own := brief(findings, c.Code); len(own) > 0 {
					t.Errorf("%s, %s: unread %s: it reports %v all the same", c.Code, op, part, own)
				}
			}
		}
	}
}

func TestDRM011(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, operation, part string
		want                  []string
	}{
		{"which cluster it is", Migrate, cluster.PartIdentity, []string{"unknown namespaces"}},
		{"a part that this operation does not need", Prepare, cluster.PartBudgets, nil},
		{"a part that it needs", Migrate, cluster.PartBudgets, []string{"unknown poddisruptionbudgets"}},
	} {
		s := prepared()
		s.Unknown = []cluster.Unknown{{Part: tt.part, Reason: "no"}}
		if diff := cmp.Diff(tt.want, brief(Run(s.of(tt.operation)), "DRM011")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// What files lack is asked for as files: a right does not help who has no access.
func TestDRM011OfFiles(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		cluster.PartBudgets:    "`kubectl get poddisruptionbudgets -A -o json`, in a file poddisruptionbudgets.json",
		cluster.PartVersion:    "`kubectl version -o json`",
		cluster.PartIdentity:   "`kubectl get namespace kube-system -o json`",
		cluster.PartJournals:   "`kubectl get configmaps -n gpu-tools -o json`, in a file configmaps.json",
		cluster.PartDashboards: "`kubectl get configmaps -A -l grafana_dashboard -o json`, in a file dashboards.json",
		cluster.PartNodes:      "`kubectl get nodes -A -o json`",
	} {
		s := prepared()
		s.Unknown = []cluster.Unknown{{Part: part, Reason: "the files hold none"}}
		s.Source, s.in.Namespace = &cluster.Source{}, "gpu-tools"
		findings := Run(s.of(Migrate))
		i := slices.IndexFunc(findings, func(f Finding) bool { return f.Code == "DRM011" && f.Object == part })
		if i < 0 || !strings.Contains(findings[i].Remedy, want) || strings.Contains(findings[i].Remedy, "right") {
			t.Errorf("%s: findings %+v, want DRM011 with remedy %s", part, findings, want)
		}
	}
}

// Advice that is lacking is one finding, with a command for each part.
func TestDRM011OfAdvice(t *testing.T) {
	t.Parallel()
	s := prepared()
	s.Unknown = []cluster.Unknown{{Part: cluster.PartPrometheusRules, Reason: "no"}, {Part: cluster.PartDashboards, Reason: "no"}}
	if got, want := remedies(Run(s.of(Migrate)), "DRM011"), "give the user that runs the tool the right to list prometheusrules, configmaps"; got != want {
		t.Errorf("remedy %q, want %q", got, want)
	}
	s.Source = &cluster.Source{}
	want := "add to --from the output of `kubectl get prometheusrules -A -o json`, in a file prometheusrules.json; of `kubectl get configmaps -A -l grafana_dashboard -o json`, in a file dashboards.json"
	if got := remedies(Run(s.of(Migrate)), "DRM011"); got != want {
		t.Errorf("remedy %q, want %q", got, want)
	}
}

// kubectl leaves the field managers out: nobody seen is not nobody there.
func TestDRM003WithoutManagers(t *testing.T) {
	t.Parallel()
	s := prepared()
	s.Unknown = []cluster.Unknown{{Part: cluster.PartManagers, Reason: "left out by kubectl"}}
	if diff := cmp.Diff([]string{"unknown daemonset/kube-system/plugin"}, brief(Run(s.of(Migrate)), "DRM003")); diff != "" {
		t.Errorf("nobody is seen (-want +got):\n%s", diff)
	}
	for i := range s.DaemonSets {
		s.DaemonSets[i].Annotations = map[string]string{"meta.helm.sh/release-name": "r"}
	}
	want := []string{"unknown daemonset/kube-system/driver", "unknown daemonset/kube-system/plugin"}
	if diff := cmp.Diff(want, brief(Run(s.of(Migrate)), "DRM003")); diff != "" {
		t.Errorf("an owner is seen, and both heed the label (-want +got):\n%s", diff)
	}
	s.daemonSet("plugin").Spec.Template.Spec.Affinity = nil
	want[0], want[1] = "blocker daemonset/kube-system/plugin", want[0]
	if diff := cmp.Diff(want, brief(Run(s.of(Migrate)), "DRM003")); diff != "" {
		t.Errorf("an owner is seen, and the plugin does not heed the label (-want +got):\n%s", diff)
	}
}

func TestBeforeMapping(t *testing.T) {
	t.Parallel()
	s := prepared()
	s.node("n1").Status.Conditions = nil // DRM021 is of no concern here
	p := s.addPod("both", "m1", 1)
	p.Claims = []string{"channel"}
	s.Unknown = []cluster.Unknown{{Part: cluster.PartBudgets, Reason: "no"}}
	got := BeforeMapping(s.of(Migrate))
	if len(got) != 1 || got[0].Code != "DRM006" || got[0].Severity != Blocker {
		t.Errorf("findings %+v, want DRM006 alone", got)
	}
	s.Unknown = append(s.Unknown, cluster.Unknown{Part: cluster.PartPods, Reason: "no"})
	got = BeforeMapping(s.of(Migrate))
	if len(got) != 1 || got[0].Code != "DRM011" || !strings.Contains(got[0].Message, "DRM006") || strings.Contains(got[0].Message, "DRM018") {
		t.Errorf("findings %+v, want DRM011 that names the checks of the mapping alone", got)
	}
}

func TestRunSorts(t *testing.T) {
	t.Parallel()
	s := prepared()
	s.budget("b", "train", 0)                            // DRM018, a warning
	s.node("n2").Status.NodeInfo.KubeletVersion = "none" // DRM002, unknown
	s.node("n1").Status.NodeInfo.KubeletVersion = "v1.35.9"
	delete(s.node("n1").Labels, "nvidia.com/gpu.count") // DRM008 and DRM009, infos
	s.pod("train").Owner = cluster.Owner{}              // DRM019, a blocker
	var got []string
	for _, f := range Run(s.of(Migrate)) {
		got = append(got, string(f.Severity)+" "+f.Code)
	}
	want := []string{"blocker DRM002", "blocker DRM019", "unknown DRM002", "warning DRM018", "info DRM008", "info DRM009", "info DRM097"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	for severity, want := range map[Severity]bool{Blocker: true, Unknown: true, Warning: false, Info: false} {
		if got := Stops([]Finding{{Severity: Info}, {Severity: severity}}); got != want {
			t.Errorf("Stops with %s = %t, want %t", severity, got, want)
		}
	}
	if Stops(nil) {
		t.Error("Stops without a finding")
	}
}
