// Package words has the little that sentences about numbers and lists need.
package words

import (
	"fmt"
	"strings"
)

// Count is how many there are of what has a plural in s: "1 node", "2 nodes".
func Count(n int, one string) string { return Plural(n, one, one+"s") }

// Plural is how many there are: "1 batch", "2 batches".
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Few names the first of a list, at most so many, and counts the rest, so that what is
// said of a thousand nodes still is a line.
func Few(most int, names []string) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Shell is a command line that a POSIX shell reads as these arguments. Those that a shell
// takes as they are stay plain.
func Shell(args ...string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+"
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a
		if a == "" || strings.Trim(a, plain) != "" {
			out[i] = Quoted(a)
		}
	}
	return strings.Join(out, " ")
}

// Quoted is one argument of a POSIX shell, in quotes even if it needs none.
func Quoted(arg string) string { return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'" }

// Command is what a person types about a pool, in the backticks by which tables keep it
// whole; a pool without a name is POOL.
func Command(verb, pool string, more ...string) string {
	if pool == "" {
		pool = "POOL"
	}
	return "`" + Shell(append([]string{"dramigrate", verb, pool}, more...)...) + "`"
}
