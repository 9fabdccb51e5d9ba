// Package words has the little that sentences about numbers need.
package words

import "fmt"

// Count is how many there are of what has a plural in s: "1 node", "2 nodes".
func Count(n int, one string) string { return Plural(n, one, one+"s") }

// Plural is how many there are: "1 batch", "2 batches".
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
