package checks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// given is one state on which a check is tried. want lists "severity object".
type given struct {
	name      string
	operation string
	from      func() *state
	change    func(*state)
	want      []string
	says      string // a part of the first finding's message
}

func (g given) run(t *testing.T, code string) {
	t.Helper()
	s := g.from()
	if g.change != nil {
		g.change(s)
	}
	findings := Run(s.of(g.operation))
	if diff := cmp.Diff(g.want, brief(findings, code)); diff != "" {
		t.Errorf("findings of %s (-want +got):\n%s", code, diff)
	}
	for _, f := range findings {
		if f.Code != code {
			continue
		}
		pasteable(t, f)
		// Whoever reads one that is more than a note is to do something.
		if f.Severity != Info && f.Remedy == "" {
			t.Errorf("%s: a %s without a remedy: %s", f.Object, f.Severity, f.Message)
		}
	}
	for _, f := range findings {
		if f.Code != code {
			continue
		}
		if !strings.Contains(f.Message, g.says) {
			t.Errorf("message %q, want one with %q", f.Message, g.says)
		}
		break
	}
}

// pasteable wants the commands of a remedy between backticks, where tables keep them
// whole, and nodes by their names.
func pasteable(t *testing.T, f Finding) {
	t.Helper()
	prose := ""
	for i, part := range strings.Split(f.Remedy, "`") {
		if i%2 == 0 {
			prose += part
		}
	}
	for _, tool := range []string{"kubectl ", "gcloud ", "aws eks", "az aks", "oc ", "dramigrate prepare", "dramigrate rollback"} {
		if strings.HasPrefix(prose, tool) || strings.Contains(prose, " "+tool) {
			t.Errorf("%s: remedy %q has a command without backticks", f.Code, f.Remedy)
		}
	}
	if strings.Contains(f.Remedy, placeNode+" ") || strings.Contains(f.Remedy, placeNode+"`") {
		t.Errorf("%s: remedy %q names no node", f.Code, f.Remedy)
	}
}

func try(t *testing.T, code string, cases []given) {
	t.Helper()
	for _, g := range cases {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			g.run(t, code)
		})
	}
}
