/*
 * agent_listener.h - the thread that waits for questions. It is no Ruby thread and knows no Ruby: a question is left for
 * the main thread, which is woken as by a signal that Ruby traps, and the thread waits for the answer.
 *
 * It listens on an abstract Unix socket, unix(7), named "culet-agent/PID/I" where PID is the process's own number in its
 * PID namespace and I that namespace's inode; "/1" to "/3" behind it where others sit on the name. Processes of this
 * process's user and root are answered. The conversation:
 *
 *   -> culet-agent 1 data=0..3 limit_ms=N wait_ms=N LF                                      what its objects hold, or:
 *   -> culet-agent 1 strings from=N collect=0|1 content=0|1 limit_ms=N wait_ms=N LF         a slice of its strings
 *   <- ok BYTES LF and so many bytes, or: error SENTENCE LF
 */
#ifndef CULET_AGENT_LISTENER_H
#define CULET_AGENT_LISTENER_H

#include "agent_objects.h"
#include "agent_strings.h"
#include "agent_text.h"

struct culet_question {
  int about_strings; /* or else about objects */
  struct culet_objects_wish objects;
  struct culet_strings_wish strings;
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
int culet_listener_take(struct culet_question *question);

/*
 * The main thread: answers the question that was taken.
 *
 * text: the answer, which the listener owns from here on
 * error: a sentence, instead of the text; NULL: none. Its first 400 bytes are passed on.
 */
void culet_listener_answer(struct culet_text *text, const char *error);

/* The process ends: nobody is called any more. */
void culet_listener_end(void);

#endif
