// Package dryrun asks the API server what it would say to the changes of a plan,
// by requests that it checks in full and does not store (dryRun=All): permissions,
// admission, validity, the tests of patches, and disruption budgets as they are now.
package dryrun

import (
	"context"
	"fmt"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// Verdict is what the server said to one change.
type Verdict string

// The verdicts. NotNow is an eviction that a budget does not allow at this moment;
// NotAsked a change that depends on an earlier one which a dry run does not store.
const (
	Accepted Verdict = "accepted"
	NotNow   Verdict = "not now"
	NotAsked Verdict = "not asked"
	Refused  Verdict = "refused"
)

// Answer is the server's answer to one change.
type Answer struct {
	Change  string // "patch daemonset/kube-system/x"
	Verdict Verdict
	// Reason is the server's, or why it was not asked.
	Reason string
}

// Asker sends dry runs.
type Asker struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
}

// New makes an Asker; it sends no request.
func New(config *rest.Config) (*Asker, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	return &Asker{client: client, dynamic: objects, mapper: mapper}, nil
}

// Ask sends what can be sent of a plan: the changes of shared objects, the labels of
// each node, and the evictions. The rest of a node's patches holds values that only
// a run has.
func (a *Asker) Ask(ctx context.Context, p *plan.Plan) ([]Answer, error) {
	var out []Answer
	made := map[string]bool{} // namespaces that the plan itself makes
	steps := p.Shared
	if p.Class != nil && p.Class.Action == plan.Create && p.Pool != nil {
		steps = slices.Concat(steps, p.NodeSteps)
	}
	for _, s := range steps {
		for _, c := range s.Changes {
			if strings.HasPrefix(c.Object.Name, "<") {
				continue
			}
			out = append(out, a.change(ctx, c, made))
		}
	}
	for _, b := range p.Batches {
		for _, node := range b.Nodes {
			out = append(out, a.node(ctx, node, p))
		}
	}
	for _, e := range p.Evictions {
		out = append(out, a.evict(ctx, e))
	}
	return out, context.Cause(ctx)
}

func (a *Asker) change(ctx context.Context, c plan.Change, made map[string]bool) Answer {
	answer := Answer{Change: c.Verb + " " + name(c.Object)}
	if made[c.Object.Namespace] {
		answer.Verdict, answer.Reason = NotAsked, "its namespace is made by an earlier change"
		return answer
	}
	var err error
	switch c.Verb {
	case "create", "apply":
		err = a.apply(ctx, c, made)
	case "patch":
		_, err = a.client.AppsV1().DaemonSets(c.Object.Namespace).Patch(ctx, c.Object.Name, types.JSONPatchType,
			[]byte(c.Patch), metav1.PatchOptions{FieldManager: gate.FieldManager, DryRun: []string{metav1.DryRunAll}})
	case "delete":
		err = a.delete(ctx, c.Object)
	case plan.VerbAsk:
		answer.Verdict, answer.Reason = NotAsked, "a person takes it to the object's owner"
		return answer
	default:
		answer.Verdict, answer.Reason = NotAsked, "its contents are made by the run"
		return answer
	}
	return judge(answer, err)
}

func (a *Asker) apply(ctx context.Context, c plan.Change, made map[string]bool) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(c.Body), &object.Object); err != nil {
		return err
	}
	resource, err := a.resource(object.GroupVersionKind(), object.GetNamespace())
	if err != nil {
		return err
	}
	if object.GetKind() == "Namespace" {
		if _, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{}); apierrors.IsNotFound(err) {
			made[object.GetName()] = true
		}
	}
	_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{
		FieldManager: gate.FieldManager, DryRun: []string{metav1.DryRunAll},
	})
	return err
}

func (a *Asker) delete(ctx context.Context, o plan.Object) error {
	resource, err := a.resource(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind), o.Namespace)
	if err != nil {
		return err
	}
	err = resource.Delete(ctx, o.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsNotFound(err) {
		return nil // gone already
	}
	return err
}

func (a *Asker) resource(kind schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("the server does not know the kind: %w", err)
	}
	if namespace == "" {
		return a.dynamic.Resource(mapping.Resource), nil
	}
	return a.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// node asks for the labels that a run sets; what a merge patch does to labels is what
// the run's own patch does.
func (a *Asker) node(ctx context.Context, node string, p *plan.Plan) Answer {
	labels := map[string]string{}
	for key, value := range p.Gate.Labels[gate.Switching] {
		if value != "" && p.Into == nil { // else no node is switched
			labels[key] = value
		}
	}
	patch, err := yaml.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"unschedulable": true}})
	if err == nil {
		patch, err = yaml.YAMLToJSON(patch)
	}
	if err == nil {
		_, err = a.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: gate.FieldManager, DryRun: []string{metav1.DryRunAll}})
	}
	return judge(Answer{Change: "patch node/" + node}, err)
}

func (a *Asker) evict(ctx context.Context, e plan.Eviction) Answer {
	namespace, pod, _ := strings.Cut(e.Pod, "/")
	answer := Answer{Change: "evict pod/" + e.Pod}
	err := a.client.CoreV1().Pods(namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: namespace, Name: pod},
		DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
	if apierrors.IsTooManyRequests(err) {
		answer.Verdict, answer.Reason = NotNow, err.Error()
		return answer
	}
	if apierrors.IsNotFound(err) {
		err = nil // it has gone by itself
	}
	return judge(answer, err)
}

func judge(a Answer, err error) Answer {
	a.Verdict = Accepted
	if err != nil {
		a.Verdict, a.Reason = Refused, err.Error()
	}
	return a
}

func name(o plan.Object) string {
	out := strings.ToLower(o.Kind) + "/"
	if o.Namespace != "" {
		out += o.Namespace + "/"
	}
	return out + o.Name
}
