// Package jsonerr says in a reader's words what a decoder of JSON or YAML says in Go's.
package jsonerr

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"
)

// plain is an error in other words.
type plain struct {
	text string
	err  error
}

func (e *plain) Error() string { return e.text }
func (e *plain) Unwrap() error { return e.err }

// Plain is err in a reader's words, if it is of encoding/json or of sigs.k8s.io/yaml,
// which goes by it: the field that is wrong, what must stand there, and what does. Every
// other error is as it was.
func Plain(err error) error {
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		text := fmt.Sprintf("must be %s, is %s", wanted(wrong.Type, wrong.Value), found(wrong.Value))
		if wrong.Field != "" {
			text = wrong.Field + ": " + text
		}
		return &plain{text, err}
	}
	// What sigs.k8s.io/yaml puts before what is wrong.
	text := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "json: ", "yaml: ", "unmarshal errors:\n"} {
		text = strings.TrimPrefix(text, prefix)
	}
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), ";")
	text = strings.TrimSpace(strings.ReplaceAll(text, ";  ", "; "))
	if text == err.Error() {
		return err
	}
	return &plain{text, err}
}

// Mistyped says that a value is not of the type that its field has: the text itself is
// JSON or YAML.
func Mistyped(err error) bool {
	var wrong *json.UnmarshalTypeError
	return errors.As(err, &wrong)
}

// Again is Plain for what another decoder has refused in raw, whose errors are of types of
// its own, or do not name the field.
func Again(raw []byte, into any, err error) error {
	if again := json.Unmarshal(raw, into); again != nil {
		err = again
	}
	at := where(reflect.TypeOf(into), raw)
	if at.path == "" {
		return Plain(err)
	}
	return &plain{strings.TrimPrefix(at.path, ".") + ": " + at.words(), err}
}

// AgainYAML is Again for a text that sigs.k8s.io/yaml has refused.
func AgainYAML(raw []byte, into any, err error) error {
	asJSON, broken := yaml.YAMLToJSON(raw)
	if broken != nil {
		return Plain(err)
	}
	return Again(asJSON, into, err)
}

func wanted(t reflect.Type, value string) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem(), value)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a text in base64"
		}
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a group of fields"
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return whole(value, -1<<(t.Bits()-1), 1<<(t.Bits()-1)-1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return whole(value, 0, 1<<t.Bits()-1)
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "something else"
	}
}

// whole names the limits to whom they concern.
func whole(value string, least int64, most uint64) string {
	if number, is := strings.CutPrefix(value, "number "); !is || strings.ContainsAny(number, ".eE") {
		return "a whole number"
	}
	return fmt.Sprintf("a whole number from %d to %d", least, most)
}

// found is what encoding/json found: "array", "object", "string", "bool", "number", or
// "number 1.5".
func found(value string) string {
	kind, number, _ := strings.Cut(value, " ")
	switch {
	case kind == "array":
		return "a list"
	case kind == "object":
		return "a group of fields"
	case kind == "string":
		return "a text"
	case kind == "bool":
		return "true or false"
	case kind == "number" && number != "":
		return "the number " + number
	case kind == "number":
		return "a number"
	default:
		return value
	}
}
