// Command gendocs writes what can be told from the code alone: the reference of the
// commands and the JSON Schemas of the documents. It is a tool of the build; nothing
// of it is in the shipped program.
//
//	go run ./internal/gendocs docs
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: gendocs FOLDER, from the root of the module")
	}
	for _, part := range []func() (map[string][]byte, error){
		reference, func() (map[string][]byte, error) { return schemas(".") },
	} {
		files, err := part()
		if err != nil {
			return err
		}
		for name, data := range files {
			file := filepath.Join(args[0], filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(file, data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
