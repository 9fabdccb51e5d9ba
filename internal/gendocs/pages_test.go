package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/cli"
	"github.com/dramigrate/dramigrate/internal/config"
)

// blocks are the YAML examples of a page.
func blocks(t *testing.T, page string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(docs, page))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(data), -1) {
		out = append(out, m[1])
	}
	return out
}

func TestPipelineExamples(t *testing.T) {
	found := blocks(t, "ci.md")
	if len(found) != 3 {
		t.Fatalf("%d YAML blocks, want the intent file, the GitHub workflow and the GitLab job", len(found))
	}
	if _, err := config.Parse("ci.md", []byte(found[0])); err != nil {
		t.Error(err)
	}

	var github struct {
		Permissions map[string]string `json:"permissions"`
		Jobs        map[string]struct {
			Steps []struct {
				Run string            `json:"run"`
				Env map[string]string `json:"env"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	strict(t, found[1])
	if err := yaml.Unmarshal([]byte(found[1]), &github); err != nil {
		t.Fatal(err)
	}
	if p := github.Permissions; len(p) != 2 || p["contents"] != "read" || p["pull-requests"] != "write" {
		t.Errorf("permissions %v: want to read contents and to write on the pull request", p)
	}
	var script strings.Builder
	for _, step := range github.Jobs["plan"].Steps {
		// What others wrote must not become a part of the script.
		if strings.Contains(step.Run, "${{") {
			t.Errorf("an expression stands in the script itself:\n%s", step.Run)
		}
		script.WriteString(step.Run)
	}
	pipeline(t, "GitHub", script.String())

	var gitlab map[string]struct {
		Script []string `json:"script"`
	}
	strict(t, found[2])
	if err := yaml.Unmarshal([]byte(found[2]), &gitlab); err != nil {
		t.Fatal(err)
	}
	pipeline(t, "GitLab", strings.Join(gitlab["migration-plan"].Script, "\n"))
}

func strict(t *testing.T, block string) {
	t.Helper()
	var any map[string]any
	if err := yaml.UnmarshalStrict([]byte(block), &any); err != nil {
		t.Error(err)
	}
}

func pipeline(t *testing.T, where, script string) {
	t.Helper()
	for _, want := range []string{"dramigrate plan ", "--detailed-exitcode", "--out plan.yaml", "--report markdown=plan.md", "|| code=$?"} {
		if !strings.Contains(script, want) {
			t.Errorf("%s: no %q in the script", where, want)
		}
	}
}

func TestPipelinePageNamesTheExitCodes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docs, "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{cli.ExitOK, cli.ExitChanges, cli.ExitBlocked, cli.ExitUnknown, cli.ExitError, cli.ExitUsage} {
		if !strings.Contains(string(page), fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("exit code %d is not in the table", code)
		}
	}
}
