package offline

import (
	"bytes"
	"strings"
	"testing"
)

// Whatever the bytes are, reading ends with a Snapshot or with an error that says
// where; and a Snapshot that was read is the same after it was written and read again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		nodeYAML, nodeJSON,
		`{"apiVersion":"v1","items":[` + nodeJSON + `],"kind":"List"}` + nodeJSON,
		"apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: a}\n---\nserverVersion: {gitVersion: v1.37.2, major: '1', minor: '37'}\n",
		"--- # a\n%YAML 1.1\n---\na: &a [*a]\n...\n",
		"kind: Pod\napiVersion: v1\nmetadata: {name: p, namespace: n}\nspec: {containers: [{resources: {limits: {a/b: 1e3}}}]}\n---\n" + nodeYAML,
		"kind: Lease\napiVersion: coordination.k8s.io/v1\nmetadata: {name: p, namespace: dramigrate-system}\nspec: {leaseDurationSeconds: 9, renewTime: 2026-01-01T00:00:00.5Z}\n---\n" + nodeYAML,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, _, err := Read(t.Context(), []string{Stdin}, Options{Namespace: toolNamespace, Stdin: bytes.NewReader(data)})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "standard input") {
				t.Errorf("error %q does not begin with where it is", err)
			}
			return
		}
		var first, second bytes.Buffer
		if _, err := Write(&first, s, about()); err != nil {
			t.Fatal(err)
		}
		again, _, err := Read(t.Context(), []string{Stdin}, Options{Namespace: toolNamespace, Stdin: bytes.NewReader(first.Bytes())})
		if err != nil {
			t.Fatalf("%v in\n%s", err, first.Bytes())
		}
		if _, err := Write(&second, again, about()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("written:\n%s\nread and written again:\n%s", first.Bytes(), second.Bytes())
		}
	})
}
