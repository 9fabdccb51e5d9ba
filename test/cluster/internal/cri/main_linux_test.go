package cri

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// testerCommand is the shipped command of these tests: the test binary itself under another name.
const testerCommand = "tester"

// serverCommand is the test binary as a CRI server of its own.
const serverCommand = "cri"

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case shimCommand:
		fmt.Fprintln(os.Stderr, Shim(context.Background(), nil, os.Stdout, os.Stderr))
		os.Exit(1)
	case serverCommand:
		if err := Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	case testerCommand:
		os.Exit(tester(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// tester does its arguments, one after the other, and returns an exit code.
func tester(steps []string) int {
	for _, step := range steps {
		verb, arg, _ := strings.Cut(step, "=")
		var err error
		switch verb {
		case "echo":
			fmt.Println(arg)
		case "warn":
			fmt.Fprintln(os.Stderr, arg)
		case "partial":
			fmt.Print(arg)
		case "repeat": // one line of so many letters
			n, _ := strconv.Atoi(arg)
			fmt.Println(strings.Repeat("x", n))
		case "env":
			fmt.Println(arg + "=" + os.Getenv(arg))
		case "pid":
			fmt.Println("pid", os.Getpid())
		case "cwd":
			var dir string
			dir, err = os.Getwd()
			fmt.Println("cwd", dir)
		case "ids":
			groups, _ := os.Getgroups()
			fmt.Println("ids", os.Getuid(), os.Getgid(), groups)
		case "hostname":
			var name string
			name, err = os.Hostname()
			fmt.Println("hostname", name)
		case "cat":
			var raw []byte
			raw, err = os.ReadFile(arg)
			fmt.Printf("%s: %s\n", arg, raw)
		case "ls":
			var entries []os.DirEntry
			entries, err = os.ReadDir(arg)
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			fmt.Println(arg+":", names)
		case "write":
			if err = os.MkdirAll(filepath.Dir(arg), 0o755); err == nil {
				err = os.WriteFile(arg, []byte("written in the container"), 0o644)
			}
		case "stdin":
			line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
			fmt.Println("stdin", strings.TrimSpace(line))
		case "child": // a descendant that would outlive its parent
			_, err = os.StartProcess("/proc/self/exe", []string{testerCommand, "hang"}, &os.ProcAttr{Files: []*os.File{nil, os.Stdout}})
		case "wait": // for SIGTERM or SIGUSR1, then goes on
			c := make(chan os.Signal, 1)
			signal.Notify(c, syscall.SIGTERM, syscall.SIGUSR1)
			fmt.Println("ready")
			fmt.Println("got", <-c)
		case "stubborn":
			signal.Ignore(syscall.SIGTERM)
			fmt.Println("ready")
			select {}
		case "hang":
			select {}
		case "exit":
			n, _ := strconv.Atoi(arg)
			return n
		default:
			err = fmt.Errorf("unknown step %q", step)
		}
		if err != nil {
			fmt.Println("error:", err)
		}
	}
	return 0
}
