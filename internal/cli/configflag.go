package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dramigrate/dramigrate/internal/config"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// configFlag is the intent file of a verb, and the flags that override it.
type configFlag struct {
	config string
	set    *pflag.FlagSet
}

func (f *configFlag) addConfigFlag(cmd *cobra.Command) {
	f.set = cmd.Flags()
	f.set.StringVar(&f.config, "config", "", "intent file (kind "+config.Kind+") with pools and settings; flags override it")
	offerFiles(cmd, "config", cobra.ShellCompDirectiveFilterFileExt, "yaml", "yml")
}

// addIntentFlags adds the flags of what a person has decided: by file, and check by check.
func (f *planFlags) addIntentFlags(cmd *cobra.Command) {
	f.skips.addFlags(cmd)
	f.addConfigFlag(cmd)
}

// configure puts what the intent file says where the command line says nothing.
func (f *planFlags) configure(a *app, op plan.Operation, pool *poolFlags) error {
	c, err := f.load(a)
	if c == nil || err != nil {
		return err
	}
	f.skipped = c.Skips
	switch op {
	case plan.Prepare:
		fill(f.set, "driver-manifests", &f.manifests, c.Driver.Manifests)
		fill(f.set, "plugin-rollout", &f.rollout, string(c.PluginRollout))
	case plan.Migrate, plan.Rollback:
		if f.intent, err = f.choosePool(c, pool); err != nil {
			return err
		}
		f.poolSettings(c)
		if op == plan.Rollback {
			f.into = "" // the nodes tell where the workloads went
		}
		f.intoSelector = c.ForPool(f.into).Selector
	}
	return nil
}

// load reads the intent file and puts what it says of the root's flags where the command
// line says nothing. Without a file there is nothing.
func (f *configFlag) load(a *app) (*config.Config, error) {
	if f.config == "" {
		return nil, nil
	}
	c, err := loadConfig(f.config)
	if err != nil {
		return nil, err
	}
	fill(f.set, "tool-namespace", &a.namespace, c.ToolNamespace)
	fill(f.set, "resource", &a.resource, c.Resource)
	fill(f.set, "driver", &a.driver, c.Driver.Name)
	if given := f.set.Lookup("driver"); c.Driver.Name == "" && (given == nil || !given.Changed) {
		return c, a.vendorDriver() // the file may have named another resource
	}
	return c, nil
}

// configure puts what the intent file says of a pool, and of helper pods, where the
// command line says nothing. Nodes that were named without a pool stay without one.
func (f *probeFlags) configure(a *app, pool *poolFlags, nodes []string) error {
	c, err := f.load(a)
	if c == nil || err != nil {
		return err
	}
	f.skipped = c.Skips
	if pool.given() || len(nodes) == 0 {
		intent, err := f.choosePool(c, pool)
		if err != nil {
			return err
		}
		f.skipped = intent.Skips
	}
	f.podWay.configure(f.set, c.Helper)
	return nil
}

// configure puts what the intent file says of helper pods where the command line says
// nothing.
func (w *podWay) configure(set *pflag.FlagSet, helper config.Helper) {
	if w.image == "" { // neither the flag nor the variable
		w.image = helper.Image
	}
	fill(set, "helper-pull-secret", &w.pullSecret, helper.PullSecret)
	if !reachGiven(set) { // either flag stands for both
		w.runtimeClass, w.driverRoot = helper.RuntimeClass, helper.DriverRoot
	}
}

func loadConfig(file string) (*config.Config, error) {
	c, err := config.Load(file)
	var contents *config.Error
	switch {
	case errors.As(err, &contents):
		return nil, usageError("--config %w", err)
	case err != nil:
		return nil, fmt.Errorf("--config: %w", err)
	}
	return c, nil
}

// fill sets target to the file's value, if the file has one and no flag was given.
func fill[T comparable](set *pflag.FlagSet, flag string, target *T, value T) {
	var none T
	if given := set.Lookup(flag); value != none && (given == nil || !given.Changed) {
		*target = value
	}
}

// fillFrom is fill for values whose zero means something.
func fillFrom[T comparable](set *pflag.FlagSet, flag string, target, value *T) {
	if given := set.Lookup(flag); value != nil && (given == nil || !given.Changed) {
		*target = *value
	}
}

// choosePool finds the pool in the file. One pool needs no name.
func (f *configFlag) choosePool(c *config.Config, pool *poolFlags) (config.Pool, error) {
	names := c.PoolNames()
	list := strings.Join(names, ", ")
	if !pool.given() {
		switch len(names) {
		case 0: // the caller asks for one
			return config.Pool{}, nil
		case 1:
			pool.arg = names[0]
		default:
			return config.Pool{}, usageError("name one of the pools of %s: %s", f.config, list)
		}
	}
	name := pool.arg
	if pool.selector != "" {
		name = pool.name
	}
	if len(names) > 0 && !slices.Contains(names, name) {
		if name == "" {
			return config.Pool{}, usageError("--selector needs --pool beside --config %s: one of %s", f.config, list)
		}
		return config.Pool{}, usageError("pool %q is not in %s, which names %s", name, f.config, list)
	}
	intent := c.ForPool(name)
	if intent.Selector != "" && pool.selector == "" {
		*pool = poolFlags{selector: intent.Selector, name: name}
	}
	return intent, nil
}

func (f *planFlags) poolSettings(c *config.Config) {
	f.skipped = f.intent.Skips
	p := f.intent
	fill(f.set, "max-unavailable", &f.maxUnavailable, string(p.Batches.MaxUnavailable))
	fill(f.set, "drain", &f.drain, string(p.Drain.Evict))
	fillFrom(f.set, "delete-emptydir-data", &f.deleteEmptyDir, p.Drain.DeleteEmptyDirData)
	fillFrom(f.set, "evict-unmanaged", &f.evictUnmanaged, p.Drain.EvictUnmanaged)
	if p.Drain.Timeout != nil {
		fill(f.set, "drain-timeout", &f.drainTimeout, p.Drain.Timeout.Duration)
	}
	if p.Soak != nil {
		fillFrom(f.set, "soak", &f.soak, &p.Soak.Duration)
	}
	if p.KubeletGrace != nil {
		fill(f.set, "kubelet-grace", &f.kubeletGrace, p.KubeletGrace.Duration)
	}
	f.podWay.configure(f.set, c.Helper)
	f.class = c.Class.Name
	fill(f.set, "into", &f.into, p.Into)
}
