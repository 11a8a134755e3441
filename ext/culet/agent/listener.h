/*
 * agent/listener.h - the thread that waits for questions. It is no Ruby thread and knows no Ruby: a question is left for
 * the main thread, which is woken as by a signal that Ruby traps.
 *
 * Where it listens is in agent/socket.h, who is answered in agent/credentials.h. The conversation:
 *
 *   -> culet-agent 1 data=0..3 limit_ms=N wait_ms=N LF                                      what its objects hold, or:
 *   -> culet-agent 1 strings from=N collect=0|1 content=0|1 limit_ms=N wait_ms=N LF         a slice of its strings, or:
 *   -> culet-agent 1 unused limit_ms=N wait_ms=N LF                                         which of its code never ran
 *   <- ok BYTES LF and so many bytes, or: error SENTENCE LF, or: busy LF, ask again
 *
 * The main thread works on one question at a time, in the order they came. All else goes on meanwhile: a client that is
 * slow to ask, or to take its answer, is dropped after some seconds and keeps nobody waiting.
 */
#ifndef CULET_AGENT_LISTENER_H
#define CULET_AGENT_LISTENER_H

#include "agent/copy.h"
#include "agent/objects.h"
#include "agent/strings.h"
#include "common/buffer.h"

enum culet_request_kind { CULET_OBJECTS, CULET_STRINGS, CULET_UNUSED };

struct culet_request {
  enum culet_request_kind kind;
  double limit_seconds;
  struct culet_objects_options objects;
  struct culet_strings_options strings;
};

/*
 * Starts listening, in this process and in every one that it forks.
 *
 * signal: raised in the listener's own thread to call the main thread: Ruby must trap it
 * Returns 0, or the error's number. A second call changes nothing.
 */
int culet_listener_start(int signal);

/* Whether this process listens; if not, the number of the error that prevented it. */
int culet_listener_error(void);

/* The main thread: takes the question that waits. Returns whether there is one. */
int culet_listener_take(struct culet_request *request);

/*
 * The main thread: answers the question that was taken.
 *
 * text: the answer, which the listener owns from here on
 * error: a sentence, instead of the text; NULL: none. Its first 400 bytes are passed on.
 */
void culet_listener_answer(struct culet_buffer *buffer, const char *error);

/* The same with an answer that is still made. The listener owns the descriptors from here on. */
void culet_listener_answer_later(const struct culet_copy *copy);

/* Around a fork whose child is to have no agent. Called by the thread that forks. */
void culet_listener_no_child(int begins);

/* The process ends: nobody is called any more. */
void culet_listener_end(void);

#endif
