package plan

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/jsonerr"
)

// Placed are a driver's manifests made safe to apply to a cluster whose pools have
// not moved yet.
type Placed struct {
	// Objects are applied in this order. The driver's DaemonSets among them run on
	// no node that has not been switched.
	Objects []*unstructured.Unstructured
	// Drivers are those DaemonSets.
	Drivers []*appsv1.DaemonSet
	// HeldClass is the DeviceClass that maps the extended resource. It is not
	// applied: the mapping goes live for every pool of the cluster at once.
	HeldClass *resourcev1.DeviceClass
}

// Place marks every object of m as the tool's own, keeps each DaemonSet that runs a
// DRA driver to switched nodes, and takes the DeviceClass of the extended resource
// out.
func Place(m *Manifests, resource string) (*Placed, error) {
	out := &Placed{}
	for _, doc := range m.Objects {
		u := doc.Object.DeepCopy()
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		// By this label a later run knows what it may change and remove.
		labels[gate.ManagedByLabel] = gate.ManagedBy
		u.SetLabels(labels)
		var err error
		switch u.GroupVersionKind().GroupKind().String() {
		case "DaemonSet.apps":
			err = out.placeDaemonSet(u)
		case "DeviceClass.resource.k8s.io":
			var held bool
			if held, err = out.holdClass(u, resource); held {
				continue
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doc.Where, err)
		}
		out.Objects = append(out.Objects, u)
	}
	if len(out.Drivers) == 0 {
		return nil, fmt.Errorf("no DaemonSet mounts the kubelet's %s, by which a DRA driver's DaemonSet is known", gate.PluginsRegistry)
	}
	return out, nil
}

func (p *Placed) placeDaemonSet(u *unstructured.Unstructured) error {
	ds := &appsv1.DaemonSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, ds, true); err != nil {
		return fmt.Errorf("DaemonSet %s: %w", u.GetName(), inFields(u, ds, err))
	}
	if !gate.IsDriver(ds) {
		return nil
	}
	edit, err := gate.PlaceDriver(ds)
	if err != nil {
		return fmt.Errorf("DaemonSet %s: %w", u.GetName(), err)
	}
	affinity, err := runtime.DefaultUnstructuredConverter.ToUnstructured(edit.WholeAfter)
	if err != nil {
		return fmt.Errorf("DaemonSet %s: %w", u.GetName(), err)
	}
	if err := unstructured.SetNestedMap(u.Object, affinity, "spec", "template", "spec", "affinity"); err != nil {
		return fmt.Errorf("DaemonSet %s: %w", u.GetName(), err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, ds); err != nil {
		return fmt.Errorf("DaemonSet %s: %w", u.GetName(), err)
	}
	p.Drivers = append(p.Drivers, ds)
	return nil
}

// holdClass says whether u is the class that maps resource, and keeps it if so. A
// class that maps another extended resource is an error: it would go live with
// prepare, and nothing of this run watches over it.
func (p *Placed) holdClass(u *unstructured.Unstructured, resource string) (bool, error) {
	name, _, err := unstructured.NestedString(u.Object, "spec", "extendedResourceName")
	switch {
	case err != nil:
		return false, fmt.Errorf("DeviceClass %s: %w", u.GetName(), err)
	case name == "":
		return false, nil
	case name != resource:
		return false, fmt.Errorf("DeviceClass %s: maps extended resource %s, which this run does not move; take it out of the manifests",
			u.GetName(), name)
	case u.GetAPIVersion() != resourcev1.SchemeGroupVersion.String():
		return false, fmt.Errorf("DeviceClass %s: has apiVersion %s; write it as %s",
			u.GetName(), u.GetAPIVersion(), resourcev1.SchemeGroupVersion)
	case p.HeldClass != nil:
		return false, fmt.Errorf("DeviceClass %s: maps %s, as DeviceClass %s does; two classes with one name lose the mapping when either is removed",
			u.GetName(), resource, p.HeldClass.Name)
	}
	class := &resourcev1.DeviceClass{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, class, true); err != nil {
		return false, fmt.Errorf("DeviceClass %s: %w", u.GetName(), inFields(u, class, err))
	}
	p.HeldClass = class
	return true, nil
}

// inFields is why an object cannot be taken for what it is to be: the converter does not
// say of which field.
func inFields(u *unstructured.Unstructured, into any, err error) error {
	raw, bad := u.MarshalJSON()
	if bad != nil {
		return err
	}
	return jsonerr.Again(raw, into, err)
}
