package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/words/wordstest"
)

// What a plan says to type about a pool can be copied into a shell, whatever the pool is
// called. Its nodes are of two releases (DRM033), and only one has a report (DRM094).
func TestCommandsOfOddlyNamedPools(t *testing.T) {
	const several = "eks.amazonaws.com/nodegroup in (gpu-b,gpu-c)"
	for _, c := range []struct {
		groups   [2]string
		choose   []string
		pool     string
		selector string
	}{
		{[2]string{"gpu-b", "gpu-c"}, []string{"-l", several}, several, several},
		{[2]string{"gpu b;`id` ", "gpu b;`id` "}, []string{"gpu b;`id` "}, "gpu b;`id` ", "eks.amazonaws.com/nodegroup=gpu b;`id` "},
	} {
		t.Run(c.pool, func(t *testing.T) {
			objects, group := twoNodes(), c.groups[:]
			for _, o := range objects {
				if node, ok := o.(*corev1.Node); ok {
					node.Labels["eks.amazonaws.com/nodegroup"], group = group[0], group[1:]
					if node.Name == "a-2" {
						node.Status.NodeInfo.KubeletVersion = "v1.36.2"
					}
				}
			}
			reports := t.TempDir()
			if err := os.WriteFile(filepath.Join(reports, "a-1.json"), []byte(savedReport(t, nil)), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"plan"}, append(c.choose, "--helper-image", "h", "--reports", reports, "-o")...)
			back := []string{"dramigrate", "rollback", c.pool}

			page := invoke(t, objects, nil, done, append(args, "markdown")...)
			_, after, found := strings.Cut(page.stdout, "; back by ")
			if commands := wordstest.Commands(after, "dramigrate"); !found || len(commands) == 0 || !slices.Equal(wordstest.Split(t, commands[0]), back) {
				t.Errorf("back by %q, want %q\n%s%s", commands, back, page.stdout, page.err)
			}

			made := invoke(t, objects, nil, done, append(args, "json")...)
			p := &plan.Plan{}
			if err := json.Unmarshal([]byte(made.stdout), p); err != nil {
				t.Fatalf("%v\n%s%s", err, made.stdout, made.err)
			}
			if undo := wordstest.Split(t, wordstest.Until(p.NodeSteps[0].Undo, ": ")); !slices.Equal(undo, back) {
				t.Errorf("step %s: undo %q, want %q", p.NodeSteps[0].ID, undo, back)
			}
			for _, want := range []struct {
				code, program string
				args          []string
			}{
				{"DRM033", "kubectl", []string{"kubectl", "get", "nodes", "-l", c.selector}},
				{"DRM094", "dramigrate", []string{"dramigrate", "probe", c.pool, "--save", "DIR"}},
			} {
				found := false
				for _, f := range p.Findings {
					if commands := wordstest.Commands(f.Remedy, want.program); f.Code == want.code && len(commands) > 0 {
						found = true
						if got := wordstest.Split(t, commands[0]); !slices.Equal(got, want.args) {
							t.Errorf("%s: %q, want %q", want.code, got, want.args)
						}
					}
				}
				if !found {
					t.Errorf("no remedy of %s has a command of %s", want.code, want.program)
				}
			}
		})
	}
}
