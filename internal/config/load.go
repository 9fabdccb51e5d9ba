package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxSize is far beyond any file that a person writes.
const maxSize = 1 << 20

// Load reads an intent file. Paths in it are relative to its folder; those of the
// Config are ready to be opened. Errors of the contents are *Error, joined.
func Load(file string) (*Config, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, err
	}
	c, err := Parse(file, data)
	if err != nil {
		return nil, err
	}
	if m := c.Driver.Manifests; m != "" && !filepath.IsAbs(m) {
		c.Driver.Manifests = filepath.Join(filepath.Dir(file), m)
	}
	return c, nil
}

// Parse reads the contents of an intent file; file is its name, for errors.
func Parse(file string, data []byte) (*Config, error) {
	if len(data) > maxSize {
		return nil, &Error{File: file, Reason: fmt.Sprintf("is larger than %d bytes", maxSize)}
	}
	root, err := document(data)
	if err != nil {
		err.File = file
		return nil, err
	}
	d := &decoder{at: map[string]*yaml.Node{}}
	c := &Config{}
	// Another kind, or another version, is one error and not one for each field.
	version, kind := scalarOf(root, "apiVersion"), scalarOf(root, "kind")
	if root.Kind == yaml.MappingNode && (version != APIVersion || kind != Kind) {
		return nil, &Error{File: file, Line: root.Line, Column: root.Column,
			Reason: fmt.Sprintf("apiVersion %q, kind %q: want %s, %s", shortened(version), shortened(kind), APIVersion, Kind)}
	}
	d.decode(root, "", reflect.ValueOf(c).Elem())
	if len(d.wrong) == 0 {
		d.validate(c)
	}
	if len(d.wrong) == 0 {
		return c, nil
	}
	slices.SortStableFunc(d.wrong, func(a, b *Error) int { return a.Line - b.Line })
	all := make([]error, len(d.wrong))
	for i, e := range d.wrong {
		e.File = file
		all[i] = e
	}
	return nil, errors.Join(all...)
}

// document is the one document of a file.
func document(data []byte) (*yaml.Node, *Error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, &Error{Reason: "is empty"}
	} else if err != nil {
		return nil, syntax(err)
	}
	if err := dec.Decode(&more); err == nil {
		return nil, &Error{Line: more.Line, Column: more.Column, Reason: "holds a second document; one file is one " + Kind}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntax(err)
	}
	return doc.Content[0], nil
}

// syntax is the parser's error. The line that it tells may be that where the broken
// part begins.
func syntax(err error) *Error {
	where, reason, found := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), ": ")
	if !found || !strings.HasPrefix(where, "line ") {
		return &Error{Reason: "not YAML: " + err.Error()}
	}
	return &Error{Reason: fmt.Sprintf("not YAML, near %s: %s", where, reason)}
}

func scalarOf(mapping *yaml.Node, name string) string {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name && mapping.Content[i+1].Kind == yaml.ScalarNode {
			return mapping.Content[i+1].Value
		}
	}
	return ""
}
