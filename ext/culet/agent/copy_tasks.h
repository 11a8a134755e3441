/* agent/copy_tasks.h - the requests that a forked copy of the process answers. */
#pragma once

#include "agent/copy.h"
#include "agent/request.h"

/* Starts the copy for a request. In the main thread, inside culet_listener_no_child. May raise.
 *
 * Returns NULL and sets `copy`, or returns an error message. */
const char *culet_copy_tasks_start(struct culet_copy *copy, const struct culet_request *request);

/* Runs the request's part in the process itself, after the copy has started. May raise; for rb_protect. Returns Qnil. */
VALUE culet_copy_tasks_follow(VALUE request);
