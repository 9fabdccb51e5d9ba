package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dramigrate/dramigrate/internal/status"
)

func TestColumns(t *testing.T) {
	terminal := func() int { return 70 }
	for _, c := range []struct {
		title  string
		s      Streams
		tty    bool
		want   int
		region int // of what is drawn in place on the terminal
	}{
		{"a terminal", Streams{Width: terminal}, true, 70, 70},
		{"a pipe beside a terminal", Streams{Width: terminal}, false, 0, 70},
		{"no terminal at all", Streams{}, false, 0, 0},
		{"COLUMNS is narrower", Streams{Width: terminal, Env: []string{"COLUMNS=50"}}, true, 50, 50},
		{"COLUMNS is wider: what is drawn in place would wrap", Streams{Width: terminal, Env: []string{"COLUMNS=90"}}, true, 90, 70},
		{"COLUMNS for a pipe", Streams{Width: terminal, Env: []string{"COLUMNS=50"}}, false, 50, 50},
		{"COLUMNS without a number", Streams{Width: terminal, Env: []string{"COLUMNS=wide"}}, true, 70, 70},
		{"COLUMNS of nothing", Streams{Width: terminal, Env: []string{"COLUMNS=0"}}, false, 0, 70},
		{"COLUMNS below nothing", Streams{Width: terminal, Env: []string{"COLUMNS=-1"}}, true, 70, 70},
	} {
		if got := c.s.columns(c.tty); got != c.want {
			t.Errorf("%s: %d columns, want %d", c.title, got, c.want)
		}
		if c.s.Width == nil {
			continue
		}
		if got := c.s.region(); got != c.region {
			t.Errorf("%s: %d columns in place, want %d", c.title, got, c.region)
		}
	}
}

// The width of the terminal gets to the tables, and to nothing else than a terminal.
func TestTablesOnATerminal(t *testing.T) {
	for _, tty := range []bool{true, false} {
		var out, err bytes.Buffer
		s := Streams{In: strings.NewReader(""), Out: &out, Err: &err, OutTTY: tty, Width: func() int { return 60 }}
		a := &app{Streams: s, Factory: noWorld{t}}
		o := &statusOptions{app: a, format: newFormat("table")}
		node := status.Node{Name: strings.Repeat("n", 50), Pool: "gpu-a", Mechanism: "plugin"}
		if err := o.print(&status.Status{Nodes: []status.Node{node}}); err != nil {
			t.Fatal(err)
		}
		if alone := strings.Contains(out.String(), node.Name+"\n"); alone != tty {
			t.Errorf("terminal %v:\n%s", tty, out.String())
		}
	}
}
