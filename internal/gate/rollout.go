package gate

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/jsonpatch"
)

// StrategyPath is the field that decides whether an edit of the template restarts
// the pods on nodes that still match, as a JSON pointer.
const StrategyPath = "/spec/updateStrategy"

// OnDelete is the patch that keeps an edit of the template from restarting pods: the
// controller removes only those on nodes that do not match any more
// (pkg/controller/daemon/daemon_controller.go, manage, v1.37.2). Pods of the old
// template stay until they are deleted. Empty if the strategy is OnDelete already.
func OnDelete(ds *appsv1.DaemonSet) jsonpatch.Patch {
	return strategy(ds, appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType})
}

// RestoreStrategy is the patch that puts the recorded update strategy back, if the
// strategy still is what the tool made of it; empty if it is not, or if it is back.
// Going back to RollingUpdate restarts every pod of an old template.
func RestoreStrategy(ds *appsv1.DaemonSet, pre cluster.PreImage) (jsonpatch.Patch, error) {
	if pre.Path != StrategyPath {
		return nil, fmt.Errorf("%s: the recorded pre-image is of %s, not of %s", name(ds), pre.Path, StrategyPath)
	}
	var before, after appsv1.DaemonSetUpdateStrategy
	if err := json.Unmarshal(pre.Before, &before); err != nil {
		return nil, fmt.Errorf("%s: recorded update strategy before prepare: %w", name(ds), err)
	}
	if err := json.Unmarshal(pre.After, &after); err != nil {
		return nil, fmt.Errorf("%s: recorded update strategy after prepare: %w", name(ds), err)
	}
	if !equality.Semantic.DeepEqual(ds.Spec.UpdateStrategy, after) {
		return nil, nil
	}
	return strategy(ds, before), nil
}

// StrategyPreImage is the record of the update strategy before and after OnDelete.
func StrategyPreImage(ds *appsv1.DaemonSet, object cluster.ObjectRef) (cluster.PreImage, error) {
	before, err := json.Marshal(ds.Spec.UpdateStrategy)
	if err != nil {
		return cluster.PreImage{}, fmt.Errorf("%s: encode update strategy: %w", name(ds), err)
	}
	after, err := json.Marshal(appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType})
	if err != nil {
		return cluster.PreImage{}, fmt.Errorf("%s: encode update strategy: %w", name(ds), err)
	}
	return cluster.PreImage{Object: object, Path: StrategyPath, Before: before, After: after}, nil
}

func strategy(ds *appsv1.DaemonSet, to appsv1.DaemonSetUpdateStrategy) jsonpatch.Patch {
	if equality.Semantic.DeepEqual(ds.Spec.UpdateStrategy, to) {
		return nil
	}
	var p jsonpatch.Patch
	if ds.UID != "" {
		p = append(p, jsonpatch.Test("/metadata/uid", ds.UID))
	}
	return append(p, jsonpatch.Test(StrategyPath, ds.Spec.UpdateStrategy), jsonpatch.Replace(StrategyPath, to))
}
