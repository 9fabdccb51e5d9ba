package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// compiled are the schemas of all kinds; with strict, unknown fields are refused in
// those, too, that let them pass.
func compiled(t *testing.T, strict bool) map[string]*jsonschema.Schema {
	t.Helper()
	src, err := readSources(moduleRoot)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*jsonschema.Schema{}
	for _, k := range kinds() {
		k.strict = k.strict || strict
		data, err := json.Marshal(k.schema(src))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		url := schemaBase + k.name + ".json"
		if err := c.AddResource(url, doc); err != nil {
			t.Fatal(err)
		}
		if out[k.name], err = c.Compile(url); err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
	}
	return out
}

func instance(t *testing.T, data []byte) any {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// documents are all documents of the tool's kinds that lie under a folder.
func documents(t *testing.T, root string) map[string][][]byte {
	t.Helper()
	out := map[string][][]byte{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && file != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || (filepath.Ext(file) != ".yaml" && filepath.Ext(file) != ".json") {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, doc := range bytes.Split(data, []byte("\n---\n")) {
			var head metav1.TypeMeta
			// Test data may be broken on purpose; that has no kind.
			if yaml.Unmarshal(doc, &head) == nil && head.APIVersion == cluster.APIVersion {
				out[head.Kind] = append(out[head.Kind], doc)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGoldensKeepToTheirSchemas(t *testing.T) {
	schemas := compiled(t, true)
	found := documents(t, moduleRoot)
	if len(found["MigrationPlan"]) < 4 {
		t.Errorf("%d plans among the goldens, want one for each operation at least", len(found["MigrationPlan"]))
	}
	for name, docs := range found {
		schema, ok := schemas[name]
		if !ok {
			t.Errorf("kind %s has no schema: add it to kinds()", name)
			continue
		}
		for _, doc := range docs {
			if err := schema.Validate(instance(t, doc)); err != nil {
				t.Errorf("%v\nof\n%.400s", err, doc)
			}
		}
	}
}

// A document with a value in every field that its type has.
func TestEveryFieldIsInTheSchema(t *testing.T) {
	src, err := readSources(moduleRoot)
	if err != nil {
		t.Fatal(err)
	}
	for name, schema := range compiled(t, true) {
		if err := schema.Validate(instance(t, full(t, name, src))); err != nil {
			t.Errorf("%v", err)
		}
	}
}

func TestSchemasRefuse(t *testing.T) {
	src, err := readSources(moduleRoot)
	if err != nil {
		t.Fatal(err)
	}
	schemas := compiled(t, false)
	refused := func(title, kind, place string, change func(doc map[string]any)) {
		t.Helper()
		doc := instance(t, full(t, kind, src)).(map[string]any)
		change(doc)
		err := schemas[kind].Validate(doc)
		var invalid *jsonschema.ValidationError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), place) {
			t.Errorf("%s: %v, want an error with %q", title, err, place)
		}
	}
	for _, k := range kinds() {
		refused(k.name+" without a kind", k.name, "missing property 'kind'", func(doc map[string]any) { delete(doc, "kind") })
		refused(k.name+" of another version", k.name, "'/apiVersion'", func(doc map[string]any) { doc["apiVersion"] = "dramigrate.dev/v1" })
		if k.strict {
			refused(k.name+" with an unknown field", k.name, "'surprise' not allowed", func(doc map[string]any) { doc["surprise"] = true })
			continue
		}
		doc := instance(t, full(t, k.name, src)).(map[string]any)
		doc["later"] = true
		if err := schemas[k.name].Validate(doc); err != nil {
			t.Errorf("%s of a later version: %v", k.name, err)
		}
	}
	const plan, config = "MigrationPlan", "MigrationConfig"
	refused("an unknown field, deep", plan, "'/settings'", func(doc map[string]any) { doc["settings"].(map[string]any)["sook"] = "1s" })
	refused("a missing field, deep", plan, "missing property 'uid'", func(doc map[string]any) {
		delete(doc["pool"].(map[string]any)["nodes"].([]any)[0].(map[string]any), "uid")
	})
	refused("another operation", plan, "'/operation'", func(doc map[string]any) { doc["operation"] = "destroy" })
	refused("no duration", config, "'/soak'", func(doc map[string]any) { doc["soak"] = "long" })
	refused("a number for a duration", config, "'/soak'", func(doc map[string]any) { doc["soak"] = json.Number("30") })
	refused("a share of a share", config, "'/batches/maxUnavailable'", func(doc map[string]any) {
		doc["batches"].(map[string]any)["maxUnavailable"] = "10.5%"
	})
	refused("a pool without a name", config, "missing property 'name'", func(doc map[string]any) {
		delete(doc["pools"].([]any)[0].(map[string]any), "name")
	})
}

// full is a document of a kind, in JSON, with a value in every field.
func full(t *testing.T, name string, src *sources) []byte {
	t.Helper()
	for _, k := range kinds() {
		if k.name != name {
			continue
		}
		v := reflect.New(reflect.TypeOf(k.value))
		fill(v.Elem(), src)
		v.Elem().FieldByName("APIVersion").SetString(cluster.APIVersion)
		v.Elem().FieldByName("Kind").SetString(name)
		data, err := json.Marshal(v.Interface())
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	t.Fatalf("no kind %s", name)
	return nil
}

func fill(v reflect.Value, src *sources) {
	switch value := v.Addr().Interface().(type) {
	case *metav1.Duration:
		value.Duration = 90 * time.Second
		return
	case *metav1.Time:
		value.Time = time.Unix(1, 0)
		return
	case *time.Time:
		*value = time.Unix(1, 0)
		return
	case *json.RawMessage:
		*value = json.RawMessage(`{"a":1}`)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("5")
		if values := src.values(v.Type()); len(values) > 0 {
			v.SetString(values[0])
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		// Objects of Kubernetes have schemas of their own.
		if !strings.HasPrefix(v.Type().Elem().PkgPath(), "k8s.io/api/") {
			fill(v.Elem(), src)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), src)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, src)
		fill(value, src)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() { // the others are in no document
				fill(v.Field(i), src)
			}
		}
	}
}
