package helperpod

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/vendor"
)

// identify looks up the keys of a claim's devices where the driver publishes them.
func (r *Runner) identify(ctx context.Context, j *job, devices []CanaryDevice) error {
	// Nearly every driver publishes a node's devices in slices of that node. One
	// that does not costs a list of all of its slices.
	byNode := fields.Set{
		resourcev1.ResourceSliceSelectorDriver:   j.driver,
		resourcev1.ResourceSliceSelectorNodeName: j.node,
	}
	byDriver := fields.Set{resourcev1.ResourceSliceSelectorDriver: j.driver}
	var missing string
	for _, selector := range []fields.Set{byNode, byDriver} {
		var slices *resourcev1.ResourceSliceList
		err := r.persist(ctx, j.wait, func() (err error) {
			slices, err = r.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
			return err
		})
		if err != nil {
			return j.ctxError(ctx, Unverifiable, "the driver's ResourceSlices cannot be read", err)
		}
		if missing = nameKeys(slices.Items, j.driver, devices); missing == "" {
			return nil
		}
	}
	return j.failed(Unverifiable, missing, nil)
}

// nameKeys fills in the keys, and says which device has none although its driver has them.
func nameKeys(slices []resourcev1.ResourceSlice, driver string, devices []CanaryDevice) (missing string) {
	published, _ := cluster.DevicesOf(slices, driver)
	type name struct{ pool, device string }
	join := vendor.JoinOf(driver)
	keys := map[name]string{}
	for _, d := range published {
		keys[name{d.Pool, d.Name}] = d.Key
	}
	for i := range devices {
		d := &devices[i]
		key, found := keys[name{d.Pool, d.Name}]
		switch {
		case !found:
			return fmt.Sprintf("device %s of pool %s, which the claim holds, is in no ResourceSlice of driver %s", d.Name, d.Pool, d.Driver)
		case key == "" && join.Key != vendor.NoKey:
			return fmt.Sprintf("device %s of pool %s is published without a %s", d.Name, d.Pool, join.Attributes[0])
		}
		d.Key = key
	}
	return ""
}
