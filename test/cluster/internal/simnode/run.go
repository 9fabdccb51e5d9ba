package simnode

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/test/cluster/internal/deviceplugin"
)

const (
	// workers decide for nodes at the same time; each is mostly waiting for the API.
	workers = 16
	// qps and burst let hundreds of nodes register and thousands of pods start
	// without the client holding them up.
	qps   = 500
	burst = 1000
)

// Run simulates the nodes of a config file until ctx ends. The Node objects stay.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", "", "file that describes the nodes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := LoadConfig(*path)
	if err != nil {
		return err
	}
	rest, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err != nil {
		return fmt.Errorf("simulated nodes: API access: %w", err)
	}
	rest.QPS, rest.Burst = qps, burst
	rest.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("simulated nodes: API access: %w", err)
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	if err := simulate(ctx, config, client, clock.RealClock{}, log); err != nil && ctx.Err() == nil {
		return fmt.Errorf("simulated nodes: %w", err)
	}
	return nil
}

// simulate registers all nodes and then lives for them until ctx ends.
func simulate(ctx context.Context, config Config, client kubernetes.Interface, clk clock.WithTicker, log *slog.Logger) error {
	c := newController(client, clk, log)
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	version := config.KubeletVersion
	if version == "" {
		server, err := client.Discovery().ServerVersion()
		if err != nil {
			return fmt.Errorf("version of the API server: %w", err)
		}
		version = server.GitVersion
	}
	var nodes []*corev1.Node
	for _, n := range config.Nodes {
		node, err := c.register(ctx, n, version)
		if err != nil {
			return err
		}
		nodes = append(nodes, node)
		_, registered := node.Status.Capacity[deviceplugin.ResourceName]
		c.nodes[n.Name] = &simulated{
			config:  n,
			machine: newMachine(len(n.GPUs.GPUs), config.timings(), registered, clk.Now()),
		}
	}
	factory, err := c.inform()
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown() // waits for the informers, which end with ctx
	defer cancel()
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return errors.Join(fmt.Errorf("%v: the cache did not fill", kind), ctx.Err())
		}
	}
	for _, node := range nodes {
		running.Go(func() { c.heartbeat(ctx, node) })
		c.queue.Add(node.Name)
	}
	for range workers {
		running.Go(func() { c.work(ctx) })
	}
	log.Info("simulating", "nodes", len(nodes))
	<-ctx.Done()
	c.queue.ShutDown()
	return ctx.Err()
}

func newController(client kubernetes.Interface, clk clock.WithTicker, log *slog.Logger) *controller {
	return &controller{
		client: client,
		clock:  clk,
		log:    log,
		nodes:  map[string]*simulated{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[string](),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "simulated-nodes", Clock: clk},
		),
	}
}

// inform connects pods, nodes and slices with the queue.
func (c *controller) inform() (informers.SharedInformerFactory, error) {
	factory := informers.NewSharedInformerFactory(c.client, resyncNever)
	pods := factory.Core().V1().Pods().Informer()
	nodes := factory.Core().V1().Nodes().Informer()
	slices := factory.Resource().V1().ResourceSlices().Informer()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    c.changed,
		UpdateFunc: func(_, object any) { c.changed(object) },
		DeleteFunc: c.changed,
	}
	for _, informer := range []cache.SharedIndexInformer{pods, nodes, slices} {
		if err := informer.AddIndexers(cache.Indexers{byNode: c.index}); err != nil {
			return nil, err
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	c.pods, c.nodeList, c.slices = pods.GetIndexer(), nodes.GetStore(), slices.GetIndexer()
	return factory, nil
}
