package words

import (
	"slices"
	"testing"

	"github.com/dramigrate/dramigrate/internal/words/wordstest"
)

func TestFew(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"a", "b", "c"}, "a, b, c"},
		{[]string{"a", "b", "c", "d", "e"}, "a, b, c and 2 more"},
	} {
		if got := Few(3, c.names); got != c.want {
			t.Errorf("Few(3, %q) = %q, want %q", c.names, got, c.want)
		}
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 batches", 1: "1 batch", 2: "2 batches"} {
		if got := Plural(n, "batch", "batches"); got != want {
			t.Errorf("Plural(%d) = %q, want %q", n, got, want)
		}
	}
	if got := Count(2, "node"); got != "2 nodes" {
		t.Errorf("Count(2) = %q", got)
	}
}

func TestShell(t *testing.T) {
	for want, args := range map[string][]string{
		"dramigrate plan gpu-a":             {"dramigrate", "plan", "gpu-a"},
		"--selector a=b,c.d/e=f --pool x_y": {"--selector", "a=b,c.d/e=f", "--pool", "x_y"},
		"'a in (b, c)' '!d' ''":             {"a in (b, c)", "!d", ""},
		`'it'\''s'`:                         {"it's"},
	} {
		if got := Shell(args...); got != want {
			t.Errorf("Shell(%q) = %s, want %s", args, got, want)
		}
	}
}

func TestQuoted(t *testing.T) {
	for arg, want := range map[string]string{"a": "'a'", "": "''", "it's": `'it'\''s'`} {
		if got := Quoted(arg); got != want {
			t.Errorf("Quoted(%q) = %s, want %s", arg, got, want)
		}
	}
}

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		pool string
		more []string
		want string
	}{
		{"gpu-a", nil, "`dramigrate apply gpu-a`"},
		{"", []string{"--into", "gpu-b"}, "`dramigrate apply POOL --into gpu-b`"},
		{"k in (a,b)", []string{"--into", "it's"}, "`dramigrate apply 'k in (a,b)' --into 'it'\\''s'`"},
	} {
		if got := Command("apply", c.pool, c.more...); got != c.want {
			t.Errorf("Command(%q, %q) = %s, want %s", c.pool, c.more, got, c.want)
		}
	}
}

// The shell of this machine gives the arguments back as they were.
func TestShellIsRead(t *testing.T) {
	args := []string{"dramigrate", "k in (a,b)", "gpu b;`id` ", "$(id)", "it's", `a\b"c`, "", "*", "~", "!k", "#k", "two\nlines", "k=v", "-o"}
	if got := wordstest.Split(t, Shell(args...)); !slices.Equal(got, args) {
		t.Errorf("a shell reads %s as %q, want %q", Shell(args...), got, args)
	}
}
