package pending

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// wish is one thing that a pod asks for: an extended resource, or a request of a claim.
type wish struct {
	// what names it: "nvidia.com/gpu", or "request gpu of claim team/train".
	what string
	// resource is the extended resource; empty for a request of a claim.
	resource string
	// className is the class that would serve it; empty if no class carries the name.
	className string
	// class is nil if there is no such class.
	class  *resourcev1.DeviceClass
	others []resourcev1.DeviceClass
	// selectors are the request's own, beside those of the class.
	selectors   []resourcev1.DeviceSelector
	tolerations []resourcev1.DeviceToleration
	// need is the number of devices, at least 1.
	need int64
}

// wishes are what the pod asks for, each once.
func (e *exam) wishes() []wish {
	if e.asked == nil {
		e.asked = append(e.byName(), e.byClaim()...)
	}
	return e.asked
}

func (e *exam) byName() []wish {
	var out []wish
	seen := map[string]bool{}
	for _, r := range e.pod.Requests {
		name := string(r.Resource)
		if seen[name] || r.Count <= 0 {
			continue
		}
		seen[name] = true
		w := wish{what: name, resource: name, need: e.pod.DevicesNeeded(name)}
		if class, implicit := strings.CutPrefix(name, cluster.ImplicitResourcePrefix); implicit {
			w.className, w.class = class, e.class(class)
		} else if w.class, w.others = e.s.ClassFor(name); w.class != nil {
			w.className = w.class.Name
		}
		out = append(out, w)
	}
	return out
}

// byClaim are the requests of the pod's own claims that have no devices yet.
func (e *exam) byClaim() []wish {
	var out []wish
	for _, name := range e.pod.Claims {
		c := e.claims[e.pod.Namespace+"/"+name]
		if c == nil || c.Status.Allocation != nil {
			continue
		}
		for i := range c.Spec.Devices.Requests {
			r := &c.Spec.Devices.Requests[i]
			if r.Exactly == nil { // one of several: what keeps the first may not keep the others
				continue
			}
			out = append(out, wish{
				what:      fmt.Sprintf("request %s of claim %s/%s", r.Name, c.Namespace, c.Name),
				className: r.Exactly.DeviceClassName, class: e.class(r.Exactly.DeviceClassName),
				selectors: r.Exactly.Selectors, tolerations: r.Exactly.Tolerations, need: max(r.Exactly.Count, 1),
			})
		}
	}
	return out
}

// selector is a class that selects what the wish would be served with.
func (w wish) selector() *resourcev1.DeviceClass {
	if len(w.selectors) == 0 {
		return w.class
	}
	out := w.class.DeepCopy()
	out.Spec.Selectors = append(out.Spec.Selectors, w.selectors...)
	return out
}

// selectedBy is how messages name what selects.
func (w wish) selectedBy() string {
	if len(w.selectors) == 0 {
		return "deviceclass/" + w.className
	}
	return fmt.Sprintf("deviceclass/%s with the selectors of %s", w.className, w.what)
}
