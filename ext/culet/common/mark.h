/* common/mark.h - a mark in /proc/PID/maps that shows other processes what culet does, or has done, in this one. */
#pragma once

#include <ruby.h>

/* Creates a mapping without memory named "/memfd:culet-NAME". Forked children inherit it, exec removes it. Returns what
 * culet_unmark takes; MAP_FAILED if the kernel refuses the mapping, with no further effect. In any thread. */
void *culet_mark(const char *name);

/* Removes a mark; nothing for MAP_FAILED. */
void culet_unmark(void *mark);

/* Whether the process has a mark whose name begins so. Each Ruby::Box loads a copy of this library, and so does another
 * version of culet. */
int culet_mark_exists(const char *prefix);

/* Culet.mark(name), private: makes the mark unless there is one. Returns nil. */
VALUE culet_mark_once(VALUE self, VALUE name);
