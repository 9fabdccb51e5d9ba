package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Bounds of an access review. An answer takes the server a millisecond unless it asks
// somebody else, which is what the deadline is for.
const (
	reviewsAtOnce  = 8
	reviewDeadline = 20 * time.Second
)

// ReviewAccess asks the server which of the rights the caller has. It asks for
// everything first, so that an administrator costs one request; and for a right that is
// wanted in several namespaces, first for all of them at once. What is not answered
// within the deadline is Unanswered; the error is the end of ctx alone.
func ReviewAccess(ctx context.Context, client kubernetes.Interface, rights []Right) (*Access, error) {
	within, stop := context.WithTimeoutCause(ctx, reviewDeadline, fmt.Errorf("no answer within %s", reviewDeadline))
	defer stop()
	r := &reviewer{client: client}
	var paths []Right
	for _, right := range rights {
		if right.Path != "" {
			paths = append(paths, right)
		}
	}
	out := &Access{}
	switch all := r.ask(within, Everything()); all.Answer {
	case Allowed:
		out.All = true
		r.askAll(within, paths)
	case Denied:
		r.review(within, rights)
	default:
		// Nobody answers. To ask again for each right would only take its time.
		for _, right := range rights {
			r.out = append(r.out, AccessReview{Right: right, Answer: Unanswered, Reason: all.Reason})
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out.Reviews = SortAccess(r.out)
	return out, nil
}

type reviewer struct {
	client kubernetes.Interface
	mu     sync.Mutex
	out    []AccessReview
}

// review asks for each right, but for one that is wanted in several namespaces only if
// the caller does not have it in all.
func (r *reviewer) review(ctx context.Context, rights []Right) {
	in := map[Right][]string{} // the namespaces of a right
	for _, right := range rights {
		wide := right
		wide.Namespace = ""
		if !slices.Contains(in[wide], right.Namespace) {
			in[wide] = append(in[wide], right.Namespace)
		}
	}
	var first, single []Right
	for wide, namespaces := range in {
		if len(namespaces) > 1 {
			first = append(first, wide)
			continue
		}
		wide.Namespace = namespaces[0]
		single = append(single, wide)
	}
	r.askAll(ctx, slices.Concat(first, single))
	wide := &Access{Reviews: SortAccess(slices.Clone(r.out))}
	var second []Right
	for _, right := range first {
		if answer, _ := wide.Look(right); answer == Allowed {
			continue
		}
		for _, namespace := range in[right] {
			if namespace != "" {
				right.Namespace = namespace
				second = append(second, right)
			}
		}
	}
	r.askAll(ctx, second)
}

func (r *reviewer) askAll(ctx context.Context, rights []Right) {
	var g errgroup.Group
	g.SetLimit(reviewsAtOnce)
	for _, right := range rights {
		g.Go(func() error {
			answer := r.ask(ctx, right)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.out = append(r.out, answer)
			return nil
		})
	}
	_ = g.Wait() // nothing in it fails
}

func (r *reviewer) ask(ctx context.Context, right Right) AccessReview {
	out := AccessReview{Right: right, Answer: Unanswered}
	answer, err := r.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, question(right), metav1.CreateOptions{})
	switch {
	case ctx.Err() != nil:
		out.Reason = context.Cause(ctx).Error()
	case err != nil:
		out.Reason = err.Error()
	case answer.Status.Allowed:
		out.Answer = Allowed
	default:
		out.Answer, out.Reason = Denied, answer.Status.Reason
		if out.Reason == "" {
			out.Reason = answer.Status.EvaluationError
		}
	}
	return out
}

func question(right Right) *authorizationv1.SelfSubjectAccessReview {
	q := &authorizationv1.SelfSubjectAccessReview{}
	if right.Path != "" {
		q.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: right.Path, Verb: right.Verb}
		return q
	}
	resource, sub, _ := strings.Cut(right.Resource, "/")
	q.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace: right.Namespace, Verb: right.Verb, Group: right.Group, Version: "*",
		Resource: resource, Subresource: sub, Name: right.Name,
	}
	return q
}
