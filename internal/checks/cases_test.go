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
		if !strings.Contains(f.Message, g.says) {
			t.Errorf("message %q, want one with %q", f.Message, g.says)
		}
		if f.Severity == Blocker && f.Remedy == "" {
			t.Errorf("%s: a blocker without a remedy", f.Object)
		}
		break
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
