package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMaxUnavailable(t *testing.T) {
	for _, c := range []struct {
		value string
		total int
		want  int
	}{
		{"1", 10, 1},
		{"3", 10, 3},
		{"20", 10, 10}, // never more than there are
		{"10%", 10, 1},
		{"10%", 11, 2}, // rounded up
		{"10%", 3, 1},
		{"50%", 5, 3},
		{"100%", 7, 7},
		{"1%", 200, 2},
		{"10%", 0, 1},
	} {
		got, err := MaxUnavailable(c.value, c.total)
		if err != nil || got != c.want {
			t.Errorf("MaxUnavailable(%q, %d) = %d, %v; want %d", c.value, c.total, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "0", "-1", "0%", "101%", "ten", "10.5%", "5%%"} {
		if got, err := MaxUnavailable(bad, 10); err == nil {
			t.Errorf("MaxUnavailable(%q) = %d, want an error", bad, got)
		}
	}
}

func TestBatches(t *testing.T) {
	for _, c := range []struct {
		nodes, first, size int
		want               []int // sizes
	}{
		{0, 1, 2, nil},
		{1, 1, 5, []int{1}},
		{2, 1, 5, []int{1, 1}},
		{7, 1, 1, []int{1, 1, 1, 1, 1, 1, 1}},
		{7, 1, 3, []int{1, 3, 3}},
		{8, 1, 3, []int{1, 3, 3, 1}},
		{8, 2, 3, []int{2, 3, 3}},
		{8, 5, 1, []int{5, 1, 1, 1}},
		{3, 5, 1, []int{3}},
		{200, 1, 20, []int{1, 20, 20, 20, 20, 20, 20, 20, 20, 20, 19}},
	} {
		var nodes []string
		for i := range c.nodes {
			nodes = append(nodes, fmt.Sprint(i))
		}
		var sizes []int
		var all []string
		for _, b := range batches(nodes, c.first, c.size) {
			sizes = append(sizes, len(b.Nodes))
			all = append(all, b.Nodes...)
		}
		if diff := cmp.Diff(c.want, sizes); diff != "" {
			t.Errorf("batches of %d nodes by %d: %s", c.nodes, c.size, diff)
		}
		if diff := cmp.Diff(nodes, all); diff != "" {
			t.Errorf("batches of %d nodes by %d lose the order: %s", c.nodes, c.size, diff)
		}
	}
}

func TestChosenBatches(t *testing.T) {
	todo := []string{"c", "a", "b", "d"} // c is closed by an earlier run
	begun := func(node string) bool { return node == "c" }
	for _, c := range []struct {
		title   string
		written [][]string
		want    [][]string
		rest    []string
	}{
		{"none", nil, nil, todo},
		{"in the order in which they are written", [][]string{{"d"}, {"b", "a"}}, [][]string{{"d"}, {"b", "a"}}, []string{"c"}},
		{"a closed node's batch first", [][]string{{"d"}, {"b", "c"}, {"a"}}, [][]string{{"b", "c"}, {"d"}, {"a"}}, nil},
		{"nodes with nothing to do are left out", [][]string{{"x"}, {"y", "a"}}, [][]string{{"a"}}, []string{"c", "b", "d"}},
		{"a node goes once", [][]string{{"a"}, {"a", "b"}}, [][]string{{"a"}, {"b"}}, []string{"c", "d"}},
	} {
		var written []Batch
		for _, nodes := range c.written {
			written = append(written, Batch{Nodes: nodes})
		}
		list, rest := chosen(written, todo, begun)
		var got [][]string
		for _, b := range list {
			got = append(got, b.Nodes)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.title, diff)
		}
		if diff := cmp.Diff(c.rest, rest); diff != "" {
			t.Errorf("%s: the rest (-want +got):\n%s", c.title, diff)
		}
	}
}
