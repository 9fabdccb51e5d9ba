package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// What a person has decided of a finding before the run stands after it as well; what
// verify itself has seen is not for the file to decide.
func TestVerifyTakesTheSkipsOfTheIntentFile(t *testing.T) {
	const reason = "CHG-7, no pod here asks for the name"
	for _, tt := range []struct {
		name, file string
		code       int
		tells      string
	}{
		{"without", "pools: [{name: gpu-a}]\n", ExitBlocked, "BLOCKER DRM036"},
		{"this finding", "skips: [{code: DRM036, object: server, reason: '" + reason + "'}]\n", ExitOK, reason},
		{"this finding, of the pool", "pools: [{name: gpu-a, skips: [{code: DRM036, object: server, reason: '" + reason + "'}]}]\n", ExitOK, reason},
		{"another pool's", "pools: [{name: gpu-a}, {name: gpu-b, skips: [{code: DRM036, object: server, reason: '" + reason + "'}]}]\n", ExitBlocked, "BLOCKER DRM036"},
		{"another object's", "skips: [{code: DRM036, object: node/a, reason: '" + reason + "'}]\n", ExitBlocked, "BLOCKER DRM036"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects := movedCluster(t)
			writeConfig(t, tt.file)
			for _, o := range objects {
				if s, ok := o.(*resourcev1.ResourceSlice); ok {
					for i := range s.Spec.Devices {
						s.Spec.Devices[i].NodeAllocatableResources = map[corev1.ResourceName]resourcev1.NodeAllocatableResource{corev1.ResourceCPU: {}}
					}
				}
			}
			o := invoke(t, objects, nil, done, "verify", "gpu-a", "--config", "migration.yaml")
			if out := strings.Join(strings.Fields(o.stdout), " "); o.code != tt.code || !strings.Contains(out, tt.tells) {
				t.Errorf("exit code %d, want %d; want %q in:\n%s%s", o.code, tt.code, tt.tells, o.stdout, o.err)
			}
		})
	}
}
