package report

import (
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// timeline is a pool over time: how its nodes stand now, while each batch is moved,
// and in the end.
type timeline struct {
	Stages []stage
	// More are the stages that are folded because there are many.
	More   []stage
	Last   stage
	Tiles  []tile
	Tracks []track
	// Moments is the number of stages, and the width of a tile's own timeline.
	Moments int
}

// stage is the pool at one moment.
type stage struct {
	Title string
	// Moving are the nodes of the batch that is moved then.
	Moving []string
	// Squares has the state of each node, in the order of the batches; nil where all
	// stages together would be too many to read. Bar has the counts alone.
	Squares []string
	Bar     []barPart
}

// barPart is the share of the pool that is in one state.
type barPart struct {
	Kind, Name     string
	Nodes, From, N int // N of all Nodes, after those of the parts before
}

// tile is one node, and its track over time.
type tile struct {
	Node, Path, Track string
	Skipped           bool
}

// track is the way of the nodes that start alike and are moved in one batch.
type track struct {
	ID, From, To string // kinds
	Batch, After int    // the moment at which they are moved, and how many follow
}

// The kinds of nodes in the page, as classes; each has a shape of its own there.
const (
	onPlugin = "p"
	neither  = "n"
	onDRA    = "d"
	unclear  = "u"
)

const (
	mostSquares = 10_000
	mostStages  = 24
)

func kindOf(s gate.State) string {
	return map[gate.State]string{gate.Plugin: onPlugin, gate.Switching: neither, gate.DRA: onDRA}[s]
}

// nameOf is what a kind is called.
func nameOf(kind string) string {
	return map[string]string{onPlugin: "plugin", neither: "neither", onDRA: "DRA", unclear: "unclear"}[kind]
}

func newTimeline(p *plan.Plan) *timeline {
	if p.Pool == nil {
		return nil
	}
	now := map[string]string{}
	for _, c := range p.NodeChanges {
		kind := unclear
		if state, known := p.Gate.StateOf(c.Before.Labels); known {
			kind = kindOf(state)
		}
		if p.Into != nil {
			kind = sideOf(p, c)
		}
		for _, n := range c.Nodes {
			now[n] = kind
		}
	}
	t := &timeline{Moments: len(p.Batches) + 2}
	var kinds []string
	for i, b := range p.Batches {
		for _, n := range b.Nodes {
			kind, known := now[n]
			if !known {
				kind = unclear
			}
			kinds = append(kinds, kind)
			target := targetOf(p, n)
			way := track{ID: fmt.Sprintf("%s%d", kind, i+1), From: kind, To: target, Batch: i + 1, After: len(p.Batches) - i}
			if !slices.Contains(t.Tracks, way) {
				t.Tracks = append(t.Tracks, way)
			}
			t.Tiles = append(t.Tiles, tile{Node: n, Track: way.ID,
				Path: pathOf(p, n, kind, i+1)})
		}
	}
	for _, s := range p.Skipped {
		t.Tiles = append(t.Tiles, tile{Node: s.Node, Path: "left alone: " + s.Why, Skipped: true})
	}
	squares := len(kinds)*t.Moments <= mostSquares
	stages := []stage{newStage("Now", nil, kinds, squares)}
	at := 0
	for i, b := range p.Batches {
		for j := range b.Nodes {
			kinds[at+j] = neither
		}
		stages = append(stages, newStage(fmt.Sprintf("Batch %d", i+1), b.Nodes, kinds, squares))
		for j, n := range b.Nodes {
			kinds[at+j] = targetOf(p, n)
		}
		at += len(b.Nodes)
	}
	t.Last = newStage("After the run", nil, kinds, squares)
	t.Stages = stages
	if len(stages) > mostStages {
		t.Stages, t.More = stages[:mostStages/2], stages[mostStages/2:]
	}
	return t
}

func newStage(title string, moving, kinds []string, squares bool) stage {
	s := stage{Title: title, Moving: moving}
	if squares {
		s.Squares = append(s.Squares, kinds...)
	}
	count := map[string]int{}
	for _, k := range kinds {
		count[k]++
	}
	from := 0
	for _, k := range []string{onPlugin, neither, onDRA, unclear} {
		if n := count[k]; n > 0 {
			s.Bar = append(s.Bar, barPart{Kind: k, Name: nameOf(k), Nodes: len(kinds), From: from, N: n})
			from += n
		}
	}
	return s
}
