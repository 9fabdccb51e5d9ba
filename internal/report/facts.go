package report

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/words"
)

// fact is one thing that a plan found or is made with.
type fact struct {
	name, value string
	// caution marks what a reviewer must not overlook, minor what she may.
	caution, minor bool
}

// facts are the same in every view, in this order.
func facts(p *plan.Plan) []fact {
	plugin := objects(p.Plugins)
	if p.Into != nil {
		plugin = "left as it is, on the old nodes"
	}
	out := []fact{{name: "plugin", value: plugin + "; resources " + strings.Join(p.Resources, ", ")}}
	driver := objects(p.Driver.DaemonSets)
	switch {
	case p.Driver.Source == plan.SourceInstalled && len(p.Driver.DaemonSets) == 0:
		driver = "installed, on no node of the plan"
	case p.Driver.Source != "":
		driver += "; " + p.Driver.Source
	}
	out = append(out,
		fact{name: "driver", value: p.Driver.Name + ": " + driver},
		fact{name: "gate", value: p.Gate.Name + ": " + p.Gate.Why})
	if p.Class != nil {
		how := "is there already and is used"
		if p.Class.Action == plan.Create {
			how = "is created by the first node that needs it"
		}
		out = append(out, fact{name: "class", value: fmt.Sprintf("DeviceClass %s %s", p.Class.Name, how)})
	}
	if p.Claims != nil {
		out = append(out, fact{name: "claims", value: fmt.Sprintf("%s added by the pods that run now, at most %d: one for each pod with %s",
			words.Plural(p.Claims.Now, "ResourceClaim", "ResourceClaims"), p.Claims.AtMost, p.Resource)})
	}
	if p.Source != nil {
		out = append(out, fact{name: "source", value: p.Source.Note, caution: true})
	}
	return append(out,
		fact{name: "settings", value: settings(p)},
		fact{name: "cluster", value: fmt.Sprintf("%s, Kubernetes %s", p.Cluster.UID, p.Cluster.ServerVersion), minor: true},
		fact{name: "tool", value: "dramigrate " + p.ToolVersion, minor: true},
		fact{name: "digest", value: p.Digest, minor: true},
		fact{name: "run", value: howToRun(p), minor: true})
}

// howToRun names the commands for a plan that was saved, there and back.
func howToRun(p *plan.Plan) string {
	const same = ", if the cluster still asks for the same"
	switch {
	case p.Operation == plan.Migrate:
		return "`dramigrate apply FILE`" + same + "; back by " + words.Command("rollback", p.Pool.Name)
	case p.Operation == plan.Rollback:
		return "`dramigrate rollback FILE`" + same + "; there again by `" + p.Command() + "`"
	case p.Operation == plan.Unprepare:
		return "`dramigrate unprepare FILE`" + same
	case p.Driver.Source != "" && p.Driver.Source != plan.SourceInstalled:
		return "`dramigrate prepare FILE --driver-manifests DIR` with the same manifests" + same + "; back by `dramigrate unprepare`"
	default:
		return "`dramigrate prepare FILE`" + same + "; back by `dramigrate unprepare`"
	}
}

// facts say what the plan found and is made with.
func (d *page) facts(p *plan.Plan) {
	d.heading("Made with")
	for _, f := range facts(p) {
		style := lipgloss.NewStyle()
		switch {
		case f.caution:
			style = d.theme.warn
		case f.minor:
			style = d.theme.dim
		}
		d.para(fmt.Sprintf("  %-8s  ", f.name), f.value, style)
	}
}

func settings(p *plan.Plan) string {
	s := p.Settings
	var parts []string
	add := func(name string, value any) { parts = append(parts, fmt.Sprintf("%s %v", name, value)) }
	if p.Pool != nil {
		add("max-unavailable", s.MaxUnavailable)
		if s.FirstBatch > 0 {
			add("first batch", s.FirstBatch)
		}
		if len(s.Batches) > 0 {
			add("batches by hand", len(s.Batches))
		}
		add("drain", s.Drain)
		add("drain-timeout", s.DrainTimeout.Duration)
		if s.DeleteEmptyDir {
			parts = append(parts, "emptyDir data is DELETED")
		}
		if s.EvictUnmanaged {
			parts = append(parts, "pods without a controller are EVICTED")
		}
		if p.Operation == plan.Migrate {
			add("soak", s.Soak.Duration)
			if p.Into == nil {
				add("kubelet-grace", s.KubeletGrace.Duration)
			}
		}
		add("helper-image", orDash(s.HelperImage))
		if s.RuntimeClass != "" {
			add("runtime-class", s.RuntimeClass)
		}
		if s.DriverRoot != "" {
			add("driver-root", s.DriverRoot)
		}
	} else if s.PluginRollout != "" {
		add("plugin-rollout", s.PluginRollout)
		if s.EditOwned {
			parts = append(parts, "objects that others own are EDITED")
		}
		if s.WaitForOwner.Duration > 0 {
			add("wait-for-owner", s.WaitForOwner.Duration)
		}
	}
	add("tool-namespace", p.Namespace)
	return strings.Join(parts, ", ")
}

func objects(list []plan.Object) string {
	if len(list) == 0 {
		return "none found"
	}
	var out []string
	for _, o := range list {
		out = append(out, object(o))
	}
	return strings.Join(out, ", ")
}

func object(o plan.Object) string {
	name := strings.ToLower(o.Kind) + "/"
	if o.Namespace != "" {
		name += o.Namespace + "/"
	}
	return name + o.Name
}
