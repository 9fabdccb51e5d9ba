package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSettingsShapeTheBatches(t *testing.T) {
	for _, c := range []struct {
		title    string
		settings func(*Settings)
		want     []Batch
		skipped  []Skip
	}{
		{"a first batch of two", func(s *Settings) { s.MaxUnavailable, s.FirstBatch = "1", 2 },
			[]Batch{{Nodes: []string{"a-1", "a-2"}}, {Nodes: []string{"a-3"}}}, nil},
		{"by hand, the others behind", func(s *Settings) { s.Batches = []Batch{{Nodes: []string{"a-3"}}} },
			[]Batch{{Nodes: []string{"a-3"}}, {Nodes: []string{"a-1", "a-2"}}}, nil},
		{"a node of another pool", func(s *Settings) {
			s.Batches = []Batch{{Nodes: []string{"a-2", "b-1"}}, {Nodes: []string{"a-1", "a-3"}}}
		},
			[]Batch{{Nodes: []string{"a-2"}}, {Nodes: []string{"a-1", "a-3"}}},
			[]Skip{{Node: "b-1", Why: "is named in a batch and is not in the pool"}}},
	} {
		t.Run(c.title, func(t *testing.T) {
			s, record := prepared(t)
			in := intent(Migrate)
			in.Shared = record
			in.Settings.MaxUnavailable = "2"
			c.settings(&in.Settings)
			p := build(t, in, s)
			if diff := cmp.Diff(c.want, p.Batches); diff != "" {
				t.Errorf("batches (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.skipped, p.Skipped); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettingsNameTheClass(t *testing.T) {
	s, record := prepared(t)
	record.HeldClass = nil
	in := intent(Migrate)
	in.Shared = record
	in.Settings.ClassName = "gold-gpu"
	if p := build(t, in, s); p.Class.Name != "gold-gpu" || p.Class.Object.Name != "gold-gpu" || p.Class.Action != Create {
		t.Errorf("class %+v", p.Class)
	}

	// Where another class has the name there can be no second one.
	s, record = prepared(t)
	in.Shared = record
	if _, err := Build(in, s); err == nil || !strings.Contains(err.Error(), "deviceclass/gpu.nvidia.com") {
		t.Errorf("error %v, want one that names the class of the driver's manifests", err)
	}
}

// The engine waits as long as the step of the plan says.
func TestSettingsBoundTheWaits(t *testing.T) {
	s, record := prepared(t)
	in := intent(Migrate)
	in.Shared = record
	in.Settings.Deadlines = Deadlines{
		ClaimsGone: metav1.Duration{Duration: 31 * time.Minute}, PluginGone: metav1.Duration{Duration: 32 * time.Minute},
		DriverReady: metav1.Duration{Duration: 33 * time.Minute}, SlicesComplete: metav1.Duration{Duration: 34 * time.Minute},
		Canary: metav1.Duration{Duration: 35 * time.Minute}, SlicesGone: metav1.Duration{Duration: 36 * time.Minute},
		PluginReady: metav1.Duration{Duration: 37 * time.Minute},
	}
	type place struct {
		step StepID
		wait int
	}
	minutes := func(op Operation) map[place]float64 {
		in.Operation = op
		p := build(t, in, s)
		out := map[place]float64{}
		for _, step := range p.NodeSteps {
			for i, w := range step.Waits {
				if m := w.Deadline.Minutes(); m > 30 { // no default is as long
					out[place{step.ID, i}] = m
				}
			}
		}
		return out
	}
	want := map[place]float64{
		{StepDrain, 1}: 31, {StepPluginOff, 0}: 32, {StepPluginOff, 1}: 32,
		{StepDriverOn, 0}: 33, {StepDriverOn, 1}: 34, {StepCanary, 0}: 35,
	}
	if diff := cmp.Diff(want, minutes(Migrate)); diff != "" {
		t.Errorf("migrate, minutes (-want +got):\n%s", diff)
	}
	want = map[place]float64{
		{StepDrainClaims, 1}: 31, {StepDriverOff, 0}: 32, {StepDriverOff, 1}: 36,
		{StepPluginOn, 0}: 37, {StepPluginOn, 1}: 37,
	}
	if diff := cmp.Diff(want, minutes(Rollback)); diff != "" {
		t.Errorf("rollback, minutes (-want +got):\n%s", diff)
	}
}

// What stands in pods and in commands is a name, or refused before anything begins.
func TestValidateNames(t *testing.T) {
	for _, tt := range []struct {
		change func(*Settings)
		want   string // empty if it is fine
	}{
		{func(s *Settings) { s.HelperImage = "registry.example.com:5000/a/b@sha256:1" }, ""},
		{func(s *Settings) { s.HelperImage = "a b" }, `helper-image "a b"`},
		{func(s *Settings) { s.HelperImage = "a\x1b[31m" }, "helper-image"},
		{func(s *Settings) { s.RuntimeClass = "nvidia" }, ""},
		{func(s *Settings) { s.RuntimeClass = "A B" }, `runtime-class "A B"`},
		{func(s *Settings) { s.PullSecret = "A B" }, `helper-pull-secret "A B"`},
		{func(s *Settings) { s.DriverRoot = "/run/nvidia/driver" }, ""},
		{func(s *Settings) { s.DriverRoot = "/" }, ""},
		{func(s *Settings) { s.DriverRoot = "/run/../x" }, "driver-root"},
		{func(s *Settings) { s.DriverRoot = "x" }, "driver-root"},
	} {
		s := intent(Migrate).Settings
		tt.change(&s)
		err := s.Validate(Migrate)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", s, err, tt.want)
		}
	}
}
