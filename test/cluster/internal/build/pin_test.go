package build

import (
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/dramigrate/dramigrate/test/cluster/versions"
)

// The form of Kubernetes' own go.mod, shortened.
const upstream = `module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
	github.com/spf13/cobra v1.10.2
	go.etcd.io/etcd/client/v3 v3.6.9
	k8s.io/api v0.0.0
	k8s.io/klog/v2 v2.140.0
)

require github.com/inconshreveable/mousetrap v1.1.0 // indirect

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kubelet => ./staging/src/k8s.io/kubelet
	example.com/fork => example.com/other v1.0.0
)
`

func TestModuleFile(t *testing.T) {
	text, err := moduleFile([]byte(upstream), "v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	required := map[string]string{}
	for _, r := range f.Require {
		required[r.Mod.Path] = r.Mod.Version
	}
	for path, want := range map[string]string{
		"k8s.io/kubernetes":                    "v1.36.3",
		"k8s.io/api":                           "v0.36.3",
		"k8s.io/klog/v2":                       "v2.140.0",
		"github.com/spf13/cobra":               "v1.10.2",
		"github.com/inconshreveable/mousetrap": "v1.1.0",
		"go.etcd.io/etcd/server/v3":            "v3.7.0",
		"go.etcd.io/etcd/client/v3":            "v3.7.0",
	} {
		if required[path] != want {
			t.Errorf("requires %s %q, want %q", path, required[path], want)
		}
	}
	replaced := map[string]string{}
	for _, r := range f.Replace {
		replaced[r.Old.Path] = r.New.String()
	}
	if len(replaced) != 2 || replaced["k8s.io/api"] != "k8s.io/api@v0.36.3" || replaced["k8s.io/kubelet"] != "k8s.io/kubelet@v0.36.3" {
		t.Errorf("replacements %v, want the two staging modules at v0.36.3", replaced)
	}
	if f.Go.Version != "1.26.0" || len(f.Godebug) != 1 || f.Godebug[0].Value != "go1.26" {
		t.Errorf("go %v and godebug %v, want Kubernetes' own", f.Go, f.Godebug)
	}
}

func TestModuleFileOfAnotherLayout(t *testing.T) {
	for name, text := range map[string]string{
		"no staging": "module k8s.io/kubernetes\n\ngo 1.26.0\n",
		"no go line": "module k8s.io/kubernetes\n\nreplace k8s.io/api => ./staging/src/k8s.io/api\n",
		"not a file": "<html>",
	} {
		if _, err := moduleFile([]byte(text), "v1.36.3"); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestPinRefusesWhatIsNoVersion(t *testing.T) {
	for _, v := range []string{"1.36.3", "v1.36", "v2.0.0", "v1.36.3+x", "latest", ""} {
		if _, err := Pin(t.Context(), v); err == nil || !strings.Contains(err.Error(), "v1.MINOR.PATCH") {
			t.Errorf("%q: error %v, want one that gives the form", v, err)
		}
	}
}

func TestUnpinnedVersion(t *testing.T) {
	_, err := Builder{Cache: t.TempDir()}.Kubernetes(t.Context(), "v1.33.0", false)
	if err == nil || !strings.Contains(err.Error(), "pin v1.33.0") {
		t.Errorf("error %v, want one that says how to pin v1.33.0", err)
	}
}

// What hack/lib/version.sh of Kubernetes would set for the version.
func TestLinkFlags(t *testing.T) {
	flags := strings.Join(target{version: "v1.37.2"}.linkFlags(), " ")
	for _, want := range []string{"version.gitVersion=v1.37.2", "version.gitMajor=1 ", "version.gitMinor=37 ", "version.gitTreeState=clean"} {
		if !strings.Contains(flags+" ", want) {
			t.Errorf("%q lacks %q", flags, want)
		}
	}
}

func TestPinnedVersions(t *testing.T) {
	got := strings.Join(versions.Pinned(), " ")
	if got != "v1.35.4 v1.36.3 v1.37.2" {
		t.Errorf("pinned %q, want v1.35.4 for its kubelet, the floor v1.36.3 and v1.37.2", got)
	}
	for _, v := range versions.Pinned() {
		files, err := versions.Lookup(v)
		if err != nil {
			t.Fatal(err)
		}
		f, err := modfile.Parse(v, files.GoMod, nil)
		if err != nil {
			t.Fatal(err)
		}
		required := map[string]string{}
		for _, r := range f.Require {
			required[r.Mod.Path] = r.Mod.Version
		}
		if required["k8s.io/kubernetes"] != v || required["go.etcd.io/etcd/server/v3"] != "v3.7.0" {
			t.Errorf("%s builds kubernetes %s with etcd %s", v, required["k8s.io/kubernetes"], required["go.etcd.io/etcd/server/v3"])
		}
	}
}
