package report

import (
	"bytes"
	"testing"

	"sigs.k8s.io/yaml"
)

// A cluster's texts may hold what YAML may not (YAML 1.2, section 5.1): the document is
// written all the same, and says the same when it is read.
func TestYAMLOfAnyText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a\x7fb", "a\u009bb", "a\ufffeb\uffff", "a\x1b[31mb\x00", "\ufeffa", "grün\u2028🙂"} {
		var out bytes.Buffer
		if err := YAML(&out, map[string]string{"text": text}); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var back map[string]string
		if err := yaml.Unmarshal(out.Bytes(), &back); err != nil || back["text"] != text {
			t.Errorf("%q is read as %q (%v) from\n%s", text, back["text"], err, out.Bytes())
		}
	}
}
