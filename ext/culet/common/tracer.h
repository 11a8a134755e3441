/* common/tracer.h - which process may read this one's memory.
 *
 * Under Yama's ptrace_scope 1 the ancestors of a process may read it, and one other process that it names, with its
 * children. culet-scope is a child of the process that it reads. */
#pragma once

#include <ruby.h>

/* Allows a process to read this one. Returns 0 or an errno; EINVAL: the kernel has no Yama. */
int culet_allow_tracer(pid_t pid);

VALUE culet_admit_reader(VALUE self, VALUE pid);
