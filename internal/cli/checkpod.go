package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/pending"
	"github.com/dramigrate/dramigrate/internal/report"
)

// podRef is the pod that `check pod/[NAMESPACE/]NAME` is about.
type podRef struct{ namespace, name string }

// podArg recognises a pod among the arguments of check; a pool's name has no slash.
func podArg(args []string) (podRef, bool, error) {
	if len(args) != 1 {
		return podRef{}, false, nil
	}
	kind, rest, _ := strings.Cut(args[0], "/")
	if kind != "pod" && kind != "pods" && kind != "po" || rest == "" && args[0] == kind {
		return podRef{}, false, nil
	}
	var ref podRef
	namespace, name, both := strings.Cut(rest, "/")
	if ref.name = namespace; both {
		ref = podRef{namespace, name}
	}
	if bad := validation.IsDNS1123Subdomain(ref.name); len(bad) > 0 {
		return podRef{}, true, usageError("%q: pod/NAME or pod/NAMESPACE/NAME is expected: %s", args[0], bad[0])
	}
	if bad := validation.IsDNS1123Label(ref.namespace); both && len(bad) > 0 {
		return podRef{}, true, usageError("%q: namespace: %s", args[0], bad[0])
	}
	return ref, true, nil
}

// forPod refuses what says nothing about a pod.
func (o *checkOptions) forPod(cmd *cobra.Command) error {
	about := []string{"namespace", "output", "from"}
	var wrong error
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if wrong == nil && f.Changed && !slices.Contains(about, f.Name) {
			wrong = usageError("--%s is about pools; leave it out with pod/NAME", f.Name)
		}
	})
	if wrong != nil {
		return wrong
	}
	if formats := []string{"table", "json", "yaml"}; !slices.Contains(formats, o.format.value) {
		return usageError("--output %q: with pod/NAME it must be one of %s", o.format.value, strings.Join(formats, ", "))
	}
	return nil
}

// runPod says why a pod waits or fails.
func (o *checkOptions) runPod(ctx context.Context, ref podRef) error {
	a := o.app
	switch {
	case ref.namespace != "" && o.podNamespace != "" && ref.namespace != o.podNamespace:
		return usageError("pod/%s/%s is not in --namespace %s", ref.namespace, ref.name, o.podNamespace)
	case ref.namespace == "":
		ref.namespace = o.podNamespace
	}
	if ref.namespace == "" && !a.offline() {
		var err error
		if ref.namespace, err = a.PodNamespace(); err != nil {
			return err
		}
	}
	s, written, err := a.lookForPod(ctx)
	if err != nil {
		return err
	}
	pod, err := ref.find(s)
	if err != nil {
		return err
	}
	options := pending.Options{Resource: a.resource, Driver: a.driver}
	options.Now, _ = a.asOf(s)
	events, unseen, err := a.podEvents(ctx, pod, written)
	if err != nil {
		return err
	}
	options.Unseen = unseen
	d := pending.Diagnose(s, pod, events, options)
	if err := o.format.print(a.Out, d, func() error { return report.Diagnosis(a.sheet(), &d) }); err != nil {
		return err
	}
	switch d.Cause {
	case pending.None:
		return nil
	case pending.Unknown:
		return silent{ExitUnknown}
	default:
		return silent{ExitBlocked}
	}
}

// find looks for the pod in the Snapshot; without a namespace, in all of them.
func (r podRef) find(s *cluster.Snapshot) (*cluster.Pod, error) {
	if reason, unread := s.IsUnknown(cluster.PartPods); unread && len(s.Pods) == 0 {
		return nil, withCode(ExitUnknown, "pod/%s: pods could not be read: %s", r.name, reason)
	}
	var found *cluster.Pod
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Name != r.name || r.namespace != "" && p.Namespace != r.namespace {
			continue
		}
		if found != nil {
			return nil, usageError("pod/%s is in namespaces %s and %s: say which by -n", r.name, found.Namespace, p.Namespace)
		}
		found = p
	}
	switch {
	case found != nil:
		return found, nil
	case r.namespace == "":
		return nil, usageError("pod/%s: there is none in any namespace", r.name)
	default:
		return nil, usageError("pod/%s: there is none in namespace %s; name another by -n", r.name, r.namespace)
	}
}

// lookForPod looks at the cluster, or at files and the events that they hold.
func (a *app) lookForPod(ctx context.Context) (s *cluster.Snapshot, written []cluster.AboutPod, err error) {
	if !a.offline() {
		s, err = a.look(ctx, cluster.LoadOptions{})
		return s, nil, err
	}
	s, err = a.lookAtFilesAndEvents(ctx, cluster.LoadOptions{}, func(e cluster.AboutPod) { written = append(written, e) })
	return s, written, err
}

// podEvents are the pod's events: the cluster's, or those written in files. Without them
// there is less to go by, and no reason to give up.
func (a *app) podEvents(ctx context.Context, pod *cluster.Pod, written []cluster.AboutPod) ([]cluster.PodEvent, []cluster.Unknown, error) {
	const part = "events"
	switch {
	case a.offline() && len(written) == 0:
		return nil, []cluster.Unknown{{Part: part, Reason: "the files hold none about pods; add what `kubectl get events -A -o yaml` prints"}}, nil
	case a.offline():
		return cluster.EventsOf(written, pod.Namespace, pod.Name, pod.UID), nil, nil
	}
	client, err := a.Client()
	if err != nil {
		return nil, nil, err
	}
	events, err := cluster.PodEvents(ctx, client, pod.Namespace, pod.Name, pod.UID)
	switch {
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case err != nil:
		for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(next) {
			err = next
		}
		return nil, []cluster.Unknown{{Part: part, Reason: err.Error()}}, nil
	}
	return events, nil, nil
}
