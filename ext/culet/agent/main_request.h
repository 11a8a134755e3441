/* agent/main_request.h - the request that the main thread works on, one at a time. */
#pragma once

#include <stdint.h>

#include "agent/copy.h"
#include "agent/request.h"
#include "common/buffer.h"

/* ---- in the listener's thread ---- */

/* Passes the oldest request to the main thread, if it has none. */
void culet_main_request_pass(void);

/* Handles the main thread's answer, or a missed deadline. */
void culet_main_request_check(int64_t now);

/* ---- in the main thread ---- */

/* Takes the pending request. Returns whether there is one. */
int culet_main_request_take(struct culet_request *request);

/* Answers the request that was taken.
 *
 * buffer: the answer, which the listener owns from now on
 * error: an error message instead, or NULL; truncated to 400 bytes */
void culet_main_request_answer(struct culet_buffer *buffer, const char *error);

/* Answers by what a copy writes. The listener owns the descriptors from now on. */
void culet_main_request_answer_later(const struct culet_copy *copy);
