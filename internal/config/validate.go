package config

import (
	"fmt"
	"path"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// validate looks at what the types cannot say. It runs on a document whose types are
// right.
func (d *decoder) validate(c *Config) {
	d.name("toolNamespace", c.ToolNamespace, validation.IsDNS1123Label)
	d.name("class.name", c.Class.Name, validation.IsDNS1123Subdomain)
	d.name("driver.name", c.Driver.Name, validation.IsDNS1123Subdomain)
	d.name("resource", c.Resource, validation.IsQualifiedName)
	d.name("helper.runtimeClass", c.Helper.RuntimeClass, validation.IsDNS1123Subdomain)
	d.reach(c.Helper)
	d.oneOf("pluginRollout", string(c.PluginRollout), string(RollingUpdate), string(OnDelete))
	d.settings("", c.PoolSettings)
	d.batches("batches", c.Batches)
	seen := map[string]int{}
	for i, p := range c.Pools {
		field := fmt.Sprintf("pools[%d]", i)
		if p.Name == "" {
			d.refuse(field, "has no name")
		} else if before, twice := seen[p.Name]; twice {
			d.refuse(field+".name", "%q is the name of pools[%d] already", p.Name, before)
		} else {
			seen[p.Name] = i
		}
		if _, err := labels.Parse(p.Selector); err != nil {
			d.refuse(field+".selector", "%v", err)
		}
		if p.Into != "" && p.Into == p.Name {
			d.refuse(field+".into", "%q is the pool that the workloads leave", p.Into)
		}
		d.settings(field+".", p.PoolSettings)
		d.batches(field+".batches", p.Batches.Batches)
		d.explicit(field+".batches", p.Batches)
	}
}

// refuse adds an error at a field, or where it is missing at what should hold it.
func (d *decoder) refuse(field, reason string, args ...any) {
	n, ok := d.at[field]
	for at := field; !ok && at != ""; n, ok = d.at[at] {
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	if n == nil {
		n = &yaml.Node{Line: 1, Column: 1}
	}
	d.fail(n, field, reason, args...)
}

// name checks the name of an object of Kubernetes, if it is given.
func (d *decoder) name(field, value string, rule func(string) []string) {
	n, given := d.at[field]
	if !given || n.Tag == "!!null" {
		return
	}
	if wrong := rule(value); len(wrong) > 0 {
		d.refuse(field, "%q: %s", shortened(value), strings.Join(wrong, "; "))
	}
}

// reach is how the helper pods get at GPUs.
func (d *decoder) reach(h Helper) {
	switch {
	case h.DriverRoot == "":
	case !path.IsAbs(h.DriverRoot):
		d.refuse("helper.driverRoot", "%q: must be an absolute path of the node", shortened(h.DriverRoot))
	case h.RuntimeClass != "":
		d.refuse("helper.driverRoot", "has no place beside runtimeClass, which hands out the GPUs already; leave one of them out")
	}
}

func (d *decoder) oneOf(field, value string, allowed ...string) {
	for _, a := range append(allowed, "") {
		if value == a {
			return
		}
	}
	d.refuse(field, "%q: must be %s", shortened(value), strings.Join(allowed, " or "))
}

func (d *decoder) settings(prefix string, s PoolSettings) {
	for i := range s.Skips {
		if err := checks.ValidateSkips(s.Skips[i : i+1]); err != nil {
			d.refuse(fmt.Sprintf("%sskips[%d]", prefix, i), "%v", err)
		}
	}
	d.oneOf(prefix+"drain.evict", string(s.Drain.Evict), string(EvictGPU), string(EvictAll))
	d.atLeast(prefix+"drain.timeout", s.Drain.Timeout, 1)
	d.atLeast(prefix+"soak", s.Soak, 0)
	d.atLeast(prefix+"kubeletGrace", s.KubeletGrace, 1)
	for name, value := range fields(reflect.ValueOf(s.Deadlines)) {
		limit := value.Interface().(metav1.Duration)
		if n, given := d.at[prefix+"deadlines."+name]; given && n.Tag != "!!null" {
			d.atLeast(prefix+"deadlines."+name, &limit, time.Second)
		}
	}
}

func (d *decoder) atLeast(field string, value *metav1.Duration, least time.Duration) {
	switch {
	case value == nil || value.Duration >= least:
	case least == 0:
		d.refuse(field, "%s: must not be negative", value.Duration)
	case least == 1:
		d.refuse(field, "%s: must be more than 0", value.Duration)
	default:
		d.refuse(field, "%s: must be at least %s", value.Duration, least)
	}
}

func (d *decoder) batches(field string, b Batches) {
	if b.MaxUnavailable != "" {
		if _, err := plan.MaxUnavailable(string(b.MaxUnavailable), 1); err != nil {
			d.refuse(field+".maxUnavailable", "%v", err)
		}
	}
	if n, given := d.at[field+".first"]; given && n.Tag != "!!null" && b.First < 1 {
		d.refuse(field+".first", "%d: must be at least 1", b.First)
	}
}

func (d *decoder) explicit(field string, b PoolBatches) {
	if len(b.Explicit) > 0 && b.First > 0 {
		d.refuse(field+".first", "has no effect beside explicit batches; leave it out")
	}
	seen := map[string]int{}
	for i, batch := range b.Explicit {
		at := fmt.Sprintf("%s.explicit[%d]", field, i)
		if len(batch.Nodes) == 0 {
			d.refuse(at, "has no nodes")
		}
		for j, node := range batch.Nodes {
			here := fmt.Sprintf("%s.nodes[%d]", at, j)
			if before, twice := seen[node]; twice {
				d.refuse(here, "node %q is in explicit[%d] already", shortened(node), before)
			} else if wrong := validation.IsDNS1123Subdomain(node); len(wrong) > 0 {
				d.refuse(here, "node %q: %s", shortened(node), strings.Join(wrong, "; "))
			}
			seen[node] = i
		}
	}
}
