package cluster

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// probeName is the extended resource of the class that probeGate makes; no plugin ever
// advertises it.
const probeName = "dramigrate.dev/gate-probe"

// probeGate asks the API server whether DRAExtendedResource is on: it has the server
// make a DeviceClass without storing it, and looks whether the server kept the field,
// which it drops without a word while the gate is off
// (pkg/registry/resource/deviceclass/strategy.go, v1.37.2). Of several API servers one
// answers.
func (l *loader) probeGate(ctx context.Context) (Feature, error) {
	class := &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "dramigrate-gate-probe-"},
		Spec:       resourcev1.DeviceClassSpec{ExtendedResourceName: ptr.To(probeName)},
	}
	made, err := l.client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return Feature{}, fmt.Errorf("dry-run create of a DeviceClass: %w", err)
	}
	if made.Spec.ExtendedResourceName == nil {
		return Feature{Evidence: "dry-run create of a DeviceClass: the server dropped extendedResourceName"}, nil
	}
	return Feature{Enabled: true, Evidence: "dry-run create of a DeviceClass: the server kept extendedResourceName"}, nil
}
