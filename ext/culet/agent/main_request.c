#include "agent/main_request.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/clients.h"
#include "agent/state.h"
#include "common/tracer.h"
#include "reading/clock.h"

/* The oldest queued request, without requests for a copy while one runs: copies need memory. */
static struct culet_client *next_request(void)
{
    int copying = culet_clients_oldest(CLIENT_COPYING) != NULL;
    struct culet_client *found = NULL;

    for (struct culet_client *one = culet_agent.clients; one < culet_agent.clients + CULET_AGENT_CLIENTS; one++) {
        if (one->stage != CLIENT_QUEUED || (copying && culet_request_needs_copy(&one->request)))
            continue;
        if (found == NULL || one->sequence < found->sequence)
            found = one;
    }
    return found;
}

static void fail_all(const char *message)
{
    struct culet_client *client;

    while ((client = culet_clients_oldest(CLIENT_QUEUED)) != NULL)
        culet_clients_answer(client, NULL, message);
}

/* Passes the oldest request to the main thread, if it has none. The signal is raised in this thread, so that no system
 * call of another thread is interrupted. */
void culet_main_request_pass(void)
{
    struct culet_client *client = next_request();

    if (client == NULL)
        return;
    culet_agent_lock();
    if (culet_agent.state == AGENT_IDLE && !culet_agent.ended) {
        culet_agent.request = client->request;
        culet_agent.message[0] = '\0';
        culet_agent.state = AGENT_REQUESTED;
        client->stage = CLIENT_IN_PROGRESS;
        culet_agent.current = client;
        culet_agent.until = culet_clock_milliseconds() + client->wait_ms;
        /* the client reads the rest from outside */
        if (client->credentials.pid > 0)
            (void)culet_allow_tracer(client->credentials.pid);
        pthread_kill(pthread_self(), culet_agent.signal); /* with the lock: never after culet_listener_end */
    }
    enum culet_agent_state state = culet_agent.state;
    int ended = culet_agent.ended;
    culet_agent_unlock();
    if (ended)
        fail_all("it is exiting");
    else if (state == AGENT_ABANDONED)
        fail_all("it is still busy with an earlier request that timed out; try again later");
}

/* Passes the main thread's answer to the client. */
static void deliver(const struct culet_copy *copy, struct culet_buffer *buffer, const char *message)
{
    struct culet_client *client = culet_agent.current;

    if (copy->status >= 0) {
        culet_agent_lock();
        client->copy = *copy;
        client->copy_pid = 0;
        client->copy_status = 0;
        client->until =
            culet_clock_milliseconds() + (int64_t)(client->request.limit_seconds * 1000) + CULET_AGENT_WORK_MS;
        client->stage = CLIENT_COPYING;
        culet_agent_unlock();
        culet_agent.current = NULL;
    } else {
        culet_clients_answer(client, buffer, message[0] != '\0' ? message : NULL);
    }
}

/* Handles the main thread's answer, or a missed deadline. */
void culet_main_request_check(int64_t now)
{
    const char *problem = NULL;
    char message[CULET_ERROR_BYTES + 1];
    struct culet_copy copy;
    struct culet_buffer buffer;
    enum culet_agent_state state;

    culet_agent_lock();
    state = culet_agent.state;
    if (state == AGENT_REQUESTED && now >= culet_agent.until) {
        culet_agent.state = AGENT_IDLE;
        problem =
            "its main thread did not run Ruby code in time: it is busy or blocked in C code; try again, or increase "
            "--wait";
    } else if (state == AGENT_IN_PROGRESS && now >= culet_agent.until) {
        culet_agent.state = AGENT_ABANDONED;
        problem = "it did not finish in time";
    } else if (state == AGENT_ANSWERED) {
        culet_agent.state = AGENT_IDLE;
        memcpy(message, culet_agent.message, sizeof(message));
    }
    buffer = culet_agent.buffer;
    copy = culet_agent.copy;
    culet_agent.buffer = (struct culet_buffer){NULL, 0, 0, 0};
    culet_agent.copy = CULET_NO_COPY;
    culet_agent_unlock();

    if (state == AGENT_ANSWERED && culet_agent.current != NULL) {
        deliver(&copy, &buffer, message);
    } else {
        culet_copy_close(&copy);
        culet_buffer_free(&buffer);
    }
    if (problem != NULL && culet_agent.current != NULL)
        culet_clients_answer(culet_agent.current, NULL, problem);
}

/* ---- called by the main thread ---- */

static void wake_listener(void)
{
    static const uint64_t once = 1;

    (void)!write(culet_agent.wakeup, &once, sizeof(once));
}

/* Replaces the deadline for the main thread to begin by the deadline of the answer. */
int culet_main_request_take(struct culet_request *request)
{
    int requested;

    culet_agent_lock();
    requested = culet_agent.state == AGENT_REQUESTED;
    if (requested) {
        culet_agent.state = AGENT_IN_PROGRESS;
        *request = culet_agent.request;
        culet_agent.until = culet_clock_milliseconds() + (int64_t)(request->limit_seconds * 1000) + CULET_AGENT_WORK_MS;
        wake_listener();
    }
    culet_agent_unlock();
    return requested;
}

static void answered(struct culet_buffer *buffer, struct culet_copy copy, const char *error)
{
    culet_agent_lock();
    if (culet_agent.state == AGENT_IN_PROGRESS) {
        culet_agent.buffer = *buffer;
        culet_agent.copy = copy;
        snprintf(culet_agent.message, sizeof(culet_agent.message), "%s", error != NULL ? error : "");
        culet_agent.state = AGENT_ANSWERED;
    } else {
        culet_buffer_free(buffer);
        culet_copy_close(&copy);
        culet_agent.state = AGENT_IDLE;
    }
    wake_listener();
    culet_agent_unlock();
}

void culet_main_request_answer(struct culet_buffer *buffer, const char *error)
{
    answered(buffer, CULET_NO_COPY, error);
}

void culet_main_request_answer_later(const struct culet_copy *copy)
{
    answered(&(struct culet_buffer){NULL, 0, 0, 0}, *copy, NULL);
}
