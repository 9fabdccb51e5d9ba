// Command truth proves, on a real control plane and real kubelets, the claims about
// Kubernetes on which dramigrate's checks rest. docs/truth.md lists them with what was
// seen.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
)

func main() {
	// Ctrl-C ends the context; the cluster is stopped on the way out. The second one
	// ends the process, and the cluster with it.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	isInterrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case err == errFalse:
		os.Exit(1)
	case isInterrupted:
		fmt.Fprintln(os.Stderr, "Interrupted; nothing of the cluster is left.")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// errFalse is returned when a claim does not hold, which has been printed.
var errFalse = errors.New("a claim does not hold")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("truth", flag.ContinueOnError)
	flags.SetOutput(stderr)
	version := flags.String("kubernetes", cluster.DefaultVersion, "Kubernetes `version` of the control plane, and of the kubelets that are not said to be older")
	only := flags.String("only", ".", "prove the claims whose id matches this `regexp`, for instance ^K1.4")
	isVerbose := flags.Bool("v", false, "print what was seen as well")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	bare := strings.TrimPrefix(*version, "v")
	p := &prover{out: stdout, isVerbose: *isVerbose}
	var chosen []claim
	for _, c := range matching(claims(), pattern) {
		isExpected, err := c.expected(bare)
		if err != nil {
			return err
		}
		if !isExpected {
			p.printf("-- %-5s  %s: not claimed for %s, but for %s\n", c.id, c.says, bare, c.holds)
			continue
		}
		chosen = append(chosen, c)
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no claim about Kubernetes %s matches --only %s", bare, *only)
	}
	p.bench, err = newBench(ctx, "v"+bare, nodesOf(chosen), stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.bench.Stop()) }()
	if err := p.run(ctx, chosen); err != nil {
		return err
	}
	p.printf("truth: %d/%d claims hold on %s\n", p.held, len(chosen), bare)
	if p.held < len(chosen) {
		return errFalse
	}
	return nil
}
