package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dramigrate/dramigrate/test/cluster/internal/process"
)

// State is what is known of a cluster from its folder.
type State struct {
	Version    string `json:"version"`
	URL        string `json:"url"`
	Kubeconfig string `json:"kubeconfig"`
	// Nodes and SimNodes as they were asked for.
	Nodes    []NodeSpec `json:"nodes,omitempty"`
	SimNodes []NodeSpec `json:"simNodes,omitempty"`
	// Processes in the order in which they were started. A node's is its first
	// process, with which all others of the node end.
	Processes []process.Ref `json:"processes"`
}

func stateFile(dir string) string { return filepath.Join(dir, "cluster.json") }

func (c *Cluster) saveState() error {
	s := State{Version: c.options.Version, Nodes: c.options.Nodes, SimNodes: c.options.SimNodes}
	if c.plane != nil {
		s.URL, s.Kubeconfig = c.plane.URL(), c.plane.AdminKubeconfig()
		for _, p := range c.plane.Processes {
			s.Processes = append(s.Processes, p.Ref)
		}
	}
	for _, n := range c.nodes {
		if n.Process != nil {
			s.Processes = append(s.Processes, n.Process.Ref)
		}
	}
	if c.sim != nil {
		s.Processes = append(s.Processes, c.sim.Ref)
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	tmp := stateFile(c.dir) + ".new"
	if err := os.WriteFile(tmp, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, stateFile(c.dir))
}

// clearFolder makes a folder ready for a new cluster: what an ended one has left is
// removed. A running one, and a folder that holds something else, are errors.
func clearFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := Load(dir)
	if errors.Is(err, ErrNoCluster) {
		return fmt.Errorf("the state folder %s is not empty and holds no cluster", dir)
	}
	if err != nil {
		return err
	}
	if len(s.Ended()) < len(s.Processes) {
		return fmt.Errorf("a cluster is already running in %s at %s; `down` ends it", dir, s.URL)
	}
	return removeAll(dir)
}

// ErrNoCluster is returned by Load for a folder without a cluster.
var ErrNoCluster = errors.New("no cluster")

// Load reads the state of the cluster in a folder, whichever process started it.
func Load(dir string) (State, error) {
	data, err := os.ReadFile(stateFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return State{}, fmt.Errorf("%w in %s", ErrNoCluster, dir)
	}
	if err != nil {
		return State{}, err
	}
	var s State
	if err := json.Unmarshal(data, &s); err != nil {
		return State{}, fmt.Errorf("%s: %w", stateFile(dir), err)
	}
	return s, nil
}

// Ended lists the programs that no longer run.
func (s State) Ended() []string {
	var out []string
	for _, p := range s.Processes {
		if !p.Alive() {
			out = append(out, p.Name)
		}
	}
	return out
}

// Down ends the cluster in a folder, whichever process started it, and removes
// the folder.
func Down(dir string) error {
	s, err := Load(dir)
	if err != nil {
		return err
	}
	if err := process.Kill(s.Processes...); err != nil {
		return fmt.Errorf("cluster %s: %w", dir, err)
	}
	return removeAll(dir)
}
