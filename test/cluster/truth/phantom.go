package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dramigrate/dramigrate/test/cluster/internal/build"
)

// comesBack refuses the kubelet's status updates around the end of its grace. The
// kubelet says of a removed resource only once that its capacity is 0; with that update
// lost it takes the capacity from the node as it is, and the allocatable from that.
func comesBack(ctx context.Context, s *scene) error {
	if err := s.driverOff(ctx, s.node); err != nil {
		return err
	}
	if err := s.pluginOn(ctx, s.node); err != nil {
		return err
	}
	if err := s.refusal(ctx); err != nil {
		return err
	}
	left := time.Now()
	if err := s.pluginOff(ctx, s.node); err != nil {
		return err
	}
	gone := time.Now()
	if err := s.refuseStatus(ctx); err != nil {
		return err
	}
	if late := time.Since(left); late >= build.QuickEndpointGrace {
		return errors.Join(fmt.Errorf("%w: updates are refused %s after the plugin began to leave", errTooSlow, late), s.acceptStatus(ctx))
	}
	// What the kubelet does in this time is nowhere to be seen.
	timer := time.NewTimer(time.Until(gone.Add(build.QuickEndpointGrace + still)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	if err := s.acceptStatus(ctx); err != nil {
		return err
	}
	all := fmt.Sprint(s.gpus[s.node])
	err := eventually(ctx, patience, func() string {
		if err := s.are(ctx, all, all); err != nil {
			return err.Error()
		}
		return ""
	})
	if err != nil {
		return err
	}
	s.saw("capacity and allocatable are %s again %s after the plugin's pod was gone", all, time.Since(gone).Round(time.Second))
	if err := s.pod(ctx, "legacy", gpu, 1); err != nil {
		return err
	}
	is, err := s.becomes(ctx, "legacy", "started without a GPU", func(is podIs) bool {
		return is.state == failed && is.reason == "" && is.claim == "" && len(is.gpus) == 0
	})
	if err != nil {
		return err
	}
	s.saw("the pod is %s", is)
	return s.are(ctx, all, all)
}

// errTooSlow is returned when the grace may have ended before it should.
var errTooSlow = errors.New("the proof was too slow for the kubelet's grace")

// acceptStatus ends what refuseStatus began.
func (s *scene) acceptStatus(ctx context.Context) error {
	return s.Client().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, s.own("refuse"), metav1.DeleteOptions{})
}

// refusal is the policy without which refuseStatus has nothing to put in force.
func (s *scene) refusal(ctx context.Context) error {
	fail := admissionv1.Fail
	_, err := s.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.own("refuse")},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes/status"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{Name: "node", Expression: fmt.Sprintf("object.metadata.name == '%s'", s.node)}},
			Validations:     []admissionv1.Validation{{Expression: "false", Message: "refused on purpose"}},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // the proof is tried again
	}
	return err
}

// refuseStatus returns when the API server refuses updates of the node's status.
func (s *scene) refuseStatus(ctx context.Context) error {
	name := s.own("refuse")
	_, err := s.Client().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	try := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	return eventually(ctx, patience, func() string {
		_, err := s.Client().CoreV1().Nodes().Patch(ctx, s.node, types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`), try, "status")
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			return ""
		}
		return fmt.Sprintf("updates of the status of node/%s are not refused yet: %v", s.node, err)
	})
}
