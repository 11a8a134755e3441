/* agent/client.h - a client: connection, request and answer. No function waits for the client. */
#pragma once

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/credentials.h"
#include "agent/copy.h"
#include "agent/request.h"
#include "common/buffer.h"
#include "reading/reading.h"

#define CULET_ERROR_BYTES 400

enum culet_stage {
    CLIENT_NONE,        /* free entry */
    CLIENT_READING,     /* the request is incomplete */
    CLIENT_QUEUED,      /* waits for the main thread */
    CLIENT_IN_PROGRESS, /* the main thread has the request */
    CLIENT_COPYING,     /* a copy of the process makes the answer */
    CLIENT_SENDING      /* the answer is being sent */
};

struct culet_client {
    enum culet_stage stage;
    int connection;
    struct culet_credentials credentials;
    uint64_t sequence; /* order of arrival */
    int64_t since;     /* when it connected, in culet_clock_milliseconds */
    int64_t until;     /* when it is dropped, or its copy killed */
    char line[CULET_LINE_BYTES];
    size_t length;
    struct culet_request request;
    long wait_ms;
    struct culet_copy copy;
    pid_t copy_pid;                           /* 0: not known yet */
    int copy_status;                          /* a culet_copy_status; 0: the copy still works */
    char head[CULET_READING_JSON_BYTES + 16]; /* first line of the answer; the whole one, of a reading */
    size_t head_length, sent, noted;          /* noted: when the time was last extended */
    struct culet_buffer buffer;
    int file; /* owned, and sent instead of the buffer, if it has a length */
    size_t file_length;
};

/* Events to poll(2) for. */
short culet_client_events(const struct culet_client *client);

/* Reads what has arrived of the request. The client is then QUEUED, answered with an error, or closed. */
void culet_client_read(struct culet_client *client);

/* Starts to send an answer: the buffer, which the client owns from now on, or where that is NULL its file; or an error
 * message. A file is not mapped: its pages would count as the process's. */
void culet_client_answer(struct culet_client *client, struct culet_buffer *buffer, const char *error);

/* Starts to send a reading. */
void culet_client_answer_reading(struct culet_client *client);

/* Sends as much as the socket accepts, of a file one block: reading takes time, and a fork waits for the lock. At the
 * end the client is closed, or READING again after a reading. */
void culet_client_send(struct culet_client *client);

/* Closes the client's descriptors and frees its answer. */
void culet_client_close(struct culet_client *client);
