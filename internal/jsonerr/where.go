package jsonerr

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusal is a value that its type does not take.
type refusal struct {
	// path names the field: status.capacity[cpu].
	path  string
	of    reflect.Type
	value json.RawMessage
}

// where finds the first value of raw that its type refuses, in the order of names: what
// reads itself, as quantities and times do, does not say which field it was.
func where(t reflect.Type, raw json.RawMessage) refusal {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	here := refusal{of: t, value: raw}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return here
	}
	switch t.Kind() {
	case reflect.Struct:
		return here.within(raw, func(name string) (string, reflect.Type) { return "." + name, fieldType(t, name) })
	case reflect.Map:
		return here.within(raw, func(name string) (string, reflect.Type) { return "[" + name + "]", t.Elem() })
	case reflect.Slice:
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return here
		}
		for i, item := range items {
			if refuses(t.Elem(), item) {
				return where(t.Elem(), item).below(fmt.Sprintf("[%d]", i))
			}
		}
	}
	return here
}

// within looks into an object, of whose members child tells how they stand in a path and
// their types; nil for what is passed over.
func (r refusal) within(raw json.RawMessage, child func(name string) (string, reflect.Type)) refusal {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return r
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if step, t := child(name); t != nil && refuses(t, members[name]) {
			return where(t, members[name]).below(step)
		}
	}
	return r
}

func (r refusal) below(step string) refusal {
	r.path = step + r.path
	return r
}

// fieldType is the type of the field that JSON calls by that name; nil if there is none.
func fieldType(t reflect.Type, name string) reflect.Type {
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name && f.IsExported() {
			return f.Type
		}
	}
	return nil
}

func refuses(t reflect.Type, raw json.RawMessage) bool {
	return json.Unmarshal(raw, reflect.New(t).Interface()) != nil
}

// words say what must stand there.
func (r refusal) words() string {
	var must string
	switch r.of {
	case reflect.TypeFor[resource.Quantity]():
		must = "a quantity, as 4 or 16Gi"
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		must = "a time, as 2026-01-02T15:04:05Z"
	case reflect.TypeFor[metav1.Duration]():
		must = "a duration, as 90s or 15m"
	default:
		return Plain(json.Unmarshal(r.value, reflect.New(r.of).Interface())).Error()
	}
	value := string(r.value)
	if most := 40; len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "…"
	}
	return fmt.Sprintf("must be %s, is %s", must, value)
}
