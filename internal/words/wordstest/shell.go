// Package wordstest reads the commands of a text as the shell of a person reads them.
package wordstest

import (
	"os/exec"
	"strings"
	"testing"
)

// Split are the arguments that the POSIX shell of this machine makes of a command line.
// It fails the test where the line is no single command, and nothing is run: the shell
// knows no programs.
func Split(t testing.TB, line string) []string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), sh, "-c", `printf '%s\0' `+line)
	cmd.Env, cmd.Dir = []string{"PATH=/nonexistent"}, t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("a shell does not read %s: %v: %s", line, err, out)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// Until is the text up to the first of these stops that is not in single quotes. A
// quote after a backslash is none.
func Until(text string, stops ...string) string {
	quoted, escaped := false, false
	for i := range text {
		for _, stop := range stops {
			if !quoted && strings.HasPrefix(text[i:], stop) {
				return text[:i]
			}
		}
		if text[i] == '\'' && !escaped {
			quoted = !quoted
		}
		escaped = text[i] == '\\' && !quoted
	}
	return text
}

// Commands are what stands in backticks after the word program, such as "dramigrate".
func Commands(text, program string) []string {
	var out []string
	for {
		_, after, found := strings.Cut(text, "`"+program+" ")
		if !found {
			return out
		}
		command := Until(after, "`")
		out = append(out, program+" "+command)
		text = after[len(command):]
	}
}
