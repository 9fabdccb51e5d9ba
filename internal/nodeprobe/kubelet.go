package nodeprobe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// DefaultSocket is where every kubelet serves its PodResources API, as root in a
// folder of root's (pkg/kubelet/kubelet.go, v1.37.2).
const DefaultSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"

// maxMessage bounds an answer, in bytes. The kubelet's own clients take as much: a
// node with hundreds of CPUs and pods is above gRPC's default of 4 MiB.
const maxMessage = 16 << 20

// retryRateLimit lets gRPC repeat a call, with back-off, that the kubelet turned
// away because all of the API's clients together are over 100 calls a second
// (pkg/kubelet/apis/podresources/constants.go, v1.37.2).
const retryRateLimit = `{"methodConfig": [{
	"name": [{"service": "v1.PodResourcesLister"}],
	"retryPolicy": {
		"maxAttempts": 5,
		"initialBackoff": "0.2s",
		"maxBackoff": "2s",
		"backoffMultiplier": 2,
		"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]
	}
}]}`

// kubelet is a connection to one PodResources socket.
type kubelet struct {
	podresources.PodResourcesListerClient
	conn   *grpc.ClientConn
	socket string

	mu      sync.Mutex
	dialErr error // of the last attempt; gRPC hands it on as text only
}

// connect prepares the connection; the socket is opened by the first call.
func connect(socket string) (*kubelet, error) {
	k := &kubelet{socket: socket}
	conn, err := grpc.NewClient("passthrough:///kubelet",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(k.dial),
		grpc.WithDefaultServiceConfig(retryRateLimit),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("kubelet socket %s: %w", socket, err)
	}
	k.conn = conn
	k.PodResourcesListerClient = podresources.NewPodResourcesListerClient(conn)
	return k, nil
}

func (k *kubelet) close() error { return k.conn.Close() }

func (k *kubelet) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", k.socket)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dialErr = err
	return conn, err
}

// reason says in one line why a call failed and what to look at.
func (k *kubelet) reason(err error, timeout time.Duration) string {
	code := status.Code(err)
	k.mu.Lock()
	dialErr := k.dialErr
	k.mu.Unlock()
	switch {
	case code == codes.DeadlineExceeded:
		return fmt.Sprintf("the kubelet did not answer within %s", timeout)
	case code == codes.Unavailable && errors.Is(dialErr, fs.ErrNotExist):
		return fmt.Sprintf("%v: the kubelet is not running, or its folder is not mounted here", dialErr)
	case code == codes.Unavailable && errors.Is(dialErr, fs.ErrPermission):
		return fmt.Sprintf("%v: the socket is root's, and SELinux may keep a container from it", dialErr)
	case code == codes.Unavailable && dialErr != nil:
		return dialErr.Error()
	case code == codes.Unimplemented:
		return "the kubelet does not serve this call of the PodResources API v1: " + status.Convert(err).Message()
	default:
		return fmt.Sprintf("the kubelet answered %s: %s", code, status.Convert(err).Message())
	}
}
