package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// watch starts a `status --watch` of a pool, and returns when it has told how the nodes
// are, on the plugin.
func (f *fixture) watch(pool string, nodes ...string) *Process {
	f.Helper()
	p, err := f.Tool.Start(f.ctx, "status", pool, "--watch")
	f.ok(err)
	f.ok(Eventually(f.ctx, patience, func() string {
		for _, n := range nodes {
			if !slices.Equal(mechanisms(p.Stdout(), n), []string{"plugin"}) {
				return fmt.Sprintf("node/%s is not told of as on the plugin:\n%s%s", n, p.Stdout(), p.Stderr())
			}
		}
		return ""
	}))
	return p
}

// watched wants a watch to have told how all nodes of a pool came to DRA, in this order,
// and to end at Ctrl-C as what was asked for.
func (f *fixture) watched(p *Process, pool string, nodes ...string) {
	f.Helper()
	f.ok(Eventually(f.ctx, time.Minute, func() string {
		lines := linesAbout(p.Stdout(), "pool/"+pool)
		last := lines[len(lines)-1]
		if want := fmt.Sprintf("%d nodes: 0 plugin, 0 switching, %[1]d dra; lock -; ", len(nodes)); !strings.HasPrefix(last, want) || !strings.Contains(last, " done ") {
			return fmt.Sprintf("the last line about the pool is %q, want %q and a run that is done", last, want)
		}
		return ""
	}))
	f.ok(p.Signal(os.Interrupt))
	r := p.Wait()
	if r.Code != 0 || r.Signal != 0 || r.Stderr != "" {
		f.Errorf("ended by Ctrl-C: exit code %d, want 0\n%s", r.Code, r)
	}
	for _, n := range nodes {
		if got := mechanisms(r.Stdout, n); !slices.Equal(got, []string{"plugin", "switching", "dra"}) {
			f.Errorf("node/%s went by %q, want plugin, switching, dra\n%s", n, got, r)
		}
		lines := linesAbout(r.Stdout, "node/"+n)
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "; ready, closed; migrate at ") }) {
			f.Errorf("node/%s: no line tells that it is closed, and at which step\n%s", n, r)
		}
	}
	if pool := linesAbout(r.Stdout, "pool/"+pool); !slices.ContainsFunc(pool, func(l string) bool { return strings.Contains(l, "; lock ") && !strings.Contains(l, "; lock -;") }) {
		f.Errorf("no line tells who holds the lock meanwhile\n%s", r)
	}
}

// linesAbout are what a watch has told of one object, in order.
func linesAbout(text, object string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "  ", 3); len(parts) == 3 && parts[1] == object {
			out = append(out, parts[2])
		}
	}
	return out
}

// mechanisms are those by which a node was told to hand out its devices, one after
// another.
func mechanisms(text, node string) []string {
	var out []string
	for _, line := range linesAbout(text, "node/"+node) {
		m, _, _ := strings.Cut(line, ";")
		out = append(out, m)
	}
	return slices.Compact(out)
}
