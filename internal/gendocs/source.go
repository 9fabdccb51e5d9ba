package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// sources are the parts of the code that types do not know at run time: comments, and
// the constants of types that have a fixed set of values.
type sources struct {
	comments  map[string]string   // package.Type or package.Type.Field
	constants map[string][]string // package.Type
}

// readSources reads the packages whose types stand in documents.
func readSources(root string) (*sources, error) {
	s := &sources{comments: map[string]string{}, constants: map[string][]string{}}
	for _, pkg := range []string{"checks", "cli", "cluster", "config", "gate", "nodeprobe", "nvml", "offline", "plan", "status"} {
		name := module + "/internal/" + pkg
		files, err := filepath.Glob(filepath.Join(root, folder(name), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			s.file(name, f)
		}
	}
	return s, nil
}

func (s *sources) file(pkg string, f *ast.File) {
	for _, decl := range f.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				text := spec.Doc.Text()
				if text == "" {
					text = group.Doc.Text()
				}
				s.typeOf(pkg+"."+spec.Name.Name, text, spec)
			case *ast.ValueSpec:
				s.constant(pkg, group.Tok, spec)
			}
		}
	}
}

func (s *sources) typeOf(name, text string, spec *ast.TypeSpec) {
	s.comments[name] = oneLine(text)
	fields, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range fields.Fields.List {
		text := f.Doc.Text()
		if text == "" {
			text = f.Comment.Text()
		}
		for _, n := range f.Names {
			s.comments[name+"."+n.Name] = oneLine(text)
		}
	}
}

// constant takes a constant such as `Adopt ClassAction = "adopt"`.
func (s *sources) constant(pkg string, tok token.Token, spec *ast.ValueSpec) {
	of, ok := spec.Type.(*ast.Ident)
	if tok != token.CONST || !ok {
		return
	}
	for _, value := range spec.Values {
		if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				s.constants[pkg+"."+of.Name] = append(s.constants[pkg+"."+of.Name], text)
			}
		}
	}
}

// comment is that of a type, or of its field; a field without one has its type's.
func (s *sources) comment(t reflect.Type, field string) string {
	name := t.PkgPath() + "." + t.Name()
	if field == "" {
		return s.comments[name]
	}
	if text := s.comments[name+"."+field]; text != "" {
		return text
	}
	f, ok := t.FieldByName(field)
	if !ok {
		return ""
	}
	of := f.Type
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	return s.comments[of.PkgPath()+"."+of.Name()]
}

// values are the constants of a type, in the order of the code.
func (s *sources) values(t reflect.Type) []string { return s.constants[t.PkgPath()+"."+t.Name()] }

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
