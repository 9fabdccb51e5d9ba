package plan

import (
	"fmt"
	"path"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dramigrate/dramigrate/internal/checks"
)

// Validate says which choice a run of the operation could not go by. It names a
// setting as the command line does, without the dashes.
func (s Settings) Validate(op Operation) error {
	if err := checks.ValidateSkips(s.Skips); err != nil {
		return fmt.Errorf("skip: %w", err)
	}
	if op == Prepare || op == Unprepare {
		if s.PluginRollout != "" && s.PluginRollout != RollingUpdate && s.PluginRollout != OnDelete {
			return fmt.Errorf("plugin-rollout %q: must be %s or %s", s.PluginRollout, RollingUpdate, OnDelete)
		}
		if s.WaitForOwner.Duration < 0 {
			return fmt.Errorf("wait-for-owner %s: must not be negative", s.WaitForOwner.Duration)
		}
		if s.WaitForOwner.Duration > 0 && s.EditOwned {
			return fmt.Errorf("wait-for-owner %s: edit-owned leaves nothing to wait for; give one of them", s.WaitForOwner.Duration)
		}
		return nil
	}
	if _, err := MaxUnavailable(s.MaxUnavailable, 1); err != nil {
		return err
	}
	if s.Drain != DrainGPU && s.Drain != DrainAll {
		return fmt.Errorf("drain %q: must be %s or %s", s.Drain, DrainGPU, DrainAll)
	}
	if s.DrainTimeout.Duration <= 0 {
		return mustBePositive("drain-timeout", s.DrainTimeout.Duration)
	}
	if op == Migrate && s.KubeletGrace.Duration <= 0 {
		return mustBePositive("kubelet-grace", s.KubeletGrace.Duration)
	}
	if s.Soak.Duration < 0 {
		return fmt.Errorf("soak %s: must not be negative", s.Soak.Duration)
	}
	if s.DriverRoot != "" && (!path.IsAbs(s.DriverRoot) || s.DriverRoot != "/" && path.Clean(s.DriverRoot) != strings.TrimSuffix(s.DriverRoot, "/")) {
		return fmt.Errorf("driver-root %q: must be an absolute path of the node, without . and .. in it", s.DriverRoot)
	}
	if strings.ContainsFunc(s.HelperImage, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return fmt.Errorf("helper-image %q: must be the name of an image", s.HelperImage)
	}
	for flag, name := range map[string]string{"runtime-class": s.RuntimeClass, "helper-pull-secret": s.PullSecret} {
		if name == "" {
			continue
		}
		if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
			return fmt.Errorf("%s %q: %s", flag, name, bad[0])
		}
	}
	if s.DriverRoot != "" && s.RuntimeClass != "" {
		return fmt.Errorf("driver-root %s: runtime-class %s hands out the GPUs already; give one of them", s.DriverRoot, s.RuntimeClass)
	}
	if s.FirstBatch < 0 {
		return fmt.Errorf("first batch of %d nodes: must not be negative", s.FirstBatch)
	}
	seen := map[string]bool{}
	for _, n := range batched(s.Batches) {
		if n == "" || seen[n] {
			return fmt.Errorf("batches: node %q: every node must have a name and be in one batch", n)
		}
		seen[n] = true
	}
	d := s.Deadlines
	for _, limit := range []time.Duration{d.ClaimsGone.Duration, d.PluginGone.Duration, d.DriverReady.Duration, d.SlicesComplete.Duration,
		d.Canary.Duration, d.SlicesGone.Duration, d.PluginReady.Duration} {
		if limit < 0 {
			return fmt.Errorf("deadlines: %s: must not be negative", limit)
		}
	}
	return nil
}

func mustBePositive(name string, d time.Duration) error {
	return fmt.Errorf("%s %s: must be more than 0", name, d)
}
