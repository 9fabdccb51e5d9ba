package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dramigrate/dramigrate/test/cluster/internal/build"
	"github.com/dramigrate/dramigrate/test/cluster/internal/loopback"
	"github.com/dramigrate/dramigrate/test/cluster/internal/process"
)

// ServiceCIDR is where cluster IPs come from. None of them is routed.
const ServiceCIDR = "10.96.0.0/16"

// Plane is a control plane that has been started.
type Plane struct {
	PKI *PKI
	// Host and Port are where the API server listens.
	Host netip.Addr
	Port int
	// Processes are the programs in the order in which they were started.
	Processes []*process.Process
	// Flags are added to those of API server, controller manager and scheduler.
	Flags []string
	// OnStart, if set, is called after each start, for instance to record it.
	OnStart func() error

	dir     string
	bin     build.Binaries
	spawner *process.Spawner
	block   *loopback.Block
}

// New prepares a control plane in dir: folders, certificates, ports.
func New(dir string, bin build.Binaries, block *loopback.Block, spawner *process.Spawner) (*Plane, error) {
	for _, sub := range []string{"etcd", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("control plane: %w", err)
		}
	}
	pki, err := NewPKI(filepath.Join(dir, "pki"))
	if err != nil {
		return nil, err
	}
	port, err := loopback.Port(block.Plane(), loopback.APIPort)
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	p := &Plane{PKI: pki, Host: block.Plane(), Port: port, dir: dir, bin: bin, spawner: spawner, block: block}
	// system:masters is bound to cluster-admin in the API server's code itself.
	admin := Identity{User: "kubernetes-admin", Groups: []string{"system:masters"}}
	if err := p.WriteKubeconfig(p.AdminKubeconfig(), "admin", admin); err != nil {
		return nil, err
	}
	return p, nil
}

// URL is the API server's address.
func (p *Plane) URL() string {
	return "https://" + net.JoinHostPort(p.Host.String(), strconv.Itoa(p.Port))
}

// AdminKubeconfig is the path of the administrator's kubeconfig.
func (p *Plane) AdminKubeconfig() string { return filepath.Join(p.dir, "admin.kubeconfig") }

// Start starts etcd and the API server, and when that is ready the other two:
// they end if the roles that they need are not there yet.
func (p *Plane) Start(ctx context.Context) error {
	etcdURL, err := p.startEtcd()
	if err != nil {
		return err
	}
	if err := p.startAPIServer(etcdURL); err != nil {
		return err
	}
	if err := p.waitReady(ctx); err != nil {
		return err
	}
	if err := p.startControllerManager(); err != nil {
		return err
	}
	return p.startScheduler()
}

func (p *Plane) start(name, path string, args ...string) error {
	spec := process.Spec{
		Name: name, Path: path, Args: args, Dir: p.dir,
		LogFile: filepath.Join(p.dir, "log", name+".log"),
	}
	if lock := p.block.Lock(); lock != nil {
		// Whoever runs keeps the cluster's addresses reserved.
		spec.Files = []*os.File{lock.File}
	}
	started, err := p.spawner.Start(spec)
	if err != nil {
		return err
	}
	p.Processes = append(p.Processes, started)
	if p.OnStart == nil {
		return nil
	}
	return p.OnStart()
}

// readyTimeout covers a first start on a machine that is busy with a build.
const readyTimeout = 3 * time.Minute

// waitReady asks /readyz, for which there is no watch, until the API server
// says yes or one of the programs has ended.
func (p *Plane) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready within %s", readyTimeout))
	defer cancel()
	config, err := p.RESTConfig()
	if err != nil {
		return err
	}
	config.Timeout = 5 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("API server: %w", err)
	}
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.2, Steps: 1 << 30, Cap: time.Second}
	var last error
	err = backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if err := p.ended(); err != nil {
			return false, err
		}
		_, last = client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return last == nil, nil
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("control plane %s: %w", p.URL(), errors.Join(err, last))
	}
	return nil
}

// ended returns an error that names a program which no longer runs.
func (p *Plane) ended() error {
	for _, proc := range p.Processes {
		select {
		case <-proc.Done():
			return proc.Failure()
		default:
		}
	}
	return nil
}

// RESTConfig is the administrator's client configuration, without client-side
// rate limits: priority and fairness protect the server.
func (p *Plane) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.AdminKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// Kill ends all programs at once. The API server would take most of a minute to
// end by itself, and nothing of a test cluster's data is kept.
func (p *Plane) Kill() error {
	var refs []process.Ref
	// Clients first, so that their logs do not end in refused connections.
	for _, proc := range slices.Backward(p.Processes) {
		refs = append(refs, proc.Ref)
	}
	return process.Kill(refs...)
}
