// Package plane runs a cluster's control plane: etcd, the API server, the
// controller manager and the scheduler, with a certificate authority of its own.
package plane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity of the certificates: longer than any cluster for tests lives.
const validity = 365 * 24 * time.Hour

// PKI is a cluster's certificate authority, kept in a folder.
type PKI struct {
	dir string
	ca  *x509.Certificate
	key crypto.Signer
}

// Identity is who a certificate speaks for.
type Identity struct {
	// User and Groups are the subject's common name and organizations.
	User   string
	Groups []string
	// IPs and Names make it a server's certificate as well as a client's.
	IPs   []net.IP
	Names []string
}

// NewPKI makes a certificate authority and the key pair that signs service
// account tokens in dir.
func NewPKI(dir string) (*PKI, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "dramigrate-test-cluster"}, key)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	p := &PKI{dir: dir, ca: ca, key: key}
	if err := writePair(p.CACert(), p.CAKey(), ca.Raw, key); err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	if err := p.writeServiceAccountKeys(); err != nil {
		return nil, fmt.Errorf("service account keys: %w", err)
	}
	return p, nil
}

// CACert is the path of the authority's certificate.
func (p *PKI) CACert() string { return filepath.Join(p.dir, "ca.crt") }

// CAKey is the path of the authority's key.
func (p *PKI) CAKey() string { return filepath.Join(p.dir, "ca.key") }

func (p *PKI) serviceAccountKey() string    { return filepath.Join(p.dir, "sa.key") }
func (p *PKI) serviceAccountPublic() string { return filepath.Join(p.dir, "sa.pub") }

func (p *PKI) writeServiceAccountKeys() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.serviceAccountKey(), private, 0o600); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: public})
	return os.WriteFile(p.serviceAccountPublic(), block, 0o644)
}

// Issue writes <name>.crt and <name>.key for the identity and returns their paths.
func (p *PKI) Issue(name string, id Identity) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(p.dir, name+".crt"), filepath.Join(p.dir, name+".key")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("certificate %s: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return "", "", fmt.Errorf("certificate %s: %w", name, err)
	}
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(id.IPs)+len(id.Names) > 0 {
		usage = append(usage, x509.ExtKeyUsageServerAuth)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.User, Organization: id.Groups},
		IPAddresses:  id.IPs,
		DNSNames:     id.Names,
		// A clock that is set back a little must not make a new cluster unusable.
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(validity),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: usage,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, p.ca, key.Public(), p.key)
	if err != nil {
		return "", "", fmt.Errorf("certificate %s: %w", name, err)
	}
	if err := writePair(certFile, keyFile, raw, key); err != nil {
		return "", "", fmt.Errorf("certificate %s: %w", name, err)
	}
	return certFile, keyFile, nil
}

func writePair(certFile, keyFile string, raw []byte, key crypto.PrivateKey) error {
	block := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw})
	if err := os.WriteFile(certFile, block, 0o644); err != nil {
		return err
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return os.WriteFile(keyFile, text, 0o600)
}
