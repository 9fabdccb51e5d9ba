package cli

import (
	"strings"
	"testing"

	"github.com/dramigrate/dramigrate/internal/plan"
)

// Wrong usage is found before the cluster is asked anything that matters, and said
// in one line on stderr.
func TestUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ args, want string }{
		{"plan", "name the pool"},
		{"plan a b", "one POOL is expected"},
		{"plan a --selector x=y", "either POOL or --selector"},
		{"plan --for nothing a", `--for "nothing"`},
		{"plan --for prepare a", "no pool is expected"},
		{"plan a --driver-manifests .", "--driver-manifests is for prepare"},
		{"plan a --max-unavailable 0", `max-unavailable "0"`},
		{"plan a --drain some", `--drain "some"`},
		{"plan a --drain-timeout 0s", "--drain-timeout"},
		{"plan a --soak -1s", "--soak"},
		{"plan a -o xml", "must be one of table, yaml, json"},
		{"plan nowhere", `pool "nowhere"`},
		{"plan --selector a(", "selector"},
		{"plan --selector no=node", "selects no node"},
		{"version extra", `unexpected argument "extra"`},
		{"pools extra", `unexpected argument "extra"`},
		{"status a b", "one POOL is expected"},
		{"status nowhere", `pool "nowhere"`},
		{"verify", "name the pool"},
		{"verify gpu-a --canary", "give the image of the helper pods by --helper-image"},
		{"unlock", "name one POOL"},
		{"unlock a --shared", "name one POOL"},
		{"apply gpu-a --helper-image x", "give --yes"},
		{"rollback gpu-a", "give --yes"},
		{"prepare", "give --yes"},
		{"unprepare", "give --yes"},
		{"apply gpu-a --yes", "DRAMIGRATE_HELPER_IMAGE"},
		{"apply --yes --helper-image x", "name the pool"},
		{"apply gpu-a --dry-run=maybe", `--dry-run "maybe"`},
		{"apply gpu-a --yes --helper-image x --lock-ttl 0s", "--lock-ttl"},
		{"prepare a --yes", "for the whole cluster"},
		{"prepare --yes --plugin-rollout never", `--plugin-rollout "never"`},
		{"apply --plan plan.yaml --soak 1s --yes", "leave --soak out, or make the plan anew with it"},
		{"rollback gpu-a --soak 1s", "unknown flag: --soak"},
		{"node-probe", "--node is required"},
		{"pools --tool-namespace A/B", `--tool-namespace "A/B"`},
		{"plan gpu-a --resource gpu", `--resource "gpu"`},
		{"plan gpu-a --driver GPU_NVIDIA", `--driver "GPU_NVIDIA"`},
		{"plan gpu-a --out same --report html=./same", "both write to same"},
		{"apply gone.yaml --yes", "nor is there a file gone.yaml"},

		// Flags that would be left out without a word.
		{"plan gpu-a --skip-reason CHG-7", "--skip-reason says why --skip is right: give --skip CODE"},
		{"check gpu-a --skip-reason CHG-7", "--skip-reason says why --skip is right"},
		{"apply gpu-a --yes --helper-image x --skip-reason CHG-7", "--skip-reason says why --skip is right"},
		{"unprepare --yes --skip-reason CHG-7", "--skip-reason says why --skip is right"},
		{"apply --plan plan.yaml --skip DRM006 --yes", "leave --skip out, or make the plan anew with it"},
		{"apply --plan plan.yaml --skip-reason CHG-7 --yes", "leave --skip-reason out, or make the plan anew with it"},
		{"prepare --plan plan.yaml --edit-owned --yes", "leave --edit-owned out, or make the plan anew with it"},
		{"prepare --plan plan.yaml --wait-for-owner --yes", "leave --wait-for-owner out, or make the plan anew with it"},
		{"check pod/p --into gpu-b", "--into is about pools; leave it out with pod/NAME"},
		{"check pod/p --delete-emptydir-data", "--delete-emptydir-data is about pools"},
		{"check pod/p --evict-unmanaged", "--evict-unmanaged is about pools"},
		{"check pod/p --selector a=b", "--selector is about pools"},
		{"check --for prepare --drain all", "--drain goes with --for apply or --for rollback"},
		{"check --for verify,unprepare --evict-unmanaged", "--evict-unmanaged goes with --for apply or --for rollback"},
		{"check gpu-a --for rollback,unprepare --probe-gate", "--probe-gate goes with --for prepare, apply or verify"},
		{"plan --for prepare --drain all", "--drain is for apply and rollback: leave it out of a plan for prepare"},
		{"plan --for prepare --helper-image x", "--helper-image is for apply and rollback"},
		{"plan --for unprepare --plugin-rollout on-delete", "--plugin-rollout is for prepare: leave it out of a plan for unprepare"},
		{"plan --for unprepare --probe-gate", "--probe-gate is for prepare and apply"},
		{"plan gpu-a --edit-owned", "--edit-owned is for prepare: leave it out of a plan for apply"},
		{"plan gpu-a --wait-for-owner", "--wait-for-owner is for prepare"},
		{"plan gpu-a --for rollback --soak 1m", "--soak is for apply: leave it out of a plan for rollback"},
		{"plan gpu-a --for rollback --kubelet-grace 1m", "--kubelet-grace is for apply"},
		{"plan gpu-a --into gpu-b --kubelet-grace 1m", "--kubelet-grace is of nodes that the plugin leaves"},
		{"verify gpu-a --lock-wait 1m", "--lock-wait goes with --canary: give that as well, or leave --lock-wait out"},
		{"verify gpu-a --probe --helper-image x --lock-wait 1m", "--lock-wait goes with --canary"},
		{"verify gpu-a --parallel 2", "--parallel goes with --probe"},
		{"verify gpu-a --timeout 1m", "--timeout goes with --probe"},
		{"verify gpu-a --watch --timeout 1m", "--timeout goes with --probe"},
		{"verify gpu-a --processes", "--processes goes with --probe"},
		{"verify gpu-a --keep-logs logs", "--keep-logs goes with --probe"},
		{"verify gpu-a --kubelet-root /k", "--kubelet-root goes with --probe"},
		{"verify gpu-a --canary --helper-image x --driver-root /d", "--driver-root goes with --probe"},
		{"verify gpu-a --canary --helper-image x --runtime-class r", "--runtime-class goes with --probe"},
		{"verify gpu-a --helper-image x", "--helper-image goes with --probe or --canary"},
		{"verify gpu-a --helper-pull-secret x", "--helper-pull-secret goes with --probe or --canary"},
		{"snapshot --force", "--force goes with --out: give that as well, or leave --force out"},
		{"node-probe --node a --parts kubelet --processes", "--processes goes with --parts nvml"},
		{"node-probe --node a --parts kubelet,cdi --driver-root /d", "--driver-root goes with --parts nvml"},
		{"node-probe --node a --parts kubelet,cdi --nvml-library /l", "--nvml-library goes with --parts nvml"},
		{"node-probe --node a --proc /host/proc", "--proc goes with --processes"},
		{"node-probe --node a --parts kubelet,nvml --cdi-dir /c", "--cdi-dir goes with --parts cdi"},
		{"node-probe --node a --parts kubelet --api none.yaml", "--api is for a verdict"},
	} {
		t.Run(c.args, func(t *testing.T) {
			o := invoke(t, preparedCluster(), nil, done, strings.Fields(c.args)...)
			if o.code != ExitUsage || !strings.Contains(o.err, c.want) {
				t.Errorf("exit code %d, want %d; stderr %q, want %q in it", o.code, ExitUsage, o.err, c.want)
			}
			if o.stdout != "" || len(o.ran) != 0 || strings.Count(o.err, "Error: ") != 1 {
				t.Errorf("stdout %q, %d runs, stderr %q", o.stdout, len(o.ran), o.err)
			}
		})
	}
}

