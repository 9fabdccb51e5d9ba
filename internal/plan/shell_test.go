package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/dramigrate/dramigrate/internal/words/wordstest"
)

// A shell reads the undo of each step, and the way on, as the commands that are meant,
// whatever the pools are called.
func TestCommandsOfOddlyNamedPools(t *testing.T) {
	for _, c := range []struct{ pool, into string }{
		{"gpu-a", "gpu-b"},
		{"eks.amazonaws.com/nodegroup in (gpu-b,gpu-c)", "!spot,gpu in (a)"},
		{"gpu b;`id` ", "it's $(id)"},
	} {
		p := &Plan{
			Pool: &Pool{Name: c.pool}, Class: &Class{Name: "gpu"}, Resources: []string{"nvidia.com/gpu"},
			Driver: Driver{Names: []string{"gpu.nvidia.com"}}, Settings: Settings{HelperImage: "helper:1"},
		}
		back, again := []string{"dramigrate", "rollback", c.pool}, []string{"dramigrate", "apply", c.pool}
		wantUndo(t, migrateSteps(p), back)
		wantUndo(t, rollbackSteps(p), again)
		if got := wordstest.Split(t, p.Command()); !slices.Equal(got, again) {
			t.Errorf("the way on is %q, want %q", got, again)
		}
		p.Into = &Pool{Name: c.into}
		wantUndo(t, intoSteps(p), back)
		wantUndo(t, outOfSteps(p), append(slices.Clone(again), "--into", c.into))
	}
}

// wantUndo wants the command at the head of each undo that is one.
func wantUndo(t *testing.T, steps []Step, want []string) {
	t.Helper()
	found := 0
	for _, s := range steps {
		if !strings.HasPrefix(s.Undo, want[0]+" "+want[1]+" ") {
			continue
		}
		found++
		if got := wordstest.Split(t, wordstest.Until(s.Undo, ": ", ", ")); !slices.Equal(got, want) {
			t.Errorf("step %s: undo %s is %q, want %q", s.ID, s.Undo, got, want)
		}
	}
	if found == 0 {
		t.Errorf("no step is undone by %q", want)
	}
}
