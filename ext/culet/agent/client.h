/* agent/client.h - one who asks: a connection, its question, its answer. Nothing here waits. */
#ifndef CULET_AGENT_CLIENT_H
#define CULET_AGENT_CLIENT_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/credentials.h"
#include "agent/listener.h"

#define CULET_LINE_BYTES 128
#define CULET_ERROR_BYTES 400

enum culet_stage {
  CLIENT_NONE,    /* there is none */
  CLIENT_READING, /* its question has not come */
  CLIENT_QUEUED,  /* it waits for the main thread */
  CLIENT_IN_PROGRESS,  /* the main thread has its question */
  CLIENT_COPYING, /* a copy of the process makes its answer */
  CLIENT_SENDING   /* it takes its answer */
};

struct culet_client {
  enum culet_stage stage;
  int connection;
  struct culet_credentials credentials;
  uint64_t sequence;   /* lower ones came earlier */
  int64_t since;   /* milliseconds of the monotonic clock: when it came */
  int64_t until;   /* when it is dropped, or its copy ended */
  char line[CULET_LINE_BYTES];
  size_t length;
  struct culet_request request;
  long wait_ms;
  struct culet_copy copy;
  pid_t copy_pid;  /* 0: not known yet */
  int copy_whole;
  char head[CULET_ERROR_BYTES + 16]; /* the first line of the answer */
  size_t head_length, sent;
  struct culet_buffer buffer;
};

/* Milliseconds of the monotonic clock. */
int64_t culet_now_ms(void);

/* What poll(2) is to wait for. */
short culet_client_events(const struct culet_client *client);

/* Takes what there is of the question; it is QUEUED then, or is to be answered with an error, or gone. */
void culet_client_read(struct culet_client *client);

/* Has it take an answer: the text, which is the client's from here on; or a sentence, instead. */
void culet_client_answer(struct culet_client *client, struct culet_buffer *buffer, const char *error);

/* Sends what it takes; closes it at the end. */
void culet_client_send(struct culet_client *client);

/* Closes all that it has. */
void culet_client_close(struct culet_client *client);

#endif
