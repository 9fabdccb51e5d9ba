package report

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// YAML writes a document with its fields in alphabetical order.
func YAML(w io.Writer, document any) error {
	text, err := json.Marshal(document)
	if err == nil {
		text, err = yaml.JSONToYAML(escapeForYAML(text))
	}
	if err != nil {
		return fmt.Errorf("encode YAML: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// escapeForYAML writes as \u escapes what JSON may hold as it is and YAML may not
// (YAML 1.2, section 5.1): DEL, the C1 controls but NEL, and the two that are no
// characters. A cluster's texts may have any of them.
func escapeForYAML(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r == 0x7f || r >= 0x80 && r < 0xa0 && r != 0x85 || r == 0xfffe || r == 0xffff {
			out = fmt.Appendf(out, "\\u%04x", r)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// JSON writes a document, indented by two spaces.
func JSON(w io.Writer, document any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(document)
}
