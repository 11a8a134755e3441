/* realpath.h - the system calls inside realpath, which no other library can see. */
#ifndef CULET_REALPATH_H
#define CULET_REALPATH_H

#include <stdbool.h>

/*
 * Counts what realpath needed for a path: one call for each component that it looked at, and those of the targets where
 * one is a symbolic link.
 *
 * path: what it was asked; resolved: what it answered, or NULL where it failed.
 */
void culet_count_realpath(const char *path, const char *resolved);

#endif
