/* agent/state.h - what the listener's thread and the main thread share: the clients, and the main thread's request. */
#pragma once

#include <pthread.h>

#include "agent/client.h"
#include "agent/socket.h"

#define CULET_AGENT_CLIENTS 16
#define CULET_AGENT_WORK_MS 10000 /* for an answer, in addition to the request's limit */

/* State of the main thread's request. ABANDONED: the client is gone, the main thread still works. */
enum culet_agent_state { AGENT_IDLE, AGENT_REQUESTED, AGENT_IN_PROGRESS, AGENT_ANSWERED, AGENT_ABANDONED };

struct culet_agent {
    pthread_mutex_t lock; /* for the members below; held briefly */
    enum culet_agent_state state;
    struct culet_request request;
    int64_t until; /* deadline of the main thread's request */
    struct culet_buffer buffer;
    struct culet_copy copy; /* status -1: none */
    char message[CULET_ERROR_BYTES + 1];
    int signal;
    int ended;
    int no_child; /* during a fork whose child gets no agent */
    int error;    /* why the process does not listen; 0: it listens */
    int wakeup;   /* eventfd: the main thread changed the state; -1: none */
    struct culet_agent_socket socket;
    struct culet_client clients[CULET_AGENT_CLIENTS]; /* changed by the listener only; descriptors with the lock */

    /* Used by the listener's thread only. */
    struct culet_client *current; /* whose request the main thread has; NULL: it hung up */
    uint64_t last_sequence;
    unsigned rejections;
};

extern struct culet_agent culet_agent;

void culet_agent_lock(void);
void culet_agent_unlock(void);
