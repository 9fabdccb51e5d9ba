package plan

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dramigrate/dramigrate/internal/gate"
)

func TestReadManifests(t *testing.T) {
	m := readManifests(t, manifestFiles())
	var got []string
	for _, o := range m.Objects {
		got = append(got, o.Where+": "+o.Object.GetKind()+"/"+o.Object.GetName())
	}
	// What others refer to comes first; within a kind, the order of the files.
	want := []string{
		"00-namespace.yaml, document 1: Namespace/dra",
		"20-daemonset.yaml, document 2: ServiceAccount/driver",
		"30-class.yaml, document 1: DeviceClass/gpu.nvidia.com",
		"30-class.yaml, document 2: DeviceClass/mig.nvidia.com",
		"20-daemonset.yaml, document 1: DaemonSet/driver",
	}
	if !slices.Equal(got, want) {
		t.Errorf("objects\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	changed := manifestFiles()
	changed["00-namespace.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: dra, labels: {a: b}}\n")}
	renamed := manifestFiles()
	renamed["01-namespace.yaml"] = renamed["00-namespace.yaml"]
	delete(renamed, "00-namespace.yaml")
	for name, other := range map[string]fstest.MapFS{"content": changed, "name": renamed} {
		if readManifests(t, other).Digest == m.Digest {
			t.Errorf("another %s gives the same digest", name)
		}
	}
	if again := readManifests(t, manifestFiles()); again.Digest != m.Digest {
		t.Error("the same files give another digest")
	}
}

func TestReadManifestsList(t *testing.T) {
	m := readManifests(t, fstest.MapFS{"a.json": {Data: []byte(`{"apiVersion":"v1","kind":"List","items":[
		{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"one"}},
		{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"two"}}]}`)}})
	if len(m.Objects) != 2 || m.Objects[1].Object.GetName() != "two" {
		t.Errorf("objects %v, want the two of the list", m.Objects)
	}
}

func TestReadManifestsRefuses(t *testing.T) {
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: dra}\n"
	for _, c := range []struct{ title, file, text, want string }{
		{"broken YAML", "a.yaml", "a: [", "a.yaml, document 1"},
		{"a broken second document", "a.yaml", namespace + "---\na: [", "a.yaml, document 2"},
		{"a key twice", "a.yaml", namespace + "kind: Namespace\n", `key "kind" already set`},
		{"YAML that is broken, in the reader's words", "a.yaml", namespace + "a:\n b: c: d\n", "a.yaml, document 1: not YAML or JSON: line 5: mapping values"},
		{"a word", "a.yaml", "hello", "holds a string"},
		{"no kind", "a.yaml", "apiVersion: v1\nmetadata: {name: a}\n", "a.yaml, document 1"},
		{"no name", "a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {}\n", "without metadata.name"},
		{"a generated name", "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-, namespace: x}\n", "generateName"},
		{"no namespace", "a.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n", "has no metadata.namespace"},
		{"a secret", "a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: x}\n", "Secret a"},
		{"a kustomization", "a.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: a}\n", "kubectl kustomize"},
		{"one object twice", "a.yaml", namespace + "---\n" + namespace, "a.yaml, document 2"},
		{"nothing", "a.txt", namespace, "no object"},
		{"a folder", "sub/a.yaml", namespace, "sub: is a folder"},
	} {
		_, err := ReadManifests(fstest.MapFS{c.file: {Data: []byte(c.text)}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.title, err, c.want)
		}
	}
}

func TestPlace(t *testing.T) {
	m := readManifests(t, manifestFiles())
	placed, err := Place(m, "nvidia.com/gpu")
	if err != nil {
		t.Fatal(err)
	}
	if len(placed.Drivers) != 1 || !gate.Placed(placed.Drivers[0]) {
		t.Errorf("the driver is not kept to switched nodes: %v", placed.Drivers)
	}
	if placed.HeldClass == nil || placed.HeldClass.Name != "gpu.nvidia.com" {
		t.Errorf("held class %v, want gpu.nvidia.com", placed.HeldClass)
	}
	for _, u := range placed.Objects {
		if u.GetKind() == "DeviceClass" && u.GetName() == "gpu.nvidia.com" {
			t.Error("the class that maps the resource would be applied")
		}
		if u.GetLabels()["app.kubernetes.io/managed-by"] != "dramigrate" {
			t.Errorf("%s %s is not marked as the tool's", u.GetKind(), u.GetName())
		}
	}
	for _, o := range m.Objects {
		if o.Object.GetLabels()["app.kubernetes.io/managed-by"] == "dramigrate" {
			t.Errorf("%s was changed in place", o.Where)
		}
	}
}

func TestPlaceRefuses(t *testing.T) {
	class := func(name, resource, version string) string {
		return "---\napiVersion: resource.k8s.io/" + version + "\nkind: DeviceClass\nmetadata: {name: " + name + "}\nspec: {extendedResourceName: " + resource + "}\n"
	}
	for _, c := range []struct{ title, add, want string }{
		{"a second class with the name", class("second", "nvidia.com/gpu", "v1"), "DeviceClass second"},
		{"a class with another name", class("other", "nvidia.com/gpu.shared", "v1"), "nvidia.com/gpu.shared"},
		{"an old class", class("old", "nvidia.com/gpu", "v1beta2"), "write it as resource.k8s.io/v1"},
		{"a text for a list in the driver", "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x, namespace: dra}\nspec: {template: {spec: {tolerations: all}}}\n", "DaemonSet x: spec.template.spec.tolerations: must be a list, is a text"},
		{"a misspelt field of the driver", "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x, namespace: dra}\nspec: {tmplate: {}}\n", "tmplate"},
	} {
		files := manifestFiles()
		files["99.yaml"] = &fstest.MapFile{Data: []byte(c.add)}
		_, err := Place(readManifests(t, files), "nvidia.com/gpu")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "99.yaml, document") {
			t.Errorf("%s: error %v, want one with %q and the place", c.title, err, c.want)
		}
	}
	files := manifestFiles()
	delete(files, "20-daemonset.yaml")
	if _, err := Place(readManifests(t, files), "nvidia.com/gpu"); err == nil || !strings.Contains(err.Error(), "plugins_registry") {
		t.Errorf("no driver: error %v, want one that says how it is known", err)
	}
}
