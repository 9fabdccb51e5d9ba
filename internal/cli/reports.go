package cli

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/jsonerr"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
	"github.com/dramigrate/dramigrate/internal/words"
)

const (
	// maxReport bounds a report's file, in bytes: it is no longer than a helper pod's
	// log may be.
	maxReport = 4 << 20
	// freshFor is how long a report is taken for the present.
	freshFor = time.Hour
	// clockSkew is how far the clock of whoever probed may be ahead.
	clockSkew = 5 * time.Minute
)

// readReports reads the NodeReports of a folder, and gives the digest of each file by
// its node. Two reports of one node contradict each other, so that is an error.
func readReports(dir string, now time.Time) ([]checks.Witness, map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	digests := map[string]string{}
	var out []checks.Witness
	for _, e := range entries {
		if !slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(e.Name())) {
			continue
		}
		data, err := readBounded(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		var r nodeprobe.NodeReport
		if err := yaml.UnmarshalStrict(data, &r); err != nil {
			return nil, nil, fmt.Errorf("%s: is no NodeReport, or not the whole of one: %w", e.Name(), jsonerr.Plain(err))
		}
		switch {
		case r.APIVersion == "" && r.Kind == "":
			return nil, nil, fmt.Errorf("%s: is no NodeReport: it has neither apiVersion nor kind", e.Name())
		case r.APIVersion != nodeprobe.APIVersion || r.Kind != nodeprobe.Kind:
			return nil, nil, fmt.Errorf("%s: is a %s %s, not a %s %s", e.Name(), r.APIVersion, r.Kind, nodeprobe.APIVersion, nodeprobe.Kind)
		case r.Node == "" || r.Time.IsZero():
			return nil, nil, fmt.Errorf("%s: does not say its node and its time", e.Name())
		case r.Time.After(now.Add(clockSkew)):
			return nil, nil, fmt.Errorf("%s: is of %s, which has yet to come: see the clocks of the two machines, and probe again", e.Name(), r.Time.UTC().Format(time.RFC3339))
		case !slices.Contains(nodeprobe.Verdicts(), r.Verdict):
			return nil, nil, fmt.Errorf("%s: has the verdict %q, which is none; probe again", e.Name(), r.Verdict)
		case digests[r.Node] != "":
			return nil, nil, fmt.Errorf("%s: is a second report of node %s; keep the newer one", e.Name(), r.Node)
		}
		sum := sha256.Sum256(data)
		digests[r.Node] = "sha256:" + hex.EncodeToString(sum[:])
		out = append(out, witness(&r, now))
	}
	if len(out) == 0 {
		return nil, nil, errors.New("holds no report: no *.json, *.yaml or *.yml file")
	}
	return out, digests, nil
}

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if err == nil && len(data) > maxReport {
		err = fmt.Errorf("%s: is longer than %d bytes", filepath.Base(name), maxReport)
	}
	return data, err
}

// undecided says why a report's verdict is open.
func undecided(r *nodeprobe.NodeReport) string {
	var why []string
	for _, u := range r.Unknown {
		why = append(why, u.Part+": "+u.Reason)
	}
	for i := range r.Devices {
		if d := &r.Devices[i]; d.Verdict == nodeprobe.Undecided {
			why = append(why, d.Reasons...)
		}
	}
	if len(why) == 0 {
		return "the report does not say why"
	}
	return words.Few(3, why)
}

// witness is what checks take of a report.
func witness(r *nodeprobe.NodeReport, now time.Time) checks.Witness {
	w := checks.Witness{Node: r.Node, Time: r.Time, Aged: now.Sub(r.Time) > freshFor, Offered: r.Advertised}
	for i := range r.Devices {
		d := &r.Devices[i]
		if poolprobe.IsDouble(d.Verdict) {
			reasons := d.Reasons
			if len(reasons) == 0 {
				reasons = []string{"device " + cmp.Or(d.UUID, strconv.Itoa(i)) + ", of which the report says no more"}
			}
			w.Double = append(w.Double, reasons...)
			w.Held = w.Held || d.Verdict == nodeprobe.DoubleHeld
		}
	}
	if poolprobe.IsDouble(r.Verdict) && len(w.Double) == 0 {
		w.Double, w.Held = []string{"the report does not say which device"}, r.Verdict == nodeprobe.DoubleHeld
	}
	if r.Verdict == nodeprobe.Undecided {
		w.Undecided = undecided(r)
	}
	unread := slices.ContainsFunc(r.Unknown, func(u nodeprobe.Unknown) bool { return u.Part == nodeprobe.PartHardware })
	if r.Hardware != nil && r.Hardware.Devices != nil && !unread {
		w.GPUs = map[string][]string{}
		for _, d := range r.Hardware.Devices {
			var partitions []string
			for _, m := range d.MIG {
				partitions = append(partitions, m.UUID)
			}
			w.GPUs[d.UUID] = partitions
		}
	}
	return w
}
