// Package cli is the command line: one file a verb, each turning flags into options,
// options into one call of the packages below, and the answer into print.
//
// Data goes to stdout, messages, progress and questions to stderr.
package cli
