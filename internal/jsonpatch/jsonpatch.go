// Package jsonpatch builds JSON patches (RFC 6902). The lists that the tool edits
// (nodeSelectorTerms, matchExpressions, spec.taints) are atomic in the API: only a
// patch with a test, or a resourceVersion, edits them without losing what somebody
// else wrote in between.
package jsonpatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Op is one operation of a patch.
type Op struct {
	Op    string
	Path  string
	Value any
}

// Patch is a list of operations that hold together or not at all.
type Patch []Op

// Test fails the whole patch unless the value at path equals value.
func Test(path string, value any) Op { return Op{"test", path, value} }

// Add sets the member or inserts the element at path.
func Add(path string, value any) Op { return Op{"add", path, value} }

// Replace sets what must be at path already.
func Replace(path string, value any) Op { return Op{"replace", path, value} }

// Remove removes what must be at path.
func Remove(path string) Op { return Op{Op: "remove", Path: path} }

// Path joins a base path and the names below it, each escaped by RFC 6901.
func Path(base string, names ...string) string {
	var b strings.Builder
	b.WriteString(base)
	for _, n := range names {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(n))
	}
	return b.String()
}

// MarshalJSON writes a value for every operation but remove, so that an explicit
// null and an empty string survive.
func (o Op) MarshalJSON() ([]byte, error) {
	m := map[string]any{"op": o.Op, "path": o.Path}
	if o.Op != "remove" {
		m["value"] = o.Value
	}
	return encode(m)
}

// encode leaves <, > and & as they are: a patch is read by people, too.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Bytes is the patch as it is sent.
func (p Patch) Bytes() ([]byte, error) {
	b, err := encode([]Op(p))
	if err != nil {
		return nil, fmt.Errorf("encode JSON patch: %w", err)
	}
	return b, nil
}

// String is the patch in one line, for plans and logs.
func (p Patch) String() string {
	b, err := p.Bytes()
	if err != nil {
		return err.Error()
	}
	return string(b)
}
