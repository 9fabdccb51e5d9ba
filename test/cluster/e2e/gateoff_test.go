package e2e

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
)

// TestGateOff is a control plane that acts as 1.36 with DRAExtendedResource switched
// off, which 1.36 still allows (KEP-5004): no run begins, and the one signal that needs
// no right of its own, the dry run of a DeviceClass, tells the same as the metrics.
func TestGateOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{
		Kubelet: cluster.KubeletQuick, Nodes: []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 1)},
		ControlPlane: []string{"--emulated-version=1.36", "--feature-gates=DRAExtendedResource=false"},
	})
	before := f.look("gpu-a-1")
	off := func(r Result, evidence string) {
		t.Helper()
		text := unwrapped(r.Stdout)
		if !strings.Contains(text, "BLOCKER DRM032 server: the feature gate DRAExtendedResource of the API server is off") || !strings.Contains(text, evidence) {
			t.Errorf("the gate is not said to be off by %q:\n%s", evidence, r)
		}
	}
	off(f.run(3, "check", "gpu-a", "--only", "DRM032"), "kubernetes_feature_enabled")
	off(f.run(3, "prepare", "--yes", "--driver-manifests", f.DriverDir), "kubernetes_feature_enabled")
	off(f.run(3, apply("gpu-a")...), "kubernetes_feature_enabled")

	// Without the right to read metrics it is not seen, unless the server is asked.
	blind := f.grantee("check")
	f.ok(Eventually(f.ctx, patience, func() string {
		if r := f.Tool.Run(f.ctx, "check", "gpu-a", "--only", "DRM032", "--as", blind.user); r.Code != 7 {
			return r.String()
		}
		return ""
	}))
	blind.also(rbacv1.PolicyRule{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"deviceclasses"}, Verbs: []string{"create"}})
	off(blind.run(3, "check", "gpu-a", "--only", "DRM032", "--probe-gate"), "dry")
	f.asBefore("gpu-a-1", before)
}

// also adds a rule to the grantee's role, and waits until it counts.
func (g *grantee) also(rule rbacv1.PolicyRule) {
	g.Helper()
	roles := g.Client().RbacV1().ClusterRoles()
	role, err := roles.Get(g.ctx, "dramigrate-"+g.verb, metav1.GetOptions{})
	g.ok(err)
	role.Rules = append(role.Rules, rule)
	_, err = roles.Update(g.ctx, role, metav1.UpdateOptions{})
	g.ok(err)
	g.may(true, authorizationv1.ResourceAttributes{Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0]})
}
