package cli

import (
	"errors"
	"fmt"

	"github.com/dramigrate/dramigrate/internal/engine"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// The exit codes, one table for all verbs.
const (
	ExitOK          = 0   // done, or nothing to do
	ExitError       = 1   // an error
	ExitChanges     = 2   // changes pending, with --detailed-exitcode
	ExitBlocked     = 3   // blockers, or a device advertised by both mechanisms
	ExitRefused     = 4   // the plan is stale, was edited, or is refused
	ExitLocked      = 5   // another run holds the lock
	ExitStopped     = 6   // stopped part-way; the same command goes on
	ExitUnknown     = 7   // what had to be seen could not be
	ExitUsage       = 64  // wrong usage (EX_USAGE of sysexits.h)
	ExitInterrupted = 130 // interrupted before anything began (128 + SIGINT)
)

// codeError is an error with its exit code, for outcomes that only a verb can tell.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

func withCode(code int, format string, args ...any) error {
	return &codeError{code: code, err: fmt.Errorf(format, args...)}
}

func usageError(format string, args ...any) error {
	return withCode(ExitUsage, format, args...)
}

// silent is an outcome that was printed as data already: it sets the exit code and
// adds no message.
type silent struct{ code int }

func (e silent) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// errInterrupted is the cause of a context that a signal cancelled.
var errInterrupted = errors.New("interrupted")

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	var quiet silent
	var coded *codeError
	var file *plan.FileError
	var locked *engine.LockedError
	var refused *engine.RefusedError
	var stopped *engine.StoppedError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &quiet):
		return quiet.code
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &stopped):
		return ExitStopped // whatever stopped it, another run's lock included
	case errors.As(err, &locked):
		return ExitLocked
	case errors.As(err, &file), errors.As(err, &refused):
		return ExitRefused
	case errors.Is(err, errInterrupted):
		return ExitInterrupted
	default:
		return ExitError
	}
}
