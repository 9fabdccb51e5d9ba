package plane

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/dramigrate/dramigrate/test/cluster/internal/loopback"
)

// serviceIP is the address of the service `kubernetes`: the first of ServiceCIDR.
const serviceIP = "10.96.0.1"

func (p *Plane) startEtcd() (string, error) {
	clients, err := loopback.Port(p.Host, 2379)
	if err != nil {
		return "", fmt.Errorf("etcd: %w", err)
	}
	peers, err := loopback.Port(p.Host, 2380)
	if err != nil {
		return "", fmt.Errorf("etcd: %w", err)
	}
	certFile, keyFile, err := p.PKI.Issue("etcd", Identity{User: "etcd", IPs: []net.IP{p.Host.AsSlice()}})
	if err != nil {
		return "", err
	}
	client := "https://" + net.JoinHostPort(p.Host.String(), strconv.Itoa(clients))
	peer := "https://" + net.JoinHostPort(p.Host.String(), strconv.Itoa(peers))
	return client, p.start("etcd", p.bin.Etcd,
		"--name=etcd",
		"--data-dir="+filepath.Join(p.dir, "etcd"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=etcd="+peer,
		"--client-cert-auth", "--trusted-ca-file="+p.PKI.CACert(), "--cert-file="+certFile, "--key-file="+keyFile,
		"--peer-client-cert-auth", "--peer-trusted-ca-file="+p.PKI.CACert(), "--peer-cert-file="+certFile, "--peer-key-file="+keyFile,
		// A test cluster does not outlive its machine, so nothing need reach the disk.
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
}

func (p *Plane) startAPIServer(etcdURL string) error {
	serving, servingKey, err := p.PKI.Issue("apiserver", Identity{
		User:  "kube-apiserver",
		IPs:   []net.IP{p.Host.AsSlice(), net.IPv4(127, 0, 0, 1), net.ParseIP(serviceIP)},
		Names: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
	})
	if err != nil {
		return err
	}
	etcdCert, etcdKey, err := p.PKI.Issue("apiserver-etcd", Identity{User: "kube-apiserver"})
	if err != nil {
		return err
	}
	kubeletCert, kubeletKey, err := p.PKI.Issue("apiserver-kubelet", Identity{User: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}})
	if err != nil {
		return err
	}
	const issuer = "https://kubernetes.default.svc.cluster.local"
	return p.startKube("kube-apiserver", p.bin.APIServer,
		"--bind-address="+p.Host.String(), "--secure-port="+strconv.Itoa(p.Port),
		// A loopback address cannot be advertised; this one (RFC 5737) leads
		// nowhere, and without a reconciler no Endpoints name it.
		"--advertise-address=192.0.2.2", "--endpoint-reconciler-type=none",
		"--etcd-servers="+etcdURL, "--etcd-cafile="+p.PKI.CACert(), "--etcd-certfile="+etcdCert, "--etcd-keyfile="+etcdKey,
		"--tls-cert-file="+serving, "--tls-private-key-file="+servingKey,
		"--client-ca-file="+p.PKI.CACert(),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-cluster-ip-range="+ServiceCIDR,
		"--service-account-issuer="+issuer,
		"--service-account-signing-key-file="+p.PKI.serviceAccountKey(),
		"--service-account-key-file="+p.PKI.serviceAccountPublic(),
		"--kubelet-certificate-authority="+p.PKI.CACert(),
		"--kubelet-client-certificate="+kubeletCert, "--kubelet-client-key="+kubeletKey,
		// Node names are in no DNS.
		"--kubelet-preferred-address-types=InternalIP",
	)
}

func (p *Plane) startControllerManager() error {
	kubeconfig := filepath.Join(p.dir, "kube-controller-manager.kubeconfig")
	if err := p.WriteKubeconfig(kubeconfig, "kube-controller-manager", Identity{User: "system:kube-controller-manager"}); err != nil {
		return err
	}
	port, err := loopback.Port(p.Host, 10257)
	if err != nil {
		return fmt.Errorf("controller manager: %w", err)
	}
	return p.startKube("kube-controller-manager", p.bin.ControllerManager,
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address="+p.Host.String(), "--secure-port="+strconv.Itoa(port),
		"--leader-elect=false",
		// The defaults (20 and 30) make thousands of simulated pods take minutes.
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+p.PKI.serviceAccountKey(),
		"--root-ca-file="+p.PKI.CACert(),
		"--cluster-signing-cert-file="+p.PKI.CACert(), "--cluster-signing-key-file="+p.PKI.CAKey(),
		"--service-cluster-ip-range="+ServiceCIDR,
		"--flex-volume-plugin-dir="+filepath.Join(p.dir, "volume-plugins"),
	)
}

func (p *Plane) startScheduler() error {
	kubeconfig := filepath.Join(p.dir, "kube-scheduler.kubeconfig")
	if err := p.WriteKubeconfig(kubeconfig, "kube-scheduler", Identity{User: "system:kube-scheduler"}); err != nil {
		return err
	}
	port, err := loopback.Port(p.Host, 10259)
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	return p.startKube("kube-scheduler", p.bin.Scheduler,
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address="+p.Host.String(), "--secure-port="+strconv.Itoa(port),
		"--leader-elect=false",
		"--kube-api-qps=500", "--kube-api-burst=1000",
	)
}

// startKube starts one of the programs that take the flags of all.
func (p *Plane) startKube(name, path string, args ...string) error {
	return p.start(name, path, append(args, p.Flags...)...)
}
