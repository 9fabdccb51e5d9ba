package main

import (
	"testing"
	"time"
)

// A device plugin's 4 GPUs leave at 10 s and come back at 40 s; the driver's slices
// are there from 7 s to 42 s.
func TestLasting(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	var plugin, driver timeline
	plugin.set(at(0), 4)
	plugin.set(at(5), 4) // the same again is no change
	plugin.set(at(10), 0)
	plugin.set(at(40), 4)
	driver.set(at(7), 4)
	driver.set(at(42), 0)
	both := func(v []int) bool { return v[0] > 0 && v[1] > 0 }
	none := func(v []int) bool { return v[0] == 0 && v[1] == 0 }
	gone := func(v []int) bool { return v[0] == 0 }

	for _, c := range []struct {
		name     string
		from, to int
		holds    func([]int) bool
		lines    []timeline
		want     int
	}{
		{"plugin gone", 0, 60, gone, []timeline{plugin}, 30},
		{"plugin gone, cut at both ends", 20, 25, gone, []timeline{plugin}, 5},
		{"both, 7 to 10 and 40 to 42", 0, 60, both, []timeline{plugin, driver}, 5},
		{"both, only the way back", 20, 60, both, []timeline{plugin, driver}, 2},
		{"neither", 0, 60, none, []timeline{plugin, driver}, 0},
		{"nothing was seen yet", -5, 0, none, []timeline{plugin, driver}, 5},
	} {
		got := span{at(c.from), at(c.to)}.lasting(c.holds, c.lines...)
		if got != time.Duration(c.want)*time.Second {
			t.Errorf("%s: %s, want %d s", c.name, got, c.want)
		}
	}
	if len(plugin) != 3 {
		t.Errorf("the plugin's line has %d points, want 3", len(plugin))
	}
}
