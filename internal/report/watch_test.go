package report

import (
	"bytes"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/status"
)

func TestHistoryTables(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	end := func(minutes int) *metav1.Time { e := at(minutes); return &e }
	digest := "sha256:b129e704be7897f613c1759441eeeff5374135d504ba18db3e5f5b72a4cd2e50"
	h := &status.RunHistory{
		Runs: []status.Run{
			{Pool: "gpu-a", Active: true, RunRecord: cluster.RunRecord{ID: "1a2b3c4d", Operation: "rollback", Who: "me@host/7f0c", ToolVersion: "v0.3.0", Epoch: 4, PlanDigest: digest, Started: at(90)}},
			{Pool: "gpu-a", RunRecord: cluster.RunRecord{ID: "0f0e0d0c", Operation: "migrate", Who: "she@host/11", ToolVersion: "v0.3.0", Epoch: 3, PlanDigest: digest, Started: at(10), Ended: end(25),
				Outcome: "stopped", Message: "node/a-2: drain: \x1b[31mdefault/train-1\x1b[0m is not gone within 15m0s"}},
			{RunRecord: cluster.RunRecord{ID: "aaaabbbb", Operation: "prepare", Started: at(0)}},
		},
		Unknown: []cluster.Unknown{{Part: "leases", Reason: "forbidden"}},
	}
	golden(t, "history.txt", func(w *colorprofile.Writer) error { return History(Sheet{Writer: w}, h, false) })
	golden(t, "history-wide.txt", func(w *colorprofile.Writer) error { return History(Sheet{Writer: w}, h, true) })
	golden(t, "history-names.txt", func(w *colorprofile.Writer) error { return RunNames(w, h) })
	golden(t, "history-empty.txt", func(w *colorprofile.Writer) error { return History(Sheet{Writer: w}, &status.RunHistory{}, false) })
}

func TestStatusLines(t *testing.T) {
	lines := func(before, now *status.Status) string {
		var b bytes.Buffer
		if err := StatusLines(&b, before, now, noon); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first := someStatus()
	golden(t, "status-lines.txt", func(w *colorprofile.Writer) error { return StatusLines(w, nil, first, noon) })
	if got := lines(first, someStatus()); got != "" {
		t.Errorf("lines without a change:\n%s", got)
	}
	now := someStatus()
	now.Nodes[0].Cordoned = true
	now.Nodes = now.Nodes[:4]
	now.Strays, now.Unknown = now.Strays[1:], nil
	want := "12:00:00  node/a-1  dra; plugin 0, driver 2; ready, cordoned\n" +
		"12:00:00  node/c-1  is gone\n" +
		"12:00:00  node/b-1 two-states  is as it has to be again\n" +
		"12:00:00  UNKNOWN resourceclaims  can be read again\n"
	if diff := cmp.Diff(want, lines(first, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScreen(t *testing.T) {
	var b bytes.Buffer
	s := NewScreen(&b, func() int { return 10 })
	for _, text := range []string{"one\ntwo\n", "one\ntwo\n", "a line that is too long\n"} {
		if err := s.Show(text); err != nil {
			t.Fatal(err)
		}
	}
	// Two lines; nothing for the same text; two lines up, cleared, and a line broken to
	// fit: nothing of it is lost.
	if want := "one\ntwo\n" + "\x1b[2A\r\x1b[J" + "a line th\nat is too\n long\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
