/*
 * agent/listener.h - the native thread that receives requests. It knows no Ruby: it passes each request to the main
 * thread, which a trapped signal wakes.
 *
 * agent/socket.h says where it listens, agent/credentials.h who is answered. The protocol:
 *
 *   -> culet-agent 1 data=0..3 limit_ms=N wait_ms=N LF                                  counts of objects
 *   -> culet-agent 1 strings from=N collect=0|1 content=0|1 limit_ms=N wait_ms=N LF     a slice of the strings
 *   -> culet-agent 1 unused limit_ms=N wait_ms=N LF                                     code that never ran
 *   -> culet-agent 1 profile action=status|start|stop|write|booted|collect sample_bytes=N limit_ms=N wait_ms=N LF
 *                                                                           the memory profile (profile/ruby_profile.h)
 *   -> culet-agent 1 limit limit_ms=N wait_ms=N LF                                      the memory limit (limit/limit.h)
 *   -> culet-agent 1 figures LF                                                         the figures (agent/figures.h)
 *   <- ok BYTES LF and that many bytes; or: error MESSAGE LF; or: busy LF (try again)
 *
 * The listener's thread answers the request for figures itself, and keeps the connection for the next one, for a minute.
 *
 * The main thread handles one request at a time, in order of arrival. A client that is slow to send its request or to
 * receive its answer is dropped after some seconds and delays no other client.
 */
#ifndef CULET_AGENT_LISTENER_H
#define CULET_AGENT_LISTENER_H

#include "agent/copy.h"
#include "agent/objects.h"
#include "agent/strings.h"
#include "common/buffer.h"
#include "profile/ruby_profile.h"

enum culet_request_kind { CULET_OBJECTS, CULET_STRINGS, CULET_UNUSED, CULET_PROFILE, CULET_LIMIT, CULET_FIGURES };

struct culet_request {
    enum culet_request_kind kind;
    double limit_seconds;
    struct culet_objects_options objects;
    struct culet_strings_options strings;
    struct culet_profile_request profile;
};

/*
 * Starts to listen, in this process and in every process that it forks.
 *
 * signal: a signal that Ruby traps; raised in the listener's thread to wake the main thread
 * Returns 0 or an errno. Further calls have no effect.
 */
int culet_listener_start(int signal);

/* 0 if this process listens, else the errno that prevented it. */
int culet_listener_error(void);

/* Main thread: takes the pending request. Returns whether there is one. */
int culet_listener_take(struct culet_request *request);

/*
 * Main thread: answers the request that it took.
 *
 * buffer: the answer, which the listener owns from now on
 * error: an error message instead, or NULL; truncated to 400 bytes
 */
void culet_listener_answer(struct culet_buffer *buffer, const char *error);

/* Main thread: has a copy of the process answer the request that it took. The listener owns the copy's descriptors
 * from now on. */
void culet_listener_answer_later(const struct culet_copy *copy);

/* Called before and after a fork whose child gets no agent, by the forking thread. */
void culet_listener_no_child(int begins);

/* The process ends: no more requests are passed on. */
void culet_listener_end(void);

#endif
