package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
	"github.com/dramigrate/dramigrate/test/cluster/cluster"
)

// grantee is a user who has the printed role of one verb and nothing else.
type grantee struct {
	*fixture
	verb, user string
	printed    []byte
}

// grantee binds what `rbac VERB` prints, without what it calls optional.
func (f *fixture) grantee(verb string, more ...string) *grantee {
	f.Helper()
	g := &grantee{fixture: f, verb: verb, user: "only-" + verb}
	r := f.run(0, append([]string{"rbac", verb, "--user", g.user, "--optional=false"}, more...)...)
	g.printed = []byte(r.Stdout)
	g.restore()
	return g
}

func (g *grantee) restore() {
	g.Helper()
	g.ok(g.ApplyYAML(g.ctx, g.printed))
}

// run runs a command line as the user.
func (g *grantee) run(want int, args ...string) Result {
	g.Helper()
	return g.fixture.run(want, append(args, "--as", g.user)...)
}

// may waits until the authorizer, which learns of roles by watches, gives an answer.
func (g *grantee) may(want bool, right authorizationv1.ResourceAttributes) {
	g.Helper()
	g.ok(Eventually(g.ctx, patience, func() string {
		review, err := g.Client().AuthorizationV1().SubjectAccessReviews().Create(g.ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: g.user, Groups: []string{"system:authenticated"}, ResourceAttributes: &right},
		}, metav1.CreateOptions{})
		if err != nil {
			return err.Error()
		}
		if review.Status.Allowed != want {
			return "user " + g.user + " may " + right.Verb + " " + right.Resource + ": not as the role says yet"
		}
		return ""
	}))
}

// without takes one right out of the roles while do runs.
func (g *grantee) without(right authorizationv1.ResourceAttributes, do func()) {
	g.Helper()
	g.may(true, right)
	name := "dramigrate-" + g.verb
	resource := right.Resource
	if right.Subresource != "" {
		resource += "/" + right.Subresource
	}
	found := false
	strip := func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		for i := range rules {
			if slices.Contains(rules[i].Resources, resource) && slices.Contains(rules[i].APIGroups, right.Group) && slices.Contains(rules[i].Verbs, right.Verb) {
				rules[i].Verbs = slices.DeleteFunc(rules[i].Verbs, func(v string) bool { return v == right.Verb })
				found = true
			}
		}
		return slices.DeleteFunc(rules, func(r rbacv1.PolicyRule) bool { return len(r.Verbs) == 0 })
	}
	rbac := g.Client().RbacV1()
	wide, err := rbac.ClusterRoles().Get(g.ctx, name, metav1.GetOptions{})
	g.ok(err)
	wide.Rules = strip(wide.Rules)
	_, err = rbac.ClusterRoles().Update(g.ctx, wide, metav1.UpdateOptions{})
	g.ok(err)
	own, err := rbac.Roles(ToolNamespace).Get(g.ctx, name, metav1.GetOptions{})
	g.ok(err)
	own.Rules = strip(own.Rules)
	_, err = rbac.Roles(ToolNamespace).Update(g.ctx, own, metav1.UpdateOptions{})
	g.ok(err)
	if !found {
		g.Fatalf("the roles of %s do not grant %s %s", g.verb, right.Verb, resource)
	}
	g.may(false, right)
	do()
	g.restore()
	g.may(true, right)
}

// stopped wants a run without a right to say which one is missing, and to change nothing.
func (g *grantee) stopped(right authorizationv1.ResourceAttributes, want string, args ...string) {
	g.Helper()
	g.without(right, func() {
		before := map[string]string{}
		for _, node := range []string{"gpu-a-1", "gpu-a-2"} {
			before[node] = g.look(node).print
		}
		r := g.run(3, args...)
		if !strings.Contains(r.Stdout, "DRM030") || !strings.Contains(strings.Join(strings.Fields(r.Stdout), " "), want) ||
			!strings.Contains(r.Stdout, "dramigrate rbac "+g.verb) {
			g.Errorf("%s without the right to %q does not say so:\n%s", g.verb, want, r)
		}
		for node, was := range before {
			if now := g.look(node).print; now != was {
				g.Errorf("%s without the right to %q has changed node/%s to\n%s", g.verb, want, node, now)
			}
		}
	})
}

