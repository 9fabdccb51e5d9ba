package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/follow"
)

// syncDeadline is how long the first lists of a watch may take.
const syncDeadline = time.Minute

// UnseenError says that what had to be seen cannot be seen at the moment.
type UnseenError struct{ Reason string }

func (e *UnseenError) Error() string { return e.Reason }

// NodeGoneError says that a node was deleted.
type NodeGoneError struct{ Node string }

func (e *NodeGoneError) Error() string {
	return fmt.Sprintf("node/%s: does not exist any more", e.Node)
}

// Live is a view of single nodes that follows the cluster by watches: the node, its
// pods and its ResourceSlices by three watches a node that see nothing else, and
// the ResourceClaims by one, because their API has no field to select by node.
//
// The watches are not in step with each other. What they say is right to wait by;
// before a step that cannot be taken back, Fresh asks the server.
type Live struct {
	client kubernetes.Interface
	clock  clock.Clock

	mu     sync.Mutex
	claims *follow.Source
	nodes  map[string]*liveNode
}

// liveNode is what is watched of one node.
type liveNode struct {
	node, pods, slices *follow.Source
	stop               context.CancelFunc
	changed            chan struct{} // closed and replaced at each change
}

func (n *liveNode) sources() []*follow.Source { return []*follow.Source{n.node, n.pods, n.slices} }

// NewLive makes a view that sees nothing until Start.
func NewLive(client kubernetes.Interface, c clock.Clock) *Live {
	return &Live{client: client, clock: c, nodes: map[string]*liveNode{}}
}

// Start begins to watch nodes, more with each call, and returns when all of them
// are known. A node is watched until Stop, or until the context of the Start that
// named it first ends; the claims are watched as long as the first Start's context.
// If something cannot be listed within a minute, or may not be, the error names it,
// and the nodes of this call are not watched.
func (l *Live) Start(ctx context.Context, nodes ...string) error {
	fresh, begun, err := l.begin(ctx, nodes)
	if err == nil {
		err = l.sync(ctx, fresh)
	}
	if err != nil {
		l.Stop(begun...)
		return err
	}
	return nil
}

// Stop ends the watches of nodes.
func (l *Live) Stop(nodes ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range nodes {
		if n := l.nodes[name]; n != nil {
			n.stop()
			delete(l.nodes, name)
			close(n.changed) // whoever waits looks again, and finds it unwatched
		}
	}
}

// begin starts what is not watched yet. It returns all sources to wait for, those
// of an earlier Start included, and the nodes that this call has begun.
func (l *Live) begin(ctx context.Context, nodes []string) (fresh []*follow.Source, begun []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.claims == nil {
		s, err := l.claimSource()
		if err != nil {
			return nil, nil, err
		}
		l.claims = s
		s.Run(ctx)
	}
	fresh = append(fresh, l.claims)
	for _, name := range nodes {
		if n := l.nodes[name]; n != nil {
			fresh = append(fresh, n.sources()...)
			continue
		}
		n, err := l.nodeSources(name)
		if err != nil {
			return nil, begun, err
		}
		run, stop := context.WithCancel(ctx)
		n.stop = stop
		l.nodes[name] = n
		begun = append(begun, name)
		for _, s := range n.sources() {
			s.Run(run)
		}
		fresh = append(fresh, n.sources()...)
	}
	return fresh, begun, nil
}

// sync waits for the first lists.
func (l *Live) sync(ctx context.Context, sources []*follow.Source) error {
	t := l.clock.NewTimer(syncDeadline)
	defer t.Stop()
	for _, s := range sources {
		if s.Informer.HasSynced() {
			continue // whatever was refused before
		}
		select {
		case <-s.Informer.HasSyncedChecker().Done():
		case err := <-s.Denied:
			return fmt.Errorf("cannot watch %s: %w", s.What, err)
		case <-ctx.Done():
			return fmt.Errorf("watch %s: %w", s.What, context.Cause(ctx))
		case <-t.C():
			var why []string
			for _, s := range sources {
				if s.Informer.HasSynced() {
					continue
				}
				if trouble := s.Trouble(); trouble != "" {
					why = append(why, trouble)
				} else {
					why = append(why, "no answer to the list of "+s.What)
				}
			}
			return &UnseenError{fmt.Sprintf("not listed within %s: %s", syncDeadline, strings.Join(why, "; "))}
		}
	}
	return nil
}

// View is a node as the watches know it. It gives an *UnseenError if one of them is
// cut off, so that nobody decides by what may be old, and a *NodeGoneError if the
// node was deleted.
func (l *Live) View(node string) (cluster.NodeView, error) {
	l.mu.Lock()
	n, claims := l.nodes[node], l.claims
	l.mu.Unlock()
	if n == nil {
		return cluster.NodeView{}, &UnseenError{"node " + node + " is not watched"}
	}
	for _, s := range append(n.sources(), claims) {
		if why := s.Trouble(); why != "" {
			return cluster.NodeView{}, &UnseenError{why}
		}
	}
	var snap cluster.Snapshot
	for _, o := range n.node.Informer.GetStore().List() {
		snap.Nodes = append(snap.Nodes, *o.(*corev1.Node))
	}
	for _, o := range n.pods.Informer.GetStore().List() {
		snap.Pods = append(snap.Pods, o.(*cluster.CachedPod).Pod)
	}
	for _, o := range n.slices.Informer.GetStore().List() {
		snap.Slices = append(snap.Slices, *o.(*resourcev1.ResourceSlice))
	}
	snap.Claims = claimsFor(claims.Informer.GetIndexer(), node, &snap)
	return viewOf(&snap, node)
}

// viewOf takes the node's view out of a snapshot of little more than that node.
func viewOf(snap *cluster.Snapshot, node string) (cluster.NodeView, error) {
	sortSnapshot(snap)
	v, ok := snap.View(node)
	if !ok {
		return cluster.NodeView{}, &NodeGoneError{Node: node}
	}
	return v, nil
}

// Changed is closed at the next change of anything that View shows of a node. Get
// it before the View that is judged, then no change is missed.
func (l *Live) Changed(node string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.nodes[node]; n != nil {
		return n.changed
	}
	return nil // never ready: the caller's own timer decides
}

func (l *Live) notify(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notifyLocked(node)
}

func (l *Live) notifyLocked(node string) {
	if n := l.nodes[node]; n != nil {
		close(n.changed)
		n.changed = make(chan struct{})
	}
}

// IsUnseen says that an error is about what could not be seen, not about what is.
func IsUnseen(err error) bool {
	var e *UnseenError
	return errors.As(err, &e)
}
