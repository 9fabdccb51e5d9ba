package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
)

// Factory makes what the verbs need of the world. Tests give their own.
type Factory interface {
	// Config is for the clients of the engine: kubeconfig as the flags say.
	Config() (*rest.Config, error)
	// Client reads and writes built-in kinds, in protobuf where it is served.
	Client() (kubernetes.Interface, error)
	// Dynamic reads the kinds of others.
	Dynamic() (dynamic.Interface, error)
	Clock() clock.WithTicker
	// PodNamespace is where a pod is looked for that is named without a namespace.
	PodNamespace() (string, error)
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

// addFlags adds kubectl's kubeconfig flags to the root, with what the shell may offer.
func (f *kubeFactory) addFlags(root *cobra.Command) {
	f.flags.AddFlags(root.PersistentFlags())
	offerFrom(root, "context", f.names(func(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Contexts)) }))
	offerFrom(root, "cluster", f.names(func(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Clusters)) }))
	offerFrom(root, "user", f.names(func(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.AuthInfos)) }))
	for _, name := range []string{"server", "token", "as", "as-group", "as-uid", "as-user-extra", "tls-server-name", "request-timeout"} {
		offer(root, name)
	}
}

// names offers names of the kubeconfig that the flags so far choose.
func (f *kubeFactory) names(of func(*clientcmdapi.Config) []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		raw, err := f.flags.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return of(&raw), cobra.ShellCompDirectiveNoFileComp
	}
}

func (f *kubeFactory) Config() (*rest.Config, error) {
	if f.nowhere() {
		return nil, noCluster()
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

// noCluster says why nothing names a cluster. A KUBECONFIG with a slip in it is told by
// name: client-go passes over files that are not there.
func noCluster() error {
	var gone []string
	for _, file := range filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)) {
		if _, err := os.Stat(file); file != "" && errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, file)
		}
	}
	if len(gone) == 0 {
		return clientcmd.ErrEmptyConfig
	}
	return fmt.Errorf("no cluster to talk to: KUBECONFIG names %s, which does not exist: correct it, or give --kubeconfig", strings.Join(gone, ", "))
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

func (f *kubeFactory) Dynamic() (dynamic.Interface, error) {
	config, err := f.Config()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return client, nil
}

func (f *kubeFactory) PodNamespace() (string, error) {
	namespace, _, err := f.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("kubeconfig: %w", err)
	}
	return namespace, nil
}

func (f *kubeFactory) Clock() clock.WithTicker { return clock.RealClock{} }