// TestLeastRoles runs each verb as a user who has exactly the role that `rbac` prints for
// it, without what is optional, and the verbs that change something without one right of
// it as well.
func TestLeastRoles(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Nodes: []cluster.NodeSpec{
		GPUNode("gpu-a-1", "gpu-a", 2), GPUNode("gpu-a-2", "gpu-a", 2),
	}})
	before := map[string]nodeIs{"gpu-a-1": f.look("gpu-a-1"), "gpu-a-2": f.look("gpu-a-2")}
	// One pod, so that each node has a device left for a canary.
	f.ok(f.RunWorkload(f.ctx, "train", "gpu-a", 1))
	right := func(verb, group, resource, namespace string) authorizationv1.ResourceAttributes {
		resource, sub, _ := strings.Cut(resource, "/")
		return authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: sub, Namespace: namespace}
	}

	prepare := f.grantee("prepare", "--driver-manifests", f.DriverDir)
	arguments := slices.Concat([]string{"prepare", "--yes", "--plugin-rollout", "on-delete", "--driver-manifests", f.DriverDir}, locked)
	prepare.stopped(right("create", "apps", "daemonsets", ""), "create daemonsets.apps", arguments...)
	prepare.run(0, arguments...)

	// What `check` reads is what its role grants: nothing is left unread but dashboards,
	// which no role is given unasked: their right shows every ConfigMap.
	checker := f.grantee("check", "--optional=true")
	checker.may(true, right("list", "coordination.k8s.io", "leases", ToolNamespace))
	checker.may(true, right("list", "batch", "cronjobs", ""))
	if r := checker.run(0, "check", "gpu-a"); strings.Count(r.Stdout, "NOT RUN") != 1 || !strings.Contains(r.Stdout, "NOT RUN DRM136") {
		t.Errorf("check does not see all with its own role:\n%s", r.Stdout)
	}
	checker.without(right("list", "", "resourcequotas", ""), func() {
		if r := checker.run(7, "check", "gpu-a"); !strings.Contains(unwrapped(r.Stdout), "NOT RUN DRM130") {
			t.Errorf("check does not say that the quotas were not seen:\n%s", r.Stdout)
		}
	})

	// Who may only plan does: what is missing to run the plan is a warning.
	reader := f.grantee("plan")
	reader.may(true, right("list", "coordination.k8s.io", "leases", ToolNamespace))
	r := reader.run(0, "plan", "gpu-a", "--helper-image", HelperImage)
	if !strings.Contains(r.Stdout, "DRM030") {
		t.Errorf("the plan does not say what its reader could not do:\n%s", r.Stdout)
	}
	reader.without(right("list", "resource.k8s.io", "resourceclaims", ""), func() {
		if r := reader.run(7, "plan", "gpu-a", "--helper-image", HelperImage); !strings.Contains(r.Stdout, "resourceclaims") {
			t.Errorf("the plan does not say what could not be read:\n%s", r.Stdout)
		}
	})

	// What a snapshot says of its caller is what the cluster says.
	file := filepath.Join(t.TempDir(), "snapshot.yaml")
	taker := f.grantee("snapshot")
	taker.may(true, right("list", "coordination.k8s.io", "leases", ToolNamespace))
	f.ok(Eventually(f.ctx, patience, func() string {
		taker.run(0, "snapshot", "--out", file, "--force")
		live := taker.run(0, "plan", "gpu-a", "-o", "yaml")
		offline := f.Tool.Run(f.ctx, "plan", "gpu-a", "-o", "yaml", "--from", file)
		if live.Stdout != offline.Stdout || !strings.Contains(live.Stdout, "DRM030") {
			return "the live plan is\n" + live.Stdout + "and from the snapshot\n" + offline.Stdout
		}
		return ""
	}))

	mover := f.grantee("apply")
	mover.stopped(right("create", "", "pods/eviction", "default"), "create pods/eviction in namespace default", apply("gpu-a")...)
	mover.run(0, apply("gpu-a")...)
	f.ok(f.WorkloadReady(f.ctx, "train", 1))
	f.onDRA("train", "gpu-a-1", "gpu-a-2")

	for _, verb := range []string{"pools", "status", "verify"} {
		looker := f.grantee(verb)
		looker.may(true, right("list", "policy", "poddisruptionbudgets", ""))
		if verb != "verify" {
			looker.may(true, right("list", "coordination.k8s.io", "leases", ToolNamespace))
			if r := looker.run(0, verb); strings.Contains(r.Stdout, "could not be read") {
				t.Errorf("%s does not see all:\n%s", verb, r.Stdout)
			}
			continue
		}
		looker.run(0, verb, "gpu-a")
	}
	f.grantee("verify-canary").knowing(right("get", "", "pods/log", ToolNamespace)).
		run(0, "verify", "gpu-a", "--canary", "--helper-image", HelperImage)

	f.probed(right("get", "", "pods/log", ToolNamespace))

	back := f.grantee("rollback")
	back.stopped(right("delete", "", "pods", ToolNamespace), "delete pods in namespace "+ToolNamespace, rollback("gpu-a")...)
	back.run(0, rollback("gpu-a")...)
	for node, was := range before {
		f.asBefore(node, was)
	}

	remover := f.grantee("unprepare", "--driver-manifests", f.DriverDir)
	remover.stopped(right("delete", "resource.k8s.io", "deviceclasses", ""), "delete deviceclasses.resource.k8s.io", "unprepare", "--yes")
	remover.run(0, "unprepare", "--yes")

	now := metav1.NewMicroTime(time.Now())
	_, err := f.Client().CoordinationV1().Leases(ToolNamespace).Create(f.ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "pool-gpu-z"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("dead@host/1"), LeaseDurationSeconds: ptr.To[int32](3600),
			LeaseTransitions: ptr.To[int32](1), AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	f.ok(err)
	f.grantee("unlock").knowing(right("update", "coordination.k8s.io", "leases", ToolNamespace)).run(0, "unlock", "gpu-z", "--yes", "--holder", "dead@host/1")
}

