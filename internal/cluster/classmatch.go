package cluster

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Match is what a DeviceClass selects among the published devices.
type Match struct {
	// Selected are the devices that satisfy every selector of the class, by driver.
	Selected map[string]Devices
	// Failed says for which device an expression failed, and how; the scheduler
	// allocates no device at all while it may come to such a one. Empty if none.
	Failed string
}

// MatchClass evaluates the selectors of a class as the scheduler does, by the same
// CEL compiler, over the devices in the slices. A class without selectors selects
// every device of every driver. It is an error if an expression does not compile.
func MatchClass(ctx context.Context, class *resourcev1.DeviceClass, slices []resourcev1.ResourceSlice) (Match, error) {
	// Expressions that are stored already may use what the server's gates allow.
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	var programs []cel.CompilationResult
	for i, s := range class.Spec.Selectors {
		if s.CEL == nil {
			return Match{}, fmt.Errorf("deviceclass/%s: selector %d is of a kind that this version does not know", class.Name, i)
		}
		p := compiler.CompileCELExpression(s.CEL.Expression, cel.Options{})
		if p.Error != nil {
			return Match{}, fmt.Errorf("deviceclass/%s: selector %d: %w", class.Name, i, p.Error)
		}
		programs = append(programs, p)
	}
	m := Match{Selected: map[string]Devices{}}
	for i := range slices {
		spec := &slices[i].Spec
		for j := range spec.Devices {
			d := &spec.Devices[j]
			ok, err := matches(ctx, programs, spec.Driver, d)
			switch {
			case ctx.Err() != nil:
				return Match{}, fmt.Errorf("deviceclass/%s: %w", class.Name, context.Cause(ctx))
			case err != nil:
				if m.Failed == "" {
					m.Failed = fmt.Sprintf("device %s of pool %s, driver %s: %v", d.Name, spec.Pool.Name, spec.Driver, err)
				}
			case ok:
				m.Selected[spec.Driver] = append(m.Selected[spec.Driver], deviceOf(spec.Driver, spec.Pool.Name, d))
			}
		}
	}
	return m, nil
}

func matches(ctx context.Context, programs []cel.CompilationResult, driver string, d *resourcev1.Device) (bool, error) {
	for _, p := range programs {
		ok, _, err := p.DeviceMatches(ctx, cel.Device{
			Driver:                   driver,
			AllowMultipleAllocations: d.AllowMultipleAllocations,
			Attributes:               d.Attributes,
			Capacity:                 d.Capacity,
		})
		if err != nil {
			return false, cel.EnhanceRuntimeError(err)
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}
