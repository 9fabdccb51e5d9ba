package dradriver

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFaultFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "driver-fault")
	if f, err := ReadFault(path); f != FaultNone || err != nil {
		t.Errorf("absent file: %q, %v; want no fault", f, err)
	}
	tests := []struct {
		content string
		want    Fault
		fails   bool
	}{
		{content: "", want: FaultNone},
		{content: " wrong-device\n", want: FaultWrongDevice},
		{content: `{"fault": "missing-device"}`, want: FaultMissingDevice},
		{content: "wrong device", fails: true},
		{content: `{"fault": "other"}`, fails: true},
		{content: `{"fault":`, fails: true},
	}
	for _, tt := range tests {
		if err := os.WriteFile(path, []byte(tt.content), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFault(path)
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%q: %q, %v; want %q, failure %v", tt.content, got, err, tt.want, tt.fails)
		}
	}
}

func TestWriteFault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "driver-fault")
	if err := WriteFault(path, FaultCrashLoop); err != nil {
		t.Fatal(err)
	}
	if f, err := ReadFault(path); f != FaultCrashLoop || err != nil {
		t.Errorf("read %q, %v; want crash-loop", f, err)
	}
	for range 2 { // removing what is not there is fine
		if err := WriteFault(path, FaultNone); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := ReadFault(path); f != FaultNone || err != nil {
		t.Errorf("read %q, %v; want no fault", f, err)
	}
	if err := WriteFault(path, "unheard-of"); err == nil {
		t.Error("an unknown fault was written")
	}
}
