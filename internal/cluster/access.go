package cluster

import (
	"cmp"
	"slices"
	"strings"
)

// Right is one thing that a caller may be allowed to do, as RBAC names it.
type Right struct {
	Verb  string `json:"verb"`
	Group string `json:"group,omitempty"`
	// Resource is the plural, with the subresource behind a slash ("pods/eviction").
	Resource string `json:"resource,omitempty"`
	// Namespace is empty for what is cluster-scoped, and for a right in all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Name is empty for a right to all objects of the resource.
	Name string `json:"name,omitempty"`
	// Path is a URL outside of the API's resources ("/version"), in place of Resource.
	Path string `json:"path,omitempty"`
}

// Everything is the right of those whom RBAC refuses nothing: a rule of wildcards.
func Everything() Right { return Right{Verb: "*", Group: "*", Resource: "*"} }

// Kind names the resource and where, without the verb: "daemonsets.apps in namespace x".
func (r Right) Kind() string {
	if r.Path != "" {
		return r.Path
	}
	out := r.Resource
	if r.Group != "" {
		resource, sub, found := strings.Cut(r.Resource, "/")
		out = resource + "." + r.Group
		if found {
			out += "/" + sub
		}
	}
	if r.Name != "" {
		out += " " + r.Name
	}
	if r.Namespace != "" {
		out += " in namespace " + r.Namespace
	}
	return out
}

func (r Right) String() string { return r.Verb + " " + r.Kind() }

// Answer is what the server said when it was asked for a right.
type Answer string

// The answers. NotAsked is for a right of which nothing is known because nobody asked,
// Unanswered for one of which nothing is known although somebody did.
const (
	Allowed    Answer = "allowed"
	Denied     Answer = "denied"
	Unanswered Answer = "unanswered"
	NotAsked   Answer = ""
)

// AccessReview is the answer for one right.
type AccessReview struct {
	Right  `json:",inline"`
	Answer Answer `json:"answer"`
	// Reason is the server's, or why there is no answer.
	Reason string `json:"reason,omitempty"`
}

// Access is what the caller who has read the Snapshot may do, as far as it was asked.
type Access struct {
	// All says that the caller may do everything. Nothing else was asked then.
	All bool `json:"all,omitempty"`
	// Reviews are sorted, each right once.
	Reviews []AccessReview `json:"reviews,omitempty"`
}

// Look is what is known of a right. Whoever has it in all namespaces, or to all objects,
// has it in each; whoever is denied that may still have it here, which counts as not
// asked.
func (a *Access) Look(r Right) (Answer, string) {
	switch {
	case a == nil:
		return NotAsked, ""
	case a.All && r.Path == "":
		return Allowed, ""
	}
	anyName, anywhere, both := r, r, r
	anyName.Name, anywhere.Namespace = "", ""
	both.Name, both.Namespace = "", ""
	for _, wider := range []Right{anyName, anywhere, both} {
		if have, found := a.find(wider); found && have.Answer == Allowed {
			return Allowed, ""
		}
	}
	have, _ := a.find(r)
	return have.Answer, have.Reason
}

func (a *Access) find(r Right) (AccessReview, bool) {
	at, found := slices.BinarySearchFunc(a.Reviews, r, func(have AccessReview, want Right) int { return compareRights(have.Right, want) })
	if !found {
		return AccessReview{}, false
	}
	return a.Reviews[at], true
}

func compareRights(a, b Right) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Path, b.Path),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Verb, b.Verb))
}

// SortAccess brings reviews into the order that Access promises, each right once.
func SortAccess(reviews []AccessReview) []AccessReview {
	slices.SortStableFunc(reviews, func(a, b AccessReview) int { return compareRights(a.Right, b.Right) })
	return slices.CompactFunc(reviews, func(a, b AccessReview) bool { return a.Right == b.Right })
}
