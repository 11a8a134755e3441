/* agent/unused_reporter.h - the object that reports the code of this process that never ran; culet/unused registers it. */
#pragma once

#include <ruby.h>

/* Defines Culet::Agent.unused_reporter=. */
void culet_init_unused_reporter(VALUE culet);

/* The object, which has the methods started?, follow and document(pid, parent_pid); nil before it is registered. */
VALUE culet_unused_reporter(void);
