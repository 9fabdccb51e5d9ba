package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/offline"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/wholefile"
	"github.com/dramigrate/dramigrate/internal/words"
)

type snapshotOptions struct {
	app   *app
	out   string
	force bool
}

func newSnapshot(a *app) *cobra.Command {
	o := &snapshotOptions{app: a}
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Write the cluster's state, as far as plans depend on it, into a file or folder",
		Long: `Write what this tool reads of the cluster as YAML, for --from: a plan made from it is,
byte for byte, the plan that the same caller makes on the cluster at that moment, but
for rights to the objects of --driver-manifests (DRM030). Reads only.

It holds nodes, DaemonSets, ResourceSlices, DeviceClasses, ResourceClaims and
PodDisruptionBudgets without what no plan depends on, of pods only what one does, and
the tool's own journals and locks, and what whoever takes it may do. For the checks it holds also namespaces,
ResourceQuotas, LimitRanges, PriorityClasses, the workloads that ask for devices, the
few fields that matter of the objects of GPU operators, and the expressions about
devices in Prometheus rules, ServiceMonitors, autoscalers and Grafana dashboards. It
holds no Secrets, and no values of environment variables but those that decide how
devices are handed out (such as MIG_STRATEGY and NVIDIA_DRIVER_ROOT). Names, labels,
annotations of nodes, images, messages of pods that wait, and the command lines of
DaemonSets are in it.

What may not be read is named in the snapshot, and is unknown in every plan from it;
that is a warning here and no failure (exit code 0).`,
		Example: `  dramigrate snapshot --out cluster.yaml
  dramigrate snapshot --out cluster/          # a file for each kind
  dramigrate plan pool-a --from cluster.yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.force && o.out == "" {
				return idle(cmd.Flags(), "--out", "force")
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.out, "out", "", "write to this file, or into this folder if there is one of the name or it ends in /; standard output by default")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace what is there")
	return cmd
}

func (o *snapshotOptions) run(ctx context.Context) error {
	folder, err := o.check()
	if err != nil {
		return err
	}
	s, err := o.app.look(ctx, cluster.LoadOptions{Namespace: o.app.namespace, Advice: true})
	if err != nil {
		return err
	}
	if err := o.app.review(ctx, s, o.app.rightsOfAllRuns(s)); err != nil {
		return err
	}
	about := offline.About{ToolVersion: o.app.build.Version, Namespace: o.app.namespace, Taken: o.app.Clock().Now()}
	var objects map[string]int
	switch {
	case o.out == "":
		objects, err = offline.Write(o.app.Out, s, about)
	case folder:
		objects, err = offline.WriteFolder(o.out, s, about)
	default:
		err = wholefile.Write(o.out, func(w io.Writer) (err error) {
			objects, err = offline.Write(w, s, about)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	o.summary(s, objects)
	return nil
}

// check looks at --out before the cluster is read, and says whether it is a folder.
func (o *snapshotOptions) check() (folder bool, err error) {
	if o.out == "" {
		return false, nil
	}
	folder = strings.HasSuffix(o.out, string(os.PathSeparator))
	info, err := os.Stat(o.out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return folder, nil
	case err != nil:
		return false, fmt.Errorf("--out: %w", err)
	case !info.IsDir() && !o.force:
		return false, fmt.Errorf("--out %s: is there already; --force replaces it", o.out)
	case !info.IsDir():
		return false, nil
	}
	entries, err := os.ReadDir(o.out)
	if err != nil {
		return true, fmt.Errorf("--out: %w", err)
	}
	if len(entries) > 0 && !o.force {
		return true, fmt.Errorf("--out %s: the folder is not empty; --force replaces a snapshot in it and leaves other files", o.out)
	}
	return true, nil
}

func (o *snapshotOptions) summary(s *cluster.Snapshot, objects map[string]int) {
	where := ""
	if o.out != "" {
		where = " to " + o.out
	}
	w := o.app.Err
	maps.DeleteFunc(objects, func(_ string, n int) bool { return n == 0 })
	fmt.Fprintf(w, "Wrote%s: cluster %s, Kubernetes %s: %s\n", where, orUnknown(string(s.Identity.UID)), orUnknown(s.Identity.ServerVersion), counts(objects))
	for _, u := range s.Unknown {
		fmt.Fprintf(w, "Warning: %s\n", report.Clean(u.Part+" could not be read and will be unknown in plans: "+u.Reason))
	}
	if o.out != "" {
		fmt.Fprintf(w, "To plan from it: dramigrate plan POOL --from %s\n", words.Shell(o.out))
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return report.Clean(s)
}
