package plane

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig at path with a new client certificate for
// the identity. Everything is embedded, so that the file can be copied.
func (p *Plane) WriteKubeconfig(path, name string, id Identity) error {
	certFile, keyFile, err := p.PKI.Issue(name, id)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	ca, err := os.ReadFile(p.PKI.CACert())
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	clientCert, err := os.ReadFile(certFile)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	clientKey, err := os.ReadFile(keyFile)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	const cluster = "dramigrate-test"
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: p.URL(), CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: clientCert, ClientKeyData: clientKey}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: name}
	config.CurrentContext = cluster
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return nil
}
