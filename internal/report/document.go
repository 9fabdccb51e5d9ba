package report

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// YAML writes a document with its fields in alphabetical order.
func YAML(w io.Writer, document any) error {
	data, err := yaml.Marshal(document)
	if err != nil {
		return fmt.Errorf("encode YAML: %w", err)
	}
	_, err = w.Write(data)
	return err
}

// JSON writes a document, indented by two spaces.
func JSON(w io.Writer, document any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(document)
}
