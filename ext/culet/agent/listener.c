#include "agent/listener.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/clients.h"
#include "agent/copy_answer.h"
#include "agent/main_request.h"
#include "agent/process_reading.h"
#include "agent/state.h"
#include "common/thread.h"
#include "reading/clock.h"

/* ---- the thread ---- */

/* Answers a request for a reading at once, and has Ruby's counts noted for the next one. */
static void answer_reading(struct culet_client *client)
{
    if (client->stage != CLIENT_QUEUED || client->request.kind != CULET_FIGURES)
        return;
    culet_client_answer_reading(client);
    if (!culet_agent.ended)
        culet_process_reading_refresh();
}

static void serve(struct culet_client *client, short events, short copy_events, int64_t now)
{
    if (client->stage == CLIENT_COPYING && copy_events != 0) {
        culet_copy_answer_read(client);
    } else if (client->stage == CLIENT_READING && events != 0) {
        culet_agent_lock();
        culet_client_read(client);
        answer_reading(client);
        culet_agent_unlock();
    } else if (client->stage == CLIENT_SENDING && events != 0) {
        culet_agent_lock();
        culet_client_send(client);
        culet_agent_unlock();
    } else if ((events & (POLLHUP | POLLERR)) != 0) {
        if (client->stage == CLIENT_COPYING)
            culet_copy_answer_kill(client);
        culet_clients_drop(client);
    } else if (now >= client->until && client->stage == CLIENT_COPYING) {
        culet_copy_answer_end(client);
    } else if (now >= client->until && (client->stage == CLIENT_READING || client->stage == CLIENT_SENDING)) {
        culet_clients_drop(client);
    }
}

static int64_t earlier(int64_t one, int64_t other)
{
    return one < 0 || other < one ? other : one;
}

/* Milliseconds to the next deadline; -1: none. */
static int next_timeout(int64_t now)
{
    int64_t next = -1;

    for (const struct culet_client *one = culet_agent.clients; one < culet_agent.clients + CULET_AGENT_CLIENTS; one++)
        if (one->stage == CLIENT_READING || one->stage == CLIENT_COPYING || one->stage == CLIENT_SENDING)
            next = earlier(next, one->until);
    culet_agent_lock();
    if (culet_agent.state == AGENT_REQUESTED || culet_agent.state == AGENT_IN_PROGRESS)
        next = earlier(next, culet_agent.until);
    culet_agent_unlock();
    if (next < 0)
        return -1;
    next = next > now ? next - now : 0;
    return next < INT_MAX ? (int)next : INT_MAX;
}

static void drain_wakeups(void)
{
    uint64_t count;

    (void)!read(culet_agent.wakeup, &count, sizeof(count));
}

enum {
    WAKE_UP,
    LISTENER,
    FIRST_CLIENT,
    FIRST_COPY = FIRST_CLIENT + CULET_AGENT_CLIENTS,
    FDS = FIRST_COPY + CULET_AGENT_CLIENTS
};

static void wait_and_serve(struct pollfd *fds)
{
    int64_t now;

    fds[WAKE_UP] = (struct pollfd){culet_agent.wakeup, POLLIN, 0};
    fds[LISTENER] = (struct pollfd){culet_agent.socket.fd, POLLIN, 0};
    for (int i = 0; i < CULET_AGENT_CLIENTS; i++) {
        const struct culet_client *one = &culet_agent.clients[i];
        fds[FIRST_CLIENT + i] =
            (struct pollfd){one->stage != CLIENT_NONE ? one->connection : -1, culet_client_events(one), 0};
        fds[FIRST_COPY + i] = (struct pollfd){one->stage == CLIENT_COPYING ? one->copy.status : -1, POLLIN, 0};
    }
    if (poll(fds, FDS, next_timeout(culet_clock_milliseconds())) < 0)
        return;
    if (fds[WAKE_UP].revents != 0)
        drain_wakeups();
    now = culet_clock_milliseconds();
    culet_main_request_check(now);
    for (int i = 0; i < CULET_AGENT_CLIENTS; i++)
        if (fds[FIRST_CLIENT + i].fd >= 0)
            serve(&culet_agent.clients[i], fds[FIRST_CLIENT + i].revents, fds[FIRST_COPY + i].revents, now);
    if (fds[LISTENER].revents != 0)
        culet_clients_accept();
    culet_main_request_pass();
}

static void *run_thread(void *unused)
{
    struct pollfd fds[FDS];

    prctl(PR_SET_NAME, "culet-agent", 0, 0, 0);
    for (;;)
        wait_and_serve(fds);
    return NULL;
}

/* The thread blocks all signals except the one that it raises. Returns 0 or an errno. */
static int start_thread(void)
{
    sigset_t but_ours;

    sigfillset(&but_ours);
    sigdelset(&but_ours, culet_agent.signal);
    return culet_thread_start(NULL, run_thread, &but_ours);
}

/* Opens the socket and starts the thread. Returns 0 or an errno. */
static int listen_now(int sweep)
{
    if ((culet_agent.error = culet_agent_socket_open(&culet_agent.socket, sweep)) != 0)
        return culet_agent.error;
    culet_agent.wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    culet_agent.error = culet_agent.wakeup < 0 ? errno : start_thread();
    if (culet_agent.error != 0) {
        culet_agent_socket_close(&culet_agent.socket, 0);
        if (culet_agent.wakeup >= 0)
            close(culet_agent.wakeup);
        culet_agent.wakeup = -1;
    }
    return culet_agent.error;
}

/* ---- fork ---- */

/* The child has no listener thread, and needs its own socket. */
static void in_child(void)
{
    pthread_mutex_init(&culet_agent.lock, NULL);
    culet_agent_socket_close(&culet_agent.socket, 1);
    if (culet_agent.wakeup >= 0)
        close(culet_agent.wakeup);
    culet_agent.wakeup = -1;
    for (struct culet_client *one = culet_agent.clients; one < culet_agent.clients + CULET_AGENT_CLIENTS; one++)
        culet_client_close(one);
    culet_copy_close(&culet_agent.copy);
    culet_buffer_free(&culet_agent.buffer);
    culet_process_reading_reset();
    culet_agent.state = AGENT_IDLE;
    culet_agent.current = NULL;
    if (!culet_agent.ended && !culet_agent.no_child)
        listen_now(0);
}

void culet_listener_no_child(int begins)
{
    culet_agent.no_child = begins;
}

/* ---- called by the main thread ---- */

int culet_listener_start(int signal)
{
    culet_agent.signal = signal;
    if ((culet_agent.error = pthread_atfork(culet_agent_lock, culet_agent_unlock, in_child)) != 0)
        return culet_agent.error;
    return listen_now(1);
}

int culet_listener_error(void)
{
    return culet_agent.error;
}

void culet_listener_end(void)
{
    culet_agent_lock();
    culet_agent.ended = 1;
    culet_agent_socket_forget(&culet_agent.socket);
    culet_agent_unlock();
}
