package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
)

// Factory makes what the verbs need of the world. Tests give their own.
type Factory interface {
	// Config is for the clients of the engine: kubeconfig as the flags say.
	Config() (*rest.Config, error)
	// Client reads and writes built-in kinds, in protobuf where it is served.
	Client() (kubernetes.Interface, error)
	Clock() clock.WithTicker
}

// Request rates of the client. client-go's own 5 a second would make a drain wait
// for itself rather than for the cluster; the server's priority and fairness guards
// it from more than this.
const (
	clientQPS   = 50
	clientBurst = 100
)

type kubeFactory struct {
	flags   *genericclioptions.ConfigFlags
	agent   string
	warning io.Writer
}

func newKubeFactory(agent string, warnings io.Writer) *kubeFactory {
	flags := genericclioptions.NewConfigFlags(true)
	// The tool works on nodes and on its own namespace. kubectl's --namespace would
	// be read as the latter and do nothing.
	flags.Namespace = nil
	return &kubeFactory{flags: flags, agent: agent, warning: warnings}
}

func (f *kubeFactory) addFlags(set *pflag.FlagSet) { f.flags.AddFlags(set) }

func (f *kubeFactory) Config() (*rest.Config, error) {
	if f.nowhere() {
		return nil, clientcmd.ErrEmptyConfig
	}
	config, err := f.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.UserAgent = f.agent
	config.QPS, config.Burst = clientQPS, clientBurst
	config.WarningHandler = rest.NewWarningWriter(f.warning, rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}

// nowhere says that nothing names a cluster. client-go would then ask localhost:8080,
// whose answer helps nobody.
func (f *kubeFactory) nowhere() bool {
	raw, err := f.flags.ToRawKubeConfigLoader().RawConfig()
	_, inside := os.LookupEnv("KUBERNETES_SERVICE_HOST")
	return err == nil && len(raw.Clusters) == 0 && *f.flags.APIServer == "" && !inside
}

func (f *kubeFactory) Client() (kubernetes.Interface, error) {
	config, err := f.Config()
	if err != nil {
		return nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return client, nil
}

func (f *kubeFactory) Clock() clock.WithTicker { return clock.RealClock{} }
