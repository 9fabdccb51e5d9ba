package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dramigrate/dramigrate/internal/checks"
)

// The table of field reports names checks and tests: both have to be there.
func TestFieldReportsNameWhatIsThere(t *testing.T) {
	root := filepath.Join("..", "..")
	data, err := os.ReadFile(filepath.Join(root, "docs", "field-reports.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := testsUnder(t, root)
	rows := 0
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "| B-") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|\n "), " | ")
		if len(cells) != 4 || strings.Contains(line, "|  |") {
			t.Errorf("want a report, an answer and a test: %s", line)
		}
		for _, code := range regexp.MustCompile(`DRM\d{3}`).FindAllString(line, -1) {
			if _, ok := checks.Find(code); !ok {
				t.Errorf("there is no check %s: %s", code, line)
			}
		}
		for _, name := range regexp.MustCompile("`(Test\\w+)").FindAllStringSubmatch(line, -1) {
			if !there[name[1]] {
				t.Errorf("there is no test %s: %s", name[1], line)
			}
		}
	}
	if rows == 0 {
		t.Error("no rows")
	}
}

// testsUnder are the names of all tests of a tree.
func testsUnder(t *testing.T, root string) map[string]bool {
	t.Helper()
	name := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	out := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range name.FindAllStringSubmatch(string(data), -1) {
			out[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