// Commands in messages are those that a person can type, wherever they come from.
func TestAsTyped(t *testing.T) {
	const hint = "node/a-1: a budget; run `dramigrate apply gpu-a` to go on, or `dramigrate rollback gpu-a` to go back; made by dramigrate v1"
	const want = "node/a-1: a budget; run `kubectl dramigrate apply gpu-a` to go on, or `kubectl dramigrate rollback gpu-a` to go back; made by dramigrate v1"
	if got := asTyped(hint, "kubectl dramigrate"); got != want {
		t.Errorf("%s", got)
	}
	if got := asTyped(hint, "dramigrate"); got != hint {
		t.Errorf("%s", got)
	}
}

func TestNextThingToTypeAsPlugin(t *testing.T) {
	var b strings.Builder
	a := &app{Streams: Streams{Err: &b}, name: "kubectl dramigrate"}
	a.next(&plan.Plan{Operation: plan.Migrate, Pool: &plan.Pool{Name: "gpu-a"}})
	a.next(&plan.Plan{Operation: plan.Prepare})
	const want = "Pool gpu-a is on DRA. Look: kubectl dramigrate verify gpu-a. Back: kubectl dramigrate rollback gpu-a\n" +
		"Prepared. Next: kubectl dramigrate pools, then kubectl dramigrate plan POOL\n"
	if got := b.String(); got != want {
		t.Errorf("%s", got)
	}
}
