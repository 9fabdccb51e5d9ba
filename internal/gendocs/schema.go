package main

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cli"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/config"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/offline"
	"github.com/dramigrate/dramigrate/internal/pending"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
	"github.com/dramigrate/dramigrate/internal/status"
)

const (
	schemaFolder = "schema"
	// schemaBase is where the schemas are published, with the version of the API.
	schemaBase = "https://dramigrate.dev/schema/v1alpha1/"
	module     = "github.com/dramigrate/dramigrate"
)

// kind is one kind of document.
type kind struct {
	name  string
	value any
	// strict is true if the tool reads documents of the kind and refuses what it does
	// not know. The others are written alone, and a later version may say more.
	strict bool
}

// kinds are all documents that the tool writes or reads. A new one is one line here.
func kinds() []kind {
	return []kind{
		{plan.Kind, plan.Plan{}, true},
		{config.Kind, config.Config{}, true},
		{status.Kind, status.Status{}, false},
		{status.VerificationKind, status.Verification{}, false},
		{status.HistoryKind, status.RunHistory{}, false},
		{offline.Kind, offline.ClusterSnapshot{}, true},
		{checks.ReportKind, checks.Report{}, false},
		{pending.Kind, pending.Diagnosis{}, false},
		{poolprobe.Kind, poolprobe.Result{}, false},
		{nodeprobe.Kind, nodeprobe.NodeReport{}, false},
		{cluster.JournalKind, cluster.Journal{}, false},
		{cli.VersionKind, cli.VersionDocument{}, false},
	}
}

// schemas are the JSON Schemas of all kinds, by their path under the docs. root is the
// root of the module, where the sources with the comments are.
func schemas(root string) (map[string][]byte, error) {
	src, err := readSources(root)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, k := range kinds() {
		data, err := json.MarshalIndent(k.schema(src), "", "  ")
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", k.name, err)
		}
		out[path.Join(schemaFolder, k.name+".json")] = append(data, '\n')
	}
	return out, nil
}

// schema describes the JSON form of a kind.
func (k kind) schema(src *sources) *jsonschema.Schema {
	r := &jsonschema.Reflector{
		ExpandedStruct:            true,
		AllowAdditionalProperties: !k.strict,
		LookupComment:             src.comment,
		Namer:                     definitionName,
		Mapper:                    func(t reflect.Type) *jsonschema.Schema { return foreign(t, src) },
	}
	s := r.Reflect(k.value)
	s.ID = jsonschema.ID(schemaBase + k.name + ".json")
	s.Title = k.name
	for name, def := range s.Definitions {
		def.Title = name
	}
	if p, ok := s.Properties.Get("apiVersion"); ok {
		p.Const, p.Description = cluster.APIVersion, "The version of this kind."
	}
	if p, ok := s.Properties.Get("kind"); ok {
		p.Const, p.Description = k.name, "The kind of this document."
	}
	return s
}

// definitionName keeps types of one name apart that stand in one document: those of the
// hardware and of a pool's nodes from those of a node's report.
func definitionName(t reflect.Type) string {
	switch t.PkgPath() {
	case module + "/internal/nvml":
		return "NVML" + t.Name()
	case module + "/internal/poolprobe":
		return "Pool" + t.Name()
	}
	return t.Name()
}

// foreign describes the types whose JSON form their fields do not tell.
func foreign(t reflect.Type, src *sources) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: `^-?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`,
			Description: "A duration such as 90s, 15m or 1h30m."}
	case reflect.TypeFor[metav1.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return &jsonschema.Schema{Description: "Any value."}
	case reflect.TypeFor[config.Share]():
		return &jsonschema.Schema{Description: src.comment(t, ""), OneOf: []*jsonschema.Schema{
			{Type: "integer", Minimum: json.Number("1")}, {Type: "string", Pattern: `^[1-9][0-9]*%?$`}}}
	case reflect.TypeFor[resourcev1.DeviceClass]():
		return &jsonschema.Schema{Type: "object", Description: "A DeviceClass of Kubernetes, " + resourcev1.SchemeGroupVersion.String() + ".",
			Required: []string{"metadata", "spec"}}
	}
	if values := src.values(t); t.Kind() == reflect.String && len(values) > 0 {
		s := &jsonschema.Schema{Type: "string", Description: src.comment(t, "")}
		for _, v := range values {
			s.Enum = append(s.Enum, v)
		}
		return s
	}
	return nil
}

// folder is the folder of a package of the module, or "".
func folder(pkg string) string {
	rest, ours := strings.CutPrefix(pkg, module+"/")
	if !ours {
		return ""
	}
	return filepath.FromSlash(rest)
}
