package poolprobe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
)

// DefaultParallel is how many nodes are probed at the same time.
const DefaultParallel = 20

// Options are what a gathering works with.
type Options struct {
	Pool             cluster.NodePool
	Resource, Driver string
	// Parallel bounds the nodes that are probed at the same time; DefaultParallel if 0.
	Parallel int
	// Probe asks one node. It may be called for several nodes at once, and has a deadline
	// of its own.
	Probe func(ctx context.Context, node string) (*nodeprobe.NodeReport, error)
	// Look reads the API.
	Look func(context.Context) (*cluster.Snapshot, error)
	// Done is told of each node that has answered, or will not. It may be nil. It is
	// called for one node at a time.
	Done func(node string, err error)
}

// Gather probes the nodes of the pool that have devices and judges what they say with
// the API as it is afterwards. before is the API as it was when the pool was chosen.
//
// A node without a report is in the result with the reason. The error is for what ended
// the whole gathering: the API could not be read, or ctx ended.
func Gather(ctx context.Context, before *cluster.Snapshot, o Options) (*Result, error) {
	g := &gathering{o: o, reports: map[string]*nodeprobe.NodeReport{}, failed: map[string]error{}}
	nodes := g.nodes(before)
	if err := g.ask(ctx, nodes); err != nil {
		return nil, err
	}
	after, err := o.Look(ctx)
	if err != nil {
		return nil, err
	}
	out := g.result(nodes, before, after)
	// A pod may have handed its device to another between the two looks. What is double
	// for good shows again.
	var again []string
	for i := range out.Nodes {
		if n := &out.Nodes[i]; n.Source == FromNode && IsDouble(n.Verdict) && !g.stood(n, before) {
			again = append(again, n.Name)
		}
	}
	if len(again) == 0 {
		return out, nil
	}
	if err := g.ask(ctx, again); err != nil {
		return nil, err
	}
	before = after
	if after, err = o.Look(ctx); err != nil {
		return nil, err
	}
	out = g.result(nodes, before, after)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		if slices.Contains(again, n.Name) && IsDouble(n.Verdict) && !g.stood(n, before) {
			n.Reasons = append([]string{"changed while it was looked at, twice: probe it again"}, n.Reasons...)
			n.Verdict = nodeprobe.Undecided
		}
	}
	out.judge()
	return out, nil
}

// gathering is one Gather.
type gathering struct {
	o Options

	mu      sync.Mutex
	reports map[string]*nodeprobe.NodeReport
	failed  map[string]error
}

