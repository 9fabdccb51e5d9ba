package checks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSkip(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value string
		want  FindingSkip
		err   string
	}{
		{"DRM006", FindingSkip{Code: "DRM006"}, ""},
		{"DRM006=pod/team/train-0", FindingSkip{Code: "DRM006", Object: "pod/team/train-0"}, ""},
		{"DRM006=", FindingSkip{}, "names no object"},
		{"drm006", FindingSkip{Code: "DRM006"}, ""},
		{"DRM999", FindingSkip{}, `there is no check "DRM999"`},
		{"DRM010", FindingSkip{}, "DRM010 cannot be skipped"}, // one device in two hands
		{"DRM003", FindingSkip{}, "DRM003 cannot be skipped"}, // --edit-owned names the danger
		{"DRM032", FindingSkip{}, "DRM032 cannot be skipped"}, // the run could not end
		{"", FindingSkip{}, "there is no check"},
	} {
		got, err := ParseSkip(tt.value)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q: error %v, want %q", tt.value, err, tt.err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", tt.value, err, diff)
		}
	}
}

func TestValidateSkips(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		skip FindingSkip
		err  string
	}{
		{FindingSkip{Code: "DRM020", Reason: "CHG-7"}, ""},
		{FindingSkip{Code: "DRM020"}, "without a reason"},
		{FindingSkip{Code: "DRM020", Reason: " \t"}, "without a reason"},
		{FindingSkip{Code: "DRM023", Reason: "CHG-7"}, "cannot be skipped"},
	} {
		err := ValidateSkips([]FindingSkip{tt.skip})
		if (err == nil) != (tt.err == "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%+v: error %v, want %q", tt.skip, err, tt.err)
		}
	}
}

// What was skipped stays in sight, last, and does not stop the run; the same of another
// object does.
func TestSkipped(t *testing.T) {
	t.Parallel()
	s := prepared()
	for _, name := range []string{"both-1", "both-2"} {
		s.addPod(name, "m1", 1).Claims = []string{"channel"}
	}
	in := s.of(Migrate)
	in.Skips = []FindingSkip{{Code: "DRM006", Object: "replicaset/team/both-2", Reason: "CHG-7"}}
	findings := shown(Run(in))
	var got []string
	for _, f := range findings {
		got = append(got, f.Code+" "+f.Object+" "+f.Skipped)
	}
	want := []string{"DRM006 replicaset/team/both-1 ", "DRM006 replicaset/team/both-2 CHG-7"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("findings (-want +got):\n%s", diff)
	}
	if !Stops(findings) || Stops(findings[1:]) {
		t.Errorf("stops: %t, without the first: %t; want true, false", Stops(findings), Stops(findings[1:]))
	}
	in.Skips = []FindingSkip{{Code: "DRM006", Reason: "CHG-7"}}
	if Stops(Run(in)) {
		t.Error("stops, though the check is skipped for every object")
	}
}

// A skip of an object that is not there is told, with what is; one that decides, and one
// of a whole check, are not.
func TestIdleSkips(t *testing.T) {
	t.Parallel()
	findings := []Finding{
		{Code: "DRM018", Object: "poddisruptionbudget/team/b"},
		{Code: "DRM018", Object: "poddisruptionbudget/team/a"},
		{Code: "DRM019", Object: "pod/team/x", Skipped: "CHG-7"},
	}
	got := IdleSkips([]FindingSkip{
		{Code: "DRM018", Object: "poddisruptionbudget/team/c"},
		{Code: "DRM019", Object: "pod/team/x"},
		{Code: "DRM122"},
		{Code: "DRM122", Object: "nodes"},
	}, findings)
	want := []string{
		"the skip DRM018=poddisruptionbudget/team/c decides nothing: DRM018 found poddisruptionbudget/team/a, poddisruptionbudget/team/b",
		"the skip DRM122=nodes decides nothing: DRM122 found nothing",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
