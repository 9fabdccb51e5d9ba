package words

import "testing"

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
