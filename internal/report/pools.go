package report

import (
	"fmt"
	"io"
	"strconv"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/status"
	"github.com/dramigrate/dramigrate/internal/words"
)

// Pools writes the pools of a status. wide adds locks, runs, and whether the pool could
// be put back.
func Pools(sheet Sheet, s *status.Status, wide bool) error {
	d := newPage(sheet)
	if len(s.Pools) == 0 {
		d.para("", "No node carries a label that names a pool. Choose nodes by --selector.", lipgloss.NewStyle())
		return d.err
	}
	t := table{header: []string{"POOL", "NODES", "PLUGIN", "SWITCHING", "DRA", "NO DEVICE", "SELECTOR"}}
	if wide {
		t.header = []string{"POOL", "NODES", "PLUGIN", "SWITCHING", "DRA", "NO DEVICE", "ROLLBACK", "SELECTOR", "LOCK", "LAST RUN"}
	}
	for _, p := range s.Pools {
		row := []string{Clean(p.Name), strconv.Itoa(p.Nodes), strconv.Itoa(p.Plugin), strconv.Itoa(p.Switching),
			strconv.Itoa(p.DRA), strconv.Itoa(p.Nodes - p.WithDevices)}
		if wide {
			row = append(row, rollbackCell(p.Rollback), Clean(p.Selector), lockCell(p.Lock), lastRun(p.Runs))
		} else {
			row = append(row, Clean(p.Selector))
		}
		t.add(row...)
	}
	d.listing(t, wide)
	d.doubles(s)
	d.unpooled(s)
	return d.err
}

// doubles names the nodes that offer devices by both mechanisms, which the counts do not
// show.
func (d *page) doubles(s *status.Status) {
	var names []string
	for _, n := range s.Nodes {
		if n.Double {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	d.para("", "ADVERTISED TWICE, by plugin and driver: "+words.Few(5, names)+"; next: `dramigrate status`.", d.theme.bad)
}

// unpooled counts the nodes with devices that are in no pool, so that nobody takes
// the table for all there is.
func (d *page) unpooled(s *status.Status) {
	n := 0
	for _, node := range s.Nodes {
		if node.Pool == "" {
			n++
		}
	}
	if n > 0 {
		d.para("", fmt.Sprintf("%s with %s in no pool; choose them by --selector.", words.Plural(n, "node", "nodes"), s.Resource), lipgloss.NewStyle())
	}
}

// Names writes the pools' names, one a line, for scripts.
func Names(w io.Writer, s *status.Status) error {
	for _, p := range s.Pools {
		if _, err := fmt.Fprintln(w, Clean(p.Name)); err != nil {
			return err
		}
	}
	return nil
}
