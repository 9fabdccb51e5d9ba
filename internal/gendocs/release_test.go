package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// build is one program of a release, in .goreleaser.yaml.
type build struct {
	ID, Binary   string
	Goos, Goarch []string
}

// The krew manifest names the archives that a release makes, for every platform of
// the release.
func TestKrewManifestFitsTheRelease(t *testing.T) {
	var release struct {
		Builds   []build
		Archives []struct {
			ID              string
			NameTemplate    string `json:"name_template"`
			FormatOverrides []struct {
				Goos    string
				Formats []string
			} `json:"format_overrides"`
		}
	}
	read(t, ".goreleaser.yaml", nil, &release)
	const id = "kubectl-dramigrate"
	plugin := release.Builds[slices.IndexFunc(release.Builds, func(b build) bool { return b.ID == id })]
	want := map[string]string{} // os/arch to the address of the archive
	for _, archive := range release.Archives {
		if archive.ID != id {
			continue
		}
		for _, goos := range plugin.Goos {
			ending := "tar.gz"
			for _, o := range archive.FormatOverrides {
				if o.Goos == goos {
					ending = o.Formats[0]
				}
			}
			for _, goarch := range plugin.Goarch {
				name := render(t, archive.NameTemplate, nil, map[string]string{"Tag": "v1.2.3", "Version": "1.2.3", "Os": goos, "Arch": goarch})
				want[goos+"/"+goarch] = "https://github.com/dramigrate/dramigrate/releases/download/v1.2.3/" + name + "." + ending
			}
		}
	}

	var manifest struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version, Homepage, ShortDescription, Description, Caveats string
			Platforms                                                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
				Files            []struct{ From, To string }
			}
		}
	}
	// As krew-release-bot does it: the address is a template as well.
	read(t, ".krew.yaml", template.FuncMap{"addURIAndSha": func(uri, tag string) string {
		return fmt.Sprintf("uri: %s\n    sha256: %s", render(t, uri, nil, map[string]string{"TagName": tag}), strings.Repeat("0", 64))
	}}, &manifest)
	got := map[string]string{}
	for _, p := range manifest.Spec.Platforms {
		goos := p.Selector.MatchLabels["os"]
		got[goos+"/"+p.Selector.MatchLabels["arch"]] = p.URI
		bin := plugin.Binary
		if goos == "windows" {
			bin += ".exe"
		}
		if p.Bin != bin || len(p.Files) != 2 || p.Files[0].From != bin || p.SHA256 == "" {
			t.Errorf("%s: program %q, files %v", p.URI, p.Bin, p.Files)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("archives (-release +krew):\n%s", diff)
	}
	s := manifest.Spec
	// krew shows the short description in one line of a list and asks for 50 characters.
	if manifest.Metadata.Name != "dramigrate" || s.Version != "v1.2.3" || len(s.ShortDescription) > 50 || s.Description == "" || s.Caveats == "" {
		t.Errorf("%+v", manifest)
	}
}

func read(t *testing.T, file string, funcs template.FuncMap, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(moduleRoot, file))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if funcs != nil {
		text = render(t, text, funcs, map[string]string{"TagName": "v1.2.3"})
	}
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, text)
	}
}

func render(t *testing.T, text string, funcs template.FuncMap, values map[string]string) string {
	t.Helper()
	parsed, err := template.New("").Option("missingkey=error").Funcs(funcs).Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := parsed.Execute(&b, values); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
