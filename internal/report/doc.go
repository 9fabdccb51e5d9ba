// Package report turns data — a plan, findings, pools, a status, the events of a run
// — into what a person or a program reads. It imports data only: no client, no
// engine.
//
// Printers for people write ANSI styles without asking; the writer that they are
// given reduces them to what its terminal can show (NO_COLOR, a pipe). Colour never
// says anything that a word does not say as well.
package report
