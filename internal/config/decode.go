package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// decoder puts a YAML document into a struct by its json tags. It goes through the
// nodes itself because they know their line and column, which the decoders of
// Kubernetes, that go by JSON, do not.
type decoder struct {
	// at is where each field that was given stands, by its path.
	at map[string]*yaml.Node
	// wrong are the errors so far, in the order of the file; they have no File yet.
	wrong []*Error
}

func (d *decoder) fail(n *yaml.Node, field, reason string, args ...any) {
	d.wrong = append(d.wrong, &Error{Line: n.Line, Column: n.Column, Field: field, Reason: fmt.Sprintf(reason, args...)})
}

// decode puts n into out. A null leaves out as it is: that is what a section with
// nothing but comments in it says.
func (d *decoder) decode(n *yaml.Node, field string, out reflect.Value) {
	d.at[field] = n
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		d.fail(n, field, "anchors and aliases are not read; write the value out")
		return
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	switch {
	case out.Kind() == reflect.Pointer:
		value := reflect.New(out.Type().Elem())
		d.decode(n, field, value.Elem())
		out.Set(value)
	case out.Type() == reflect.TypeFor[metav1.Duration]():
		d.duration(n, field, out)
	case out.Type() == reflect.TypeFor[Share]():
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && n.Tag != "!!int" {
			d.fail(n, field, "must be a number of nodes or a share such as 10%%, is %s", described(n))
			return
		}
		out.SetString(n.Value)
	case out.Kind() == reflect.Struct:
		d.mapping(n, field, out)
	case out.Kind() == reflect.Slice:
		d.sequence(n, field, out)
	default:
		d.scalar(n, field, out)
	}
}

func (d *decoder) mapping(n *yaml.Node, field string, out reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, field, "must hold fields, is %s", described(n))
		return
	}
	known := fields(out)
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		if key.Kind != yaml.ScalarNode {
			d.fail(key, field, "the name of a field must be a word")
			continue
		}
		if before, twice := first[name]; twice {
			d.fail(key, join(field, shortened(name)), "stands twice, first in line %d", before.Line)
			continue
		}
		first[name] = key
		target, ok := known[name]
		if !ok {
			d.fail(key, join(field, shortened(name)), "unknown field; known are %s", strings.Join(names(known), ", "))
			continue
		}
		d.decode(value, join(field, name), target)
	}
}

func (d *decoder) sequence(n *yaml.Node, field string, out reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, field, "must be a list, is %s", described(n))
		return
	}
	list := reflect.MakeSlice(out.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.decode(item, fmt.Sprintf("%s[%d]", field, i), list.Index(i))
	}
	out.Set(list)
}

func (d *decoder) scalar(n *yaml.Node, field string, out reflect.Value) {
	switch out.Kind() {
	case reflect.String:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			d.fail(n, field, "must be a text, is %s%s", described(n), quoteHint(n))
			return
		}
		out.SetString(n.Value)
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
			d.fail(n, field, "must be true or false, is %s", described(n))
			return
		}
		out.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int:
		value, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil {
			d.fail(n, field, "must be a whole number, is %s", described(n))
			return
		}
		out.SetInt(int64(value))
	default:
		d.fail(n, field, "cannot be read into %s", out.Type())
	}
}

func (d *decoder) duration(n *yaml.Node, field string, out reflect.Value) {
	value, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || err != nil {
		d.fail(n, field, "must be a duration such as 90s or 15m, is %s", described(n))
		return
	}
	out.Set(reflect.ValueOf(metav1.Duration{Duration: value}))
}

// fields are the fields of a struct by their names in the file, those of embedded
// structs included.
func fields(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			for name, field := range fields(v.Field(i)) {
				out[name] = field
			}
		}
	}
	// After the embedded ones: a field hides one of the same name that is deeper.
	for i := range v.NumField() {
		if f := v.Type().Field(i); !f.Anonymous {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			out[name] = v.Field(i)
		}
	}
	return out
}

func names(known map[string]reflect.Value) []string {
	out := make([]string, 0, len(known))
	for name := range known {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// described says in a person's words what a node is.
func described(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a group of fields"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!int", n.Tag == "!!float":
		return "the number " + n.Value
	case n.Tag == "!!bool":
		return "the truth value " + n.Value
	case n.Tag == "!!str":
		return fmt.Sprintf("%q", shortened(n.Value))
	default:
		return fmt.Sprintf("%q of type %s", shortened(n.Value), n.Tag)
	}
}

func shortened(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func quoteHint(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return "; write it in quotes"
	}
	return ""
}
