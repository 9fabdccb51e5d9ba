package cri

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cri.json")
	for text, want := range map[string]string{
		`{"socket": "cri.sock", "stateDir": "/s", "commandDir": "/c"}`: `socket "cri.sock" is not an absolute path`,
		`{"socket": "/cri.sock", "stateDir": "/s"}`:                    `commandDir "" is not an absolute path`,
		`{`: "unexpected end of JSON input",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadConfig(file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v; want %s, with the file's name", text, err, want)
		}
	}
	if err := os.WriteFile(file, []byte(`{"socket": "/cri.sock", "stateDir": "/s", "commandDir": "/c"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err := LoadConfig(file); err != nil || c.PodIP != "127.0.0.1" {
		t.Errorf("config %+v, %v; want the pod IP 127.0.0.1", c, err)
	}
}
