package main

import (
	"slices"
	"time"
)

// point is a value and since when it holds.
type point struct {
	since time.Time
	value int
}

// timeline is a value over time, oldest point first. Before the first point it is 0.
type timeline []point

// set notes a value as of now, if it is another than before.
func (t *timeline) set(now time.Time, value int) {
	if n := len(*t); n > 0 && (*t)[n-1].value == value {
		return
	}
	*t = append(*t, point{now, value})
}

// at is the value at a moment.
func (t timeline) at(when time.Time) int {
	value := 0
	for _, p := range t {
		if p.since.After(when) {
			break
		}
		value = p.value
	}
	return value
}

// span is a stretch of time.
type span struct{ from, to time.Time }

// lasting is for how long within s a condition held for the values of all lines.
func (s span) lasting(holds func(values []int) bool, lines ...timeline) time.Duration {
	moments := []time.Time{s.from, s.to}
	for _, line := range lines {
		for _, p := range line {
			if p.since.After(s.from) && p.since.Before(s.to) {
				moments = append(moments, p.since)
			}
		}
	}
	slices.SortFunc(moments, time.Time.Compare)
	var total time.Duration
	values := make([]int, len(lines))
	for i := range moments[:len(moments)-1] {
		for k, line := range lines {
			values[k] = line.at(moments[i])
		}
		if holds(values) {
			total += moments[i+1].Sub(moments[i])
		}
	}
	return total
}
