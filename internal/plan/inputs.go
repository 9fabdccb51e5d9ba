package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Inputs are the digests of what the plan was made from, object by object: when the
// plan is applied they tell what has moved since the review. A part that could not
// be read has no entry here and one in Plan.Unknown.
type Inputs struct {
	// DaemonSets are those of the plugin and of the driver, by namespace/name: their
	// UID and their spec.
	DaemonSets map[string]string `json:"daemonSets,omitempty"`
	// Class is the DeviceClass that carries the resource: its spec. A class that was
	// made anew with the same one means the same.
	Class string `json:"class,omitempty"`
	// Budgets are the PodDisruptionBudgets over pods to evict, by namespace/name:
	// their spec. What they allow at the moment comes and goes.
	Budgets map[string]string `json:"budgets,omitempty"`
	// Reports are the NodeReports that were given, by node: the digest of each file.
	Reports map[string]string `json:"reports,omitempty"`
}

// inputs is called when the evictions are known.
func (b *builder) inputs() (Inputs, error) {
	in := Inputs{Reports: b.in.Reports}
	var err error
	digest := func(of any) string {
		text, e := digestOf(of)
		if e != nil && err == nil {
			err = e
		}
		return text
	}
	sets := map[string]*appsv1.DaemonSet{}
	for _, d := range b.inv.PluginsFor(b.in.Resource) {
		sets[d.DaemonSet.Namespace+"/"+d.DaemonSet.Name] = d.DaemonSet
	}
	for _, d := range b.inv.DriversFor(b.in.Driver) {
		sets[d.DaemonSet.Namespace+"/"+d.DaemonSet.Name] = d.DaemonSet
	}
	for name, ds := range sets {
		if in.DaemonSets == nil {
			in.DaemonSets = map[string]string{}
		}
		in.DaemonSets[name] = digest(struct {
			UID  types.UID
			Spec appsv1.DaemonSetSpec
		}{ds.UID, ds.Spec})
	}
	if winner, _ := b.s.ClassFor(b.in.Resource); winner != nil {
		if in.Class, err = specDigest(winner); err != nil {
			return in, err
		}
	}
	var covering []string
	for _, e := range b.p.Evictions {
		covering = append(covering, e.Budgets...)
	}
	for i := range b.s.Budgets {
		budget := &b.s.Budgets[i]
		if name := budget.Namespace + "/" + budget.Name; slices.Contains(covering, name) {
			if in.Budgets == nil {
				in.Budgets = map[string]string{}
			}
			in.Budgets[name] = digest(struct {
				Spec policyv1.PodDisruptionBudgetSpec
			}{budget.Spec})
		}
	}
	return in, err
}

func specDigest(class *resourcev1.DeviceClass) (string, error) { return digestOf(class.Spec) }

func digestOf(v any) (string, error) {
	data, err := canonical(v)
	if err != nil {
		return "", fmt.Errorf("digest: %w", err)
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
