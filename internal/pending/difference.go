package pending

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/parser"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// difference is how the device that comes nearest to what is wanted differs from it.
type difference struct {
	device device
	// says are the conditions that do not hold: `type is "mig", "gpu" is wanted`.
	says []string
	// elsewhere is true if the device is another driver's.
	elsewhere bool
}

// differ compares each device with each condition of the class's selectors. The class
// selects none of them; the second result is false if there is none to compare with.
func differ(class *resourcev1.DeviceClass, list []resourcev1.ResourceSlice) (difference, bool) {
	conditions := conditionsOf(class)
	held := make([]map[device]bool, len(conditions))
	for i, c := range conditions {
		held[i] = c.held(list)
	}
	var best difference
	found := false
	for i := range list {
		spec := &list[i].Spec
		for j := range spec.Devices {
			d := difference{device: device{spec.Driver, spec.Pool.Name, spec.Devices[j].Name}}
			for k, c := range conditions {
				if held[k] != nil && !held[k][d.device] {
					d.says = append(d.says, c.against(spec.Driver, &spec.Devices[j]))
					d.elsewhere = d.elsewhere || c.driver
				}
			}
			nearer := !found || best.elsewhere && !d.elsewhere || best.elsewhere == d.elsewhere && len(d.says) < len(best.says)
			if nearer {
				best, found = d, true
			}
		}
	}
	return best, found
}

// condition is one part of a selector; all of them have to hold.
type condition struct {
	text string
	// driver says that it is about the device's driver, by name.
	driver bool
	// attribute, domain and want are those of an attribute that has to have a value.
	attribute, domain, want string
}

// conditionsOf takes the selectors apart at each && that joins whole conditions. A
// selector that cannot be parsed is one condition.
func conditionsOf(class *resourcev1.DeviceClass) []condition {
	var out []condition
	p, err := parser.NewParser(parser.Macros(parser.AllMacros...), parser.EnableOptionalSyntax(true))
	for _, s := range class.Spec.Selectors {
		if s.CEL == nil {
			continue
		}
		if err != nil {
			out = append(out, condition{text: s.CEL.Expression})
			continue
		}
		tree, errs := p.Parse(common.NewTextSource(s.CEL.Expression))
		if len(errs.GetErrors()) > 0 {
			out = append(out, condition{text: s.CEL.Expression})
			continue
		}
		out = append(out, split(tree.Expr(), tree.SourceInfo(), s.CEL.Expression)...)
	}
	return out
}

func split(e ast.Expr, info *ast.SourceInfo, whole string) []condition {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.LogicalAnd {
		var out []condition
		for _, arg := range e.AsCall().Args() {
			out = append(out, split(arg, info, whole)...)
		}
		return out
	}
	c := condition{text: whole}
	if text, err := parser.Unparse(e, info); err == nil {
		c.text = text
	}
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Equals {
		args := e.AsCall().Args()
		if args[0].Kind() == ast.LiteralKind {
			args = []ast.Expr{args[1], args[0]}
		}
		if args[1].Kind() == ast.LiteralKind {
			c.read(args[0], fmt.Sprint(args[1].AsLiteral().Value()))
		}
	}
	return []condition{c}
}

// read recognises device.driver and device.attributes["domain"].name.
func (c *condition) read(e ast.Expr, want string) {
	if e.Kind() != ast.SelectKind {
		return
	}
	field, of := e.AsSelect().FieldName(), e.AsSelect().Operand()
	if of.Kind() == ast.IdentKind && of.AsIdent() == "device" && field == "driver" {
		c.driver, c.want = true, want
		return
	}
	if of.Kind() != ast.CallKind || of.AsCall().FunctionName() != operators.Index {
		return
	}
	args := of.AsCall().Args()
	if args[1].Kind() != ast.LiteralKind || args[0].Kind() != ast.SelectKind || args[0].AsSelect().FieldName() != "attributes" {
		return
	}
	c.attribute, c.domain, c.want = field, fmt.Sprint(args[1].AsLiteral().Value()), want
}

// held are the devices for which the condition alone holds, as the scheduler evaluates
// it. It is nil for one that does not compile alone, which is held against no device.
func (c condition) held(list []resourcev1.ResourceSlice) map[device]bool {
	class := &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
		{CEL: &resourcev1.CELDeviceSelector{Expression: c.text}}}}}
	m, err := cluster.MatchClass(context.Background(), class, list)
	if err != nil {
		return nil
	}
	return idsOf(m)
}

// idsOf are the devices that a class selects.
func idsOf(m cluster.Match) map[device]bool {
	out := map[device]bool{}
	for driver, devices := range m.Selected {
		for _, d := range devices {
			out[device{driver, d.Pool, d.Name}] = true
		}
	}
	return out
}

// against says how a device differs from the condition.
func (c condition) against(driver string, d *resourcev1.Device) string {
	switch {
	case c.driver:
		return fmt.Sprintf("its driver is %q, the class wants %q", driver, c.want)
	case c.attribute == "":
		return fmt.Sprintf("`%s` is false", c.text)
	}
	value, ok := attribute(d, driver, c.domain, c.attribute)
	if !ok {
		return fmt.Sprintf("it has no attribute %s/%s, the class wants %q", c.domain, c.attribute, c.want)
	}
	return fmt.Sprintf("%s is %q, the class wants %q", c.attribute, value, c.want)
}

// attribute is the value of a device's attribute. A name without a domain is in the
// driver's own (k8s.io/api/resource/v1, QualifiedName).
func attribute(d *resourcev1.Device, driver, domain, name string) (string, bool) {
	keys := []string{domain + "/" + name}
	if domain == driver {
		keys = append(keys, name)
	}
	for _, key := range keys {
		a, ok := d.Attributes[resourcev1.QualifiedName(key)]
		switch {
		case !ok:
		case a.StringValue != nil:
			return *a.StringValue, true
		case a.IntValue != nil:
			return fmt.Sprint(*a.IntValue), true
		case a.BoolValue != nil:
			return fmt.Sprint(*a.BoolValue), true
		case a.VersionValue != nil:
			return *a.VersionValue, true
		}
	}
	return "", false
}

func (d difference) String() string {
	return fmt.Sprintf("device %s of pool %s: %s", d.device.name, d.device.pool, strings.Join(d.says, "; "))
}

// driversOf counts the devices that each driver publishes: "gpu.nvidia.com (8)".
func driversOf(list []resourcev1.ResourceSlice) []string {
	count := map[string]int{}
	var order []string
	for i := range list {
		if _, ok := count[list[i].Spec.Driver]; !ok {
			order = append(order, list[i].Spec.Driver)
		}
		count[list[i].Spec.Driver] += len(list[i].Spec.Devices)
	}
	slices.Sort(order)
	for i, driver := range order {
		order[i] = fmt.Sprintf("%s (%d)", driver, count[driver])
	}
	return order
}
