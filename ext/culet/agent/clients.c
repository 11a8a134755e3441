#include "agent/clients.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/credentials.h"
#include "agent/state.h"
#include "reading/clock.h"

#define NON_ROOT_CLIENTS 12 /* the rest are reserved for root, in case the process's own user floods it */
#define CLIENTS_PER_PROCESS 2
#define READ_MS 2000          /* for the request to arrive */
#define CROWDED_READ_MS 100   /* for the request to arrive, while further clients wait */
#define ACCEPT_RETRY_MS 100   /* pause when the kernel lacks descriptors or memory */
#define REJECTION_PAUSE_MS 10 /* pause after REJECTIONS_PER_PAUSE, because rejected clients reconnect at once */
#define REJECTIONS_PER_PAUSE 64

/* With the lock, so that a child forked meanwhile closes every connection. */
void culet_clients_drop(struct culet_client *client)
{
    pid_t copy = client->stage == CLIENT_COPYING ? client->copy_pid : 0;

    culet_agent_lock();
    culet_client_close(client);
    if (culet_agent.current == client && culet_agent.state == AGENT_REQUESTED)
        culet_agent.state = AGENT_IDLE;
    culet_agent_unlock();
    if (culet_agent.current == client)
        culet_agent.current = NULL;
    if (copy > 0)
        (void)waitpid(copy, NULL, WNOHANG); /* the copy is our child if this process is its container's first */
}

void culet_clients_answer(struct culet_client *client, struct culet_buffer *buffer, const char *error)
{
    culet_agent_lock();
    culet_client_answer(client, buffer, error);
    culet_agent_unlock();
    if (culet_agent.current == client)
        culet_agent.current = NULL;
}

struct culet_client *culet_clients_oldest(enum culet_stage stage)
{
    struct culet_client *found = NULL;

    for (struct culet_client *one = culet_agent.clients; one < culet_agent.clients + CULET_AGENT_CLIENTS; one++)
        if (one->stage == stage && (found == NULL || one->sequence < found->sequence))
            found = one;
    return found;
}

static struct culet_client *free_client(void)
{
    struct culet_client *slow = culet_clients_oldest(CLIENT_READING), *vacant = culet_clients_oldest(CLIENT_NONE);

    if (vacant == NULL && slow != NULL && culet_clock_milliseconds() - slow->since >= CROWDED_READ_MS)
        culet_clients_drop(vacant = slow);
    return vacant;
}

/* Whether the client's process, or its user, has too many connections. */
static int is_over_limit(const struct culet_credentials *credentials)
{
    int of_process = 0, non_root = 0;

    for (const struct culet_client *one = culet_agent.clients; one < culet_agent.clients + CULET_AGENT_CLIENTS; one++) {
        if (one->stage == CLIENT_NONE)
            continue;
        of_process += credentials->pid > 0 && one->credentials.pid == credentials->pid;
        non_root += one->credentials.uid != 0;
    }
    return of_process >= CLIENTS_PER_PROCESS || (credentials->uid != 0 && non_root >= NON_ROOT_CLIENTS);
}

static void reject(int connection, const char *word, const char *message)
{
    char line[CULET_ERROR_BYTES + 16];
    int length = snprintf(line, sizeof(line), "%s%s\n", word, message);

    (void)!send(connection, line, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(connection);
    culet_agent.rejections++;
}

/* Accepts with the lock, so that a child forked meanwhile closes the connection. */
void culet_clients_accept(void)
{
    struct culet_client *client = free_client();
    struct culet_credentials credentials;
    const char *refusal;
    int connection;

    culet_agent_lock();
    connection = accept4(culet_agent.socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    refusal = connection >= 0 ? culet_credentials_refusal(connection, &credentials) : NULL;
    if (connection >= 0 && (refusal != NULL || client == NULL || is_over_limit(&credentials))) {
        reject(connection, refusal != NULL ? "error " : "busy", refusal != NULL ? refusal : "");
    } else if (connection >= 0) {
        int64_t now = culet_clock_milliseconds();
        *client = (struct culet_client){.stage = CLIENT_READING,
                                        .connection = connection,
                                        .credentials = credentials,
                                        .sequence = ++culet_agent.last_sequence,
                                        .since = now,
                                        .until = now + READ_MS};
    }
    culet_agent_unlock();
    if (culet_agent.rejections >= REJECTIONS_PER_PAUSE) {
        culet_agent.rejections = 0;
        (void)poll(NULL, 0, REJECTION_PAUSE_MS);
    }
    if (connection < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        (void)poll(NULL, 0, ACCEPT_RETRY_MS); /* out of descriptors or memory: the client waits in the backlog */
}
