/*
 * trim/mark.h - a mark in /proc/PID/maps that shows other processes whether and how this one trims after collections.
 */
#ifndef CULET_TRIM_MARK_H
#define CULET_TRIM_MARK_H

/*
 * Creates a mapping without memory named "/memfd:culet-trim:MODE" and removes an earlier one. Forked children inherit
 * it, exec removes it. If the kernel refuses the mapping there is no mark, with no further effect. Not thread-safe.
 */
void culet_trim_mark(const char *mode);

/*
 * Whether the process has a mark of another copy of this library: each Ruby::Box loads a copy, and so does another
 * version of culet.
 */
int culet_trim_mark_exists(void);

#endif
