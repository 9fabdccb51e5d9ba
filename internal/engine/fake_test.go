package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// newServer is client-go's fake with what these tests are about and it leaves out:
// resource versions and their conflicts, UIDs, JSON patches as the API server
// applies and answers them, and field selectors.
func newServer(t *testing.T, objects ...runtime.Object) *fake.Clientset {
	t.Helper()
	for i, o := range objects {
		a, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		a.SetResourceVersion(strconv.Itoa(i + 1))
		if a.GetUID() == "" {
			a.SetUID(types.UID("uid-of-" + a.GetName()))
		}
	}
	client := fake.NewClientset(objects...)
	s := &server{tracker: client.Tracker(), version: len(objects)}
	client.PrependReactor("create", "*", s.create)
	client.PrependReactor("update", "*", s.update)
	client.PrependReactor("patch", "*", s.patch)
	client.PrependReactor("list", "*", s.list)
	client.PrependWatchReactor("*", s.watch)
	return client
}

type server struct {
	mu      sync.Mutex
	tracker clienttesting.ObjectTracker
	version int
}

func (s *server) stamp(o runtime.Object) error {
	a, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	s.version++
	a.SetResourceVersion(strconv.Itoa(s.version))
	if a.GetUID() == "" {
		a.SetUID(types.UID("uid-" + strconv.Itoa(s.version)))
	}
	return nil
}

func (s *server) create(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "" {
		return false, nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := action.(clienttesting.CreateAction).GetObject().DeepCopyObject()
	if err := s.stamp(o); err != nil {
		return true, nil, err
	}
	if err := s.tracker.Create(action.GetResource(), o, action.GetNamespace()); err != nil {
		return true, nil, err
	}
	return true, o, nil
}

func (s *server) update(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := action.(clienttesting.UpdateAction).GetObject().DeepCopyObject()
	sent, err := meta.Accessor(o)
	if err != nil {
		return true, nil, err
	}
	old, err := s.tracker.Get(action.GetResource(), action.GetNamespace(), sent.GetName())
	if err != nil {
		return true, nil, err
	}
	have, err := meta.Accessor(old)
	if err != nil {
		return true, nil, err
	}
	if v := sent.GetResourceVersion(); v != "" && v != have.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), sent.GetName(), errors.New("the object has been modified"))
	}
	if err := s.stamp(o); err != nil {
		return true, nil, err
	}
	if err := s.tracker.Update(action.GetResource(), o, action.GetNamespace()); err != nil {
		return true, nil, err
	}
	return true, o, nil
}

func (s *server) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := action.(clienttesting.PatchAction)
	if p.GetPatchType() != types.JSONPatchType {
		return true, nil, fmt.Errorf("patch type %s", p.GetPatchType())
	}
	old, err := s.tracker.Get(action.GetResource(), action.GetNamespace(), p.GetName())
	if err != nil {
		return true, nil, err
	}
	doc, err := json.Marshal(old)
	if err != nil {
		return true, nil, err
	}
	ops, err := jsonpatch.DecodePatch(p.GetPatch())
	if err != nil {
		return true, nil, apierrors.NewBadRequest(err.Error())
	}
	doc, err = ops.Apply(doc)
	if err != nil {
		// As apiserver/pkg/endpoints/handlers/patch.go does.
		return true, nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	o := old.DeepCopyObject()
	switch o.(type) {
	case *corev1.Node:
		o = &corev1.Node{}
	default:
		return true, nil, fmt.Errorf("patch of %T", o)
	}
	if err := json.Unmarshal(doc, o); err != nil {
		return true, nil, err
	}
	if err := s.stamp(o); err != nil {
		return true, nil, err
	}
	if err := s.tracker.Update(action.GetResource(), o, action.GetNamespace()); err != nil {
		return true, nil, err
	}
	return true, o, nil
}

// selected applies the field selectors that the API server knows for these kinds.
func selected(o runtime.Object, by fields.Selector) bool {
	a, err := meta.Accessor(o)
	if err != nil {
		return false
	}
	set := fields.Set{"metadata.name": a.GetName()}
	switch o := o.(type) {
	case *corev1.Pod:
		set["spec.nodeName"] = o.Spec.NodeName
	case *resourcev1.ResourceSlice:
		if o.Spec.NodeName != nil {
			set["spec.nodeName"] = *o.Spec.NodeName
		}
	}
	return by.Matches(set)
}

func (s *server) list(action clienttesting.Action) (bool, runtime.Object, error) {
	l := action.(clienttesting.ListActionImpl)
	all, err := s.tracker.List(l.GetResource(), l.GetKind(), l.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	items, err := meta.ExtractList(all)
	if err != nil {
		return true, nil, err
	}
	var kept []runtime.Object
	for _, o := range items {
		if selected(o, l.GetListRestrictions().Fields) {
			kept = append(kept, o)
		}
	}
	return true, all, meta.SetList(all, kept)
}

func (s *server) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	w := action.(clienttesting.WatchActionImpl)
	stream, err := s.tracker.Watch(w.GetResource(), w.GetNamespace(), w.ListOptions)
	if err != nil {
		return true, nil, err
	}
	return true, watch.Filter(stream, func(e watch.Event) (watch.Event, bool) {
		return e, selected(e.Object, w.GetWatchRestrictions().Fields)
	}), nil
}
