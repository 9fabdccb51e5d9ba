package cri

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// logLine is the kubelet's CRI log format: pkg/kubelet/kuberuntime/logs, parseCRILog.
var logLine = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{9}Z) (stdout|stderr) ([FP]) (.*)$`)

func TestLogFormat(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), n.config("echo=to stdout", "warn=to stderr", "echo=", "repeat=20000", "partial=no newline"))
	n.ended(id)
	type entry struct{ stream, tag, text string }
	var stdout, stderr []entry
	for _, line := range n.logLines(id) {
		m := logLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("not a CRI log line: %q", line)
		}
		if _, err := time.Parse(time.RFC3339Nano, m[1]); err != nil {
			t.Errorf("time of a line: %v", err)
		}
		if m[2] == "stdout" {
			stdout = append(stdout, entry{m[2], m[3], m[4]})
		} else {
			stderr = append(stderr, entry{m[2], m[3], m[4]})
		}
	}
	want := []entry{
		{"stdout", "F", "to stdout"},
		{"stdout", "F", ""},
		{"stdout", "P", strings.Repeat("x", 16384)},
		{"stdout", "F", strings.Repeat("x", 20000-16384)},
		{"stdout", "P", "no newline"},
	}
	if len(stdout) != len(want) {
		t.Fatalf("%d lines of stdout, want %d", len(stdout), len(want))
	}
	for i := range want {
		if stdout[i] != want[i] {
			t.Errorf("line %d: %.80v, want %.80v", i, stdout[i], want[i])
		}
	}
	if len(stderr) != 1 || stderr[0] != (entry{"stderr", "F", "to stderr"}) {
		t.Errorf("stderr: %v", stderr)
	}
}

func TestLogRotation(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), n.config("wait", "echo=second", "stubborn"))
	n.printed(id, "ready")
	path := n.status(id).LogPath
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.runtime.ReopenContainerLog(n.ctx(), &runtimeapi.ReopenContainerLogRequest{ContainerId: id}); err != nil {
		t.Fatalf("ReopenContainerLog: %v", err)
	}
	n.stopping(id, 10*patience)
	n.printed(id, "second")
	raw, err := os.ReadFile(path + ".1")
	if err != nil || !strings.HasSuffix(string(raw), " stdout F ready\n") {
		t.Errorf("the rotated log is %q, %v", raw, err)
	}
}