// probed runs probe as a user with its role alone, which finds the helper's image in the
// journal. The program that stands for the image sees no hardware, and all else.
func (f *fixture) probed(log authorizationv1.ResourceAttributes) {
	f.Helper()
	prober := f.grantee("probe").knowing(log)
	probe := func() poolprobe.Result {
		r := prober.run(7, "probe", "gpu-a", "-o", "json")
		var got poolprobe.Result
		f.ok(json.Unmarshal([]byte(r.Stdout), &got))
		if len(got.Nodes) != 2 || len(got.Unknown) != 0 {
			f.Fatalf("%d nodes, of the API unknown is %v; want 2 nodes, and all of the API\n%s", len(got.Nodes), got.Unknown, r)
		}
		return got
	}
	for _, n := range probe().Nodes {
		if n.Source != poolprobe.FromNode || n.Error != "" || len(n.Report.Unknown) != 1 || n.Report.Unknown[0].Part != nodeprobe.PartHardware {
			f.Errorf("node %s: source %s, error %q, report %+v; want all but the hardware", n.Name, n.Source, n.Error, n.Report)
		}
	}
	prober.without(log, func() {
		for _, n := range probe().Nodes {
			if n.Source != poolprobe.FromAPI || !strings.Contains(n.Error, "the pod's log cannot be read: ") || !strings.Contains(n.Error, "forbidden") {
				f.Errorf("node %s without the right to its pod's log: source %s, error %q", n.Name, n.Source, n.Error)
			}
		}
	})
}

// knowing waits until the authorizer knows one right of a fresh role.
func (g *grantee) knowing(right authorizationv1.ResourceAttributes) *grantee {
	g.Helper()
	g.may(true, right)
	return g
}
