package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dramigrate/dramigrate/internal/access"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/report"
)

// readVerbs stands for all verbs that change nothing.
const readVerbs = "read"

type rbacOptions struct {
	app       *app
	format    *format
	name      string
	optional  bool
	accounts  []string
	users     []string
	groups    []string
	manifests planFlags
}

func newRBAC(a *app) *cobra.Command {
	o := &rbacOptions{app: a, format: newFormat("yaml", "json", "table")}
	cmd := &cobra.Command{
		Use:   "rbac [VERB...]",
		Short: "Print the least roles that the verbs need, and why",
		Long: `Print the roles that are needed to run the given verbs and no more, as kubectl apply
takes them: a ClusterRole, a Role in the tool's namespace, and bindings if --user,
--group or --serviceaccount names somebody. Each rule says why it is there. The cluster
is not asked.

Without VERB there are roles for each verb; "read" is all verbs that change nothing in
one role, "verify-canary" is 'verify --canary', and 'verify --probe' is "verify" and "probe".
With --name all that is asked for is one
role of that name.

Optional rules say what is lost without them; --optional=false leaves them out. With
--driver-manifests the roles of prepare and unprepare hold what the driver's objects take
as well. Who makes a ClusterRole must have all that it grants: these rights are in the
role too, and the verb escalate on that ClusterRole does in their place.

plan, apply, rollback, prepare and unprepare look at the caller's rights before anything
begins, and name what is missing (DRM030).`,
		Example: `  dramigrate rbac apply --user jane | kubectl apply -f -
  dramigrate rbac read --serviceaccount ci:planner | kubectl apply -f -
  dramigrate rbac prepare --driver-manifests ./driver --group gpu-admins
  dramigrate rbac apply rollback verify-canary --name gpu-migrator
  dramigrate rbac -o table`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return slices.DeleteFunc(append(access.Verbs(), readVerbs), func(v string) bool { return slices.Contains(args, v) }), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	o.format.addFlag(cmd)
	s := cmd.Flags()
	s.StringVar(&o.name, "name", "", "name of the roles and bindings; dramigrate-VERB by default")
	s.BoolVar(&o.optional, "optional", true, "with the rules that a verb can do without")
	s.StringArrayVar(&o.accounts, "serviceaccount", nil, "NAMESPACE:NAME of a ServiceAccount to bind the roles to; may be repeated")
	s.StringArrayVar(&o.users, "user", nil, "user to bind the roles to; may be repeated")
	s.StringArrayVar(&o.groups, "group", nil, "group to bind the roles to; may be repeated")
	s.StringVar(&o.manifests.manifests, "driver-manifests", "", "folder with the DRA driver's manifests, for prepare and unprepare")
	offerFiles(cmd, "driver-manifests", cobra.ShellCompDirectiveFilterDirs)
	for _, name := range []string{"name", "serviceaccount", "user", "group"} {
		offer(cmd, name)
	}
	return cmd
}

func (o *rbacOptions) run(verbs []string) error {
	subjects, err := o.subjects()
	if err != nil {
		return err
	}
	grants, err := o.grants(verbs, subjects)
	if err != nil {
		return err
	}
	roles := report.Roles{Grants: grants, Notes: o.notes(grants, subjects)}
	for _, g := range grants {
		if slices.Contains(g.Namespaces(), o.app.namespace) {
			roles.Namespace = plan.Namespace(o.app.namespace)
		}
	}
	switch o.format.value {
	case "json":
		return roles.JSON(o.app.Out)
	case "table":
		return roles.Table(o.app.sheet())
	default:
		return roles.YAML(o.app.Out)
	}
}

// grants are a role for each verb, or one for all if it has a name.
func (o *rbacOptions) grants(verbs []string, subjects []rbacv1.Subject) ([]access.Grant, error) {
	if len(verbs) == 0 {
		verbs = access.Verbs()
	}
	objects, err := o.objects(verbs)
	if err != nil {
		return nil, err
	}
	var out []access.Grant
	for _, verb := range verbs {
		g := access.Grant{Name: "dramigrate-" + verb, For: []string{verb}, Subjects: subjects}
		if verb == readVerbs {
			g.For = access.Reading()
		}
		for _, v := range g.For {
			rules, err := access.Of(v, o.app.namespace)
			if err != nil {
				return nil, usageError("%w, and %s", err, readVerbs)
			}
			more, err := rulesOfDriver(v, objects)
			if err != nil {
				return nil, err
			}
			g.Rules = append(append(g.Rules, rules...), more...)
		}
		out = append(out, g)
	}
	if o.name != "" {
		one := access.Grant{Name: o.name, Subjects: subjects}
		for _, g := range out {
			one.For, one.Rules = append(one.For, g.For...), append(one.Rules, g.Rules...)
		}
		out = []access.Grant{one}
	}
	for i := range out {
		out[i].Rules = access.Merge(out[i].Rules)
		if !o.optional {
			out[i].Rules = slices.DeleteFunc(out[i].Rules, access.Rule.Optional)
		}
	}
	return out, nil
}

// objects are what prepare would install of --driver-manifests.
func (o *rbacOptions) objects(verbs []string) ([]*unstructured.Unstructured, error) {
	if o.manifests.manifests == "" {
		return nil, nil
	}
	if !slices.Contains(verbs, access.Prepare) && !slices.Contains(verbs, access.Unprepare) {
		return nil, usageError("--driver-manifests is for prepare and unprepare")
	}
	m, err := o.manifests.readManifests()
	if err != nil {
		return nil, err
	}
	placed, err := plan.Place(m, o.app.resource)
	if err != nil {
		return nil, fmt.Errorf("--driver-manifests %s: %w", o.manifests.manifests, err)
	}
	return placed.Objects, nil
}

// rulesOfDriver are what installing or removing the driver's objects needs. In a
// namespace that is installed with them there can be no Role before.
func rulesOfDriver(verb string, objects []*unstructured.Unstructured) ([]access.Rule, error) {
	var rules []access.Rule
	switch verb {
	case access.Prepare:
		install, err := access.ToInstall(objects)
		if err != nil {
			return nil, fmt.Errorf("--driver-manifests: %w", err)
		}
		rules = install
	case access.Unprepare:
		rules = access.ToRemove(objects)
	}
	for i, r := range rules {
		for _, u := range objects {
			if u.GetKind() == "Namespace" && u.GetName() == r.Namespace {
				rules[i].Namespace = ""
				rules[i].Why += "; for all namespaces, because " + r.Namespace + " is not there before"
			}
		}
	}
	return rules, nil
}

func (o *rbacOptions) notes(grants []access.Grant, subjects []rbacv1.Subject) []string {
	notes := []string{"What dramigrate " + o.app.build.Version + " needs, and no more."}
	if len(subjects) == 0 {
		notes = append(notes, "Bound to nobody: give --user, --group or --serviceaccount.")
	}
	installs := func(g access.Grant) bool {
		return slices.Contains(g.For, access.Prepare) || slices.Contains(g.For, access.Unprepare)
	}
	if o.manifests.manifests == "" && slices.ContainsFunc(grants, installs) {
		notes = append(notes, "To install or remove a driver, prepare and unprepare also need the rights to make, change and delete each object of its manifests, and for its roles all that they grant: give --driver-manifests DIR to have them here.")
	}
	return notes
}

func (o *rbacOptions) subjects() ([]rbacv1.Subject, error) {
	if bad := validation.IsDNS1123Subdomain(o.name); o.name != "" && len(bad) > 0 {
		return nil, usageError("--name %q: %s", o.name, bad[0])
	}
	var out []rbacv1.Subject
	for _, account := range o.accounts {
		namespace, name, found := strings.Cut(account, ":")
		if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, usageError("--serviceaccount %q: must be NAMESPACE:NAME", account)
		}
		out = append(out, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name})
	}
	for kind, names := range map[string][]string{rbacv1.UserKind: o.users, rbacv1.GroupKind: o.groups} {
		for _, name := range names {
			if name == "" {
				return nil, usageError("--%s: give a name", strings.ToLower(kind))
			}
			out = append(out, rbacv1.Subject{Kind: kind, APIGroup: rbacv1.GroupName, Name: name})
		}
	}
	slices.SortStableFunc(out, func(a, b rbacv1.Subject) int { return strings.Compare(a.Kind, b.Kind) })
	return out, nil
}
