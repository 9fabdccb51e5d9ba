package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/config"
	"github.com/dramigrate/dramigrate/internal/plan"
)

func (f *planFlags) addConfigFlag(cmd *cobra.Command) {
	f.skips.addFlags(cmd)
	f.set = cmd.Flags()
	f.set.StringVar(&f.config, "config", "", "intent file (kind "+config.Kind+") with pools and settings; flags override it")
	offerFiles(cmd, "config", cobra.ShellCompDirectiveFilterFileExt, "yaml", "yml")
}

// configure puts what the intent file says where the command line says nothing.
func (f *planFlags) configure(a *app, op plan.Operation, pool *poolFlags) error {
	if f.config == "" {
		return nil
	}
	c, err := loadConfig(f.config)
	if err != nil {
		return err
	}
	fill(f, "tool-namespace", &a.namespace, c.ToolNamespace)
	fill(f, "resource", &a.resource, c.Resource)
	fill(f, "driver", &a.driver, c.Driver.Name)
	if given := f.set.Lookup("driver"); c.Driver.Name == "" && (given == nil || !given.Changed) {
		if err := a.vendorDriver(); err != nil { // the file may have named another resource
			return err
		}
	}
	f.skipped = c.Skips
	switch op {
	case plan.Prepare:
		fill(f, "driver-manifests", &f.manifests, c.Driver.Manifests)
		fill(f, "plugin-rollout", &f.rollout, string(c.PluginRollout))
	case plan.Migrate, plan.Rollback:
		if err := f.choosePool(c, pool); err != nil {
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
func fill[T comparable](f *planFlags, flag string, target *T, value T) {
	var none T
	if given := f.set.Lookup(flag); value != none && (given == nil || !given.Changed) {
		*target = value
	}
}

// fillFrom is fill for values whose zero means something.
func fillFrom[T comparable](f *planFlags, flag string, target, value *T) {
	if given := f.set.Lookup(flag); value != nil && (given == nil || !given.Changed) {
		*target = *value
	}
}

// choosePool finds the pool in the file. One pool needs no name.
func (f *planFlags) choosePool(c *config.Config, pool *poolFlags) error {
	names := c.PoolNames()
	list := strings.Join(names, ", ")
	if !pool.given() {
		switch len(names) {
		case 0: // the caller asks for one
			return nil
		case 1:
			pool.arg = names[0]
		default:
			return usageError("name one of the pools of %s: %s", f.config, list)
		}
	}
	name := pool.arg
	if pool.selector != "" {
		name = pool.name
	}
	if len(names) > 0 && !slices.Contains(names, name) {
		if name == "" {
			return usageError("--selector needs --pool beside --config %s: one of %s", f.config, list)
		}
		return usageError("pool %q is not in %s, which names %s", name, f.config, list)
	}
	f.intent = c.ForPool(name)
	if f.intent.Selector != "" && pool.selector == "" {
		*pool = poolFlags{selector: f.intent.Selector, name: name}
	}
	return nil
}

func (f *planFlags) poolSettings(c *config.Config) {
	f.skipped = f.intent.Skips
	p := f.intent
	fill(f, "max-unavailable", &f.maxUnavailable, string(p.Batches.MaxUnavailable))
	fill(f, "drain", &f.drain, string(p.Drain.Evict))
	fillFrom(f, "delete-emptydir-data", &f.deleteEmptyDir, p.Drain.DeleteEmptyDirData)
	fillFrom(f, "evict-unmanaged", &f.evictUnmanaged, p.Drain.EvictUnmanaged)
	if p.Drain.Timeout != nil {
		fill(f, "drain-timeout", &f.drainTimeout, p.Drain.Timeout.Duration)
	}
	if p.Soak != nil {
		fillFrom(f, "soak", &f.soak, &p.Soak.Duration)
	}
	if p.KubeletGrace != nil {
		fill(f, "kubelet-grace", &f.kubeletGrace, p.KubeletGrace.Duration)
	}
	if f.helperImage == "" { // neither the flag nor the variable
		f.helperImage = c.Helper.Image
	}
	fill(f, "helper-pull-secret", &f.pullSecret, c.Helper.PullSecret)
	if !reachGiven(f.set) { // either flag stands for both
		f.runtimeClass, f.driverRoot = c.Helper.RuntimeClass, c.Helper.DriverRoot
	}
	f.class = c.Class.Name
	fill(f, "into", &f.into, p.Into)
}