// nodes are those of the pool that have devices, or are known to have had some.
func (g *gathering) nodes(s *cluster.Snapshot) []string {
	views := s.Views(g.o.Pool.Nodes...)
	var out []string
	for _, name := range g.o.Pool.Nodes {
		v, ok := views[name]
		if ok && v.HasDevices(g.o.Resource, g.o.Driver) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// ask probes nodes, some at a time.
func (g *gathering) ask(ctx context.Context, nodes []string) error {
	limit := g.o.Parallel
	if limit <= 0 {
		limit = DefaultParallel
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for _, name := range nodes {
		group.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			report, err := g.o.Probe(ctx, name)
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			delete(g.reports, name)
			delete(g.failed, name)
			if report != nil {
				g.reports[name] = report
			}
			if err != nil {
				g.failed[name] = err
			}
			if g.o.Done != nil {
				g.o.Done(name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// stood says that the API as it was before the node was probed gives the same verdict as
// afterwards: then what is double was so all the time.
func (g *gathering) stood(n *Node, before *cluster.Snapshot) bool {
	v, ok := before.View(n.Name)
	if !ok {
		return false
	}
	return judge(n.Report, v, before).Verdict == n.Verdict
}

// result joins what the nodes said with the API.
func (g *gathering) result(nodes []string, before, after *cluster.Snapshot) *Result {
	out := &Result{
		APIVersion: cluster.APIVersion, Kind: Kind, Cluster: after.Identity,
		Pool: g.o.Pool.Name, Resource: g.o.Resource, Driver: g.o.Driver,
		Nodes: []Node{}, Unknown: after.Unknown,
	}
	views := after.Views(nodes...)
	for _, name := range nodes {
		v, there := views[name]
		if !there {
			out.Nodes = append(out.Nodes, Node{Name: name, Verdict: nodeprobe.Undecided, Source: FromAPI, Error: "the node has left the cluster meanwhile"})
			continue
		}
		out.Nodes = append(out.Nodes, g.node(v, after))
	}
	out.judge()
	return out
}

func (r *Result) judge() {
	list := make([]nodeprobe.Verdict, len(r.Nodes))
	for i := range r.Nodes {
		list[i] = r.Nodes[i].Verdict
	}
	r.Verdict = Worst(list...)
}

func (g *gathering) node(v cluster.NodeView, s *cluster.Snapshot) Node {
	n := Node{Name: v.Node.Name}
	if err := g.failed[n.Name]; err != nil {
		n.Error = err.Error()
	}
	report := g.reports[n.Name]
	if report == nil {
		n.Source = FromAPI
		n.Verdict, n.Reasons = g.fromAPI(v, s)
		return n
	}
	judged := judge(report, v, s)
	n.Source, n.Report, n.Verdict = FromNode, &judged, judged.Verdict
	n.count()
	return n
}

// judge concludes anew with the API's view.
func judge(r *nodeprobe.NodeReport, v cluster.NodeView, s *cluster.Snapshot) nodeprobe.NodeReport {
	return nodeprobe.Join(*r, APIView(v, func(part string) bool { _, unknown := s.IsUnknown(part); return unknown }))
}

// fromAPI is what the API alone tells of a node that did not speak for itself.
func (g *gathering) fromAPI(v cluster.NodeView, s *cluster.Snapshot) (nodeprobe.Verdict, []string) {
	if double := v.OfferedTwice(g.o.Resource, g.o.Driver); double != "" {
		return nodeprobe.DoubleAdvertised, []string{"from the API alone: " + double}
	}
	return nodeprobe.Undecided, []string{"the node gave no report, and the API alone proves nothing clean"}
}

// count fills in what the table shows of a report.
func (n *Node) count() {
	if h := n.Report.Hardware; h != nil && h.Devices != nil {
		gpus := len(h.Devices)
		n.GPUs = &gpus
	}
	holders := map[Holder]int{}
	for _, d := range n.Report.Devices {
		switch d.AdvertisedBy {
		case nodeprobe.ByPlugin:
			n.Plugin++
		case nodeprobe.ByDRA:
			n.DRA++
		case nodeprobe.ByBoth:
			n.Both++
		}
		seen := map[Holder]bool{}
		for _, h := range d.Holds {
			who := Holder{Name: HolderName(h), By: h.By}
			if !seen[who] {
				seen[who] = true
				holders[who]++
			}
		}
		if d.Verdict != nodeprobe.Clean {
			n.Reasons = append(n.Reasons, d.Reasons...)
			if d.Verdict == nodeprobe.Undecided && len(d.Reasons) == 0 {
				n.Reasons = append(n.Reasons, d.Unknown...)
			}
		}
	}
	for who, devices := range holders {
		who.Devices = devices
		n.Holders = append(n.Holders, who)
	}
	slices.SortFunc(n.Holders, byName)
	if n.Verdict == nodeprobe.Undecided && len(n.Reasons) == 0 {
		for _, u := range n.Report.Unknown {
			n.Reasons = append(n.Reasons, u.Part+": "+u.Reason)
		}
	}
	n.Reasons = once(n.Reasons)
}

// HolderName names who holds a device, as far as it is known.
func HolderName(h nodeprobe.Hold) string {
	switch {
	case h.Pod != "":
		return h.Pod
	case h.PodUID != "":
		return "pod with UID " + h.PodUID
	case h.Command != "":
		return fmt.Sprintf("process %d (%s)", h.PID, h.Command)
	default:
		return fmt.Sprintf("process %d", h.PID)
	}
}

func byName(a, b Holder) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.By, b.By))
}

// once keeps the first of each text.
func once(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
