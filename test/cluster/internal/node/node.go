// Package node runs one node of a cluster: a real kubelet over the cluster's
// CRI server, in mount and pid namespaces of their own.
//
// The kubelet's device-plugin folder is /var/lib/kubelet/device-plugins whatever
// its root folder is, and CDI files are looked for below /run, so several
// kubelets on one machine need a mount namespace each. The pid namespace makes
// the end of a node certain: with its first process all others are killed.
package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/test/cluster/internal/cri"
	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
	"github.com/dramigrate/dramigrate/test/cluster/internal/plane"
	"github.com/dramigrate/dramigrate/test/cluster/internal/process"
)

// InitCommand is the hidden subcommand that becomes a node's first process.
const InitCommand = "node-init"

// Spec says what a node is.
type Spec struct {
	Name   string
	Taints []corev1.Taint
	GPUs   gpu.Set
	// Addr and Port are where the kubelet listens.
	Addr netip.Addr
	Port int
	// StatusInterval is how often the kubelet reports the node's status.
	StatusInterval time.Duration
	// Images maps an image to the command in CommandDir that stands for it.
	Images     map[string]string
	CommandDir string
	// ClusterDir holds everything that the node's programs read, Dir among it.
	ClusterDir string
	// Program is the test cluster's program, Kubelet the kubelet; both in ClusterDir.
	Program, Kubelet string
}

// Node is a node that has been prepared or started.
type Node struct {
	Name string
	Addr netip.Addr
	GPUs gpu.Set
	// Process is the node's first process; nil before Start.
	Process *process.Process

	dir     Dir
	program string
}

// Dir is a node's folder.
type Dir string

// Log is the folder of the logs of the node's programs.
func (d Dir) Log() string { return filepath.Join(string(d), "log") }

// Kubelet is what the node sees as /var/lib/kubelet.
func (d Dir) Kubelet() string { return filepath.Join(string(d), "kubelet") }

// CDI is what the node sees as /run/cdi.
func (d Dir) CDI() string { return filepath.Join(string(d), "cdi") }

// Hardware is what the node sees as gpu.NodeDir.
func (d Dir) Hardware() string { return filepath.Join(string(d), "nvidia-sim") }

// FaultFile is what the node's DRA driver reads as dradriver.FaultFile.
func (d Dir) FaultFile() string { return filepath.Join(d.Hardware(), "driver-fault") }

func (d Dir) join(name string) string  { return filepath.Join(string(d), name) }
func (d Dir) controlSocket() string    { return d.join("control.sock") }
func (d Dir) criSocket() string        { return d.join("cri.sock") }
func (d Dir) podLogs() string          { return d.join("pods") }
func (d Dir) initConfig() string       { return d.join("node.json") }
func (d Dir) criConfig() string        { return d.join("cri.json") }
func (d Dir) kubeletConfig() string    { return d.join("kubelet.yaml") }
func (d Dir) kubeconfig() string       { return d.join("kubelet.kubeconfig") }
func (d Dir) resolvConf() string       { return d.join("resolv.conf") }
func (d Dir) sysctl(key string) string { return filepath.Join(string(d), "sysctl", key) }

// maxSocketPath is the size of sun_path (unix(7)) without its closing zero byte.
const maxSocketPath = 107

// Prepare writes all files of a node into dir.
func Prepare(dir Dir, spec Spec, p *plane.Plane) (*Node, error) {
	n := &Node{Name: spec.Name, Addr: spec.Addr, GPUs: spec.GPUs, dir: dir, program: spec.Program}
	if err := n.prepare(spec, p); err != nil {
		return nil, fmt.Errorf("node/%s: %w", spec.Name, err)
	}
	return n, nil
}

func (n *Node) prepare(spec Spec, p *plane.Plane) error {
	if l := len(n.dir.controlSocket()); l > maxSocketPath {
		return fmt.Errorf("the path of its sockets has %d bytes, at most %d are possible; choose a shorter state folder: %s",
			l, maxSocketPath, n.dir.controlSocket())
	}
	for _, sub := range []string{n.dir.Log(), n.dir.Kubelet(), n.dir.CDI(), n.dir.Hardware(), n.dir.podLogs(), n.dir.sysctl("")} {
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return err
		}
	}
	if err := spec.GPUs.Save(filepath.Join(n.dir.Hardware(), filepath.Base(gpu.SetFile))); err != nil {
		return err
	}
	if err := spec.GPUs.WriteFiles(filepath.Join(n.dir.Hardware(), filepath.Base(gpu.FilesDir))); err != nil {
		return err
	}
	// RFC 5737: queries of a pod that looks a name up lead nowhere.
	if err := os.WriteFile(n.dir.resolvConf(), []byte("nameserver 192.0.2.1\n"), 0o644); err != nil {
		return err
	}
	// The Node authorizer knows a kubelet by this user and group.
	identity := plane.Identity{User: "system:node:" + spec.Name, Groups: []string{"system:nodes"}}
	if err := p.WriteKubeconfig(n.dir.kubeconfig(), "node-"+spec.Name, identity); err != nil {
		return err
	}
	serving, key, err := p.PKI.Issue("kubelet-"+spec.Name, plane.Identity{
		User: "system:node:" + spec.Name, Names: []string{spec.Name}, IPs: []net.IP{spec.Addr.AsSlice()},
	})
	if err != nil {
		return err
	}
	if err := writeJSON(n.dir.criConfig(), n.criConfig(spec, p)); err != nil {
		return err
	}
	if err := writeYAML(n.dir.kubeletConfig(), n.kubeletConfig(spec, p.PKI.CACert(), serving, key)); err != nil {
		return err
	}
	return writeJSON(n.dir.initConfig(), n.initConfig(spec))
}

func (n *Node) criConfig(spec Spec, p *plane.Plane) cri.Config {
	return cri.Config{
		Socket:     n.dir.criSocket(),
		StateDir:   n.dir.join("cri"),
		CommandDir: spec.CommandDir,
		Images:     spec.Images,
		APIHost:    p.Host.String(),
		APIPort:    p.Port,
		PodIP:      spec.Addr.String(),
		CDIDirs:    []string{"/run/cdi"},
		LogDir:     n.dir.podLogs(),
	}
}

// Start starts the node's first process, which does the rest.
func (n *Node) Start(spawner *process.Spawner, files ...*os.File) error {
	started, err := spawner.Start(process.Spec{
		Name: "node/" + n.Name, Path: n.program, Args: []string{InitCommand, "--config", n.dir.initConfig()},
		Dir: string(n.dir), LogFile: filepath.Join(n.dir.Log(), "node.log"), Isolated: true, Files: files,
	})
	if err != nil {
		return err
	}
	n.Process = started
	return nil
}

// Ended returns an error if the node's first process has ended.
func (n *Node) Ended() error {
	if n.Process == nil {
		return errors.New("not started")
	}
	select {
	case <-n.Process.Done():
		return n.Process.Failure()
	default:
		return nil
	}
}

// Dir is the node's folder.
func (n *Node) Dir() Dir { return n.dir }
