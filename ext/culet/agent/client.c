#include "agent/client.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_MS 600000 /* upper bound of every limit */
#define SEND_MS 10000     /* for the client to receive the answer */
#define KEEP_MS 60000     /* for the next request for figures to arrive */

int64_t culet_now_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Parses a request for the profile, written exactly as the protocol says. Returns whether it is one. */
static int parse_profile(const char *line, struct culet_profile_request *request, long *limit_ms, long *wait_ms)
{
    static const char *const actions[] = {"status", "start", "stop", "write", "booted", "collect"};
    char action[8], again[CULET_LINE_BYTES];

    if (sscanf(line, "culet-agent 1 profile action=%7[a-z] sample_bytes=%" SCNu64 " limit_ms=%ld wait_ms=%ld", action,
               &request->sample_bytes, limit_ms, wait_ms) != 4)
        return 0;
    snprintf(again, sizeof(again), "culet-agent 1 profile action=%s sample_bytes=%" PRIu64 " limit_ms=%ld wait_ms=%ld",
             action, request->sample_bytes, *limit_ms, *wait_ms);
    if (strcmp(line, again) != 0)
        return 0;
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(action, actions[i]) == 0) {
            request->action = (enum culet_profile_action)i;
            return 1;
        }
    return 0;
}

/* Parses a request line. Returns whether it is valid. */
static int parse_request(const char *line, struct culet_request *request, long *wait_ms)
{
    unsigned long long from;
    long limit_ms;

    memset(request, 0, sizeof(*request));
    if (strcmp(line, "culet-agent 1 figures") == 0) {
        request->kind = CULET_FIGURES;
        *wait_ms = 0;
        return 1;
    }
    if (sscanf(line, "culet-agent 1 strings from=%llu collect=%d content=%d limit_ms=%ld wait_ms=%ld", &from,
               &request->strings.collect, &request->strings.content, &limit_ms, wait_ms) == 5) {
        request->kind = CULET_STRINGS;
        request->strings.from = from;
    } else if (sscanf(line, "culet-agent 1 unused limit_ms=%ld wait_ms=%ld", &limit_ms, wait_ms) == 2) {
        request->kind = CULET_UNUSED;
    } else if (sscanf(line, "culet-agent 1 limit limit_ms=%ld wait_ms=%ld", &limit_ms, wait_ms) == 2) {
        request->kind = CULET_LIMIT;
    } else if (parse_profile(line, &request->profile, &limit_ms, wait_ms)) {
        request->kind = CULET_PROFILE;
    } else if (sscanf(line, "culet-agent 1 data=%d limit_ms=%ld wait_ms=%ld", &request->objects.data, &limit_ms,
                      wait_ms) == 3) {
        request->kind = CULET_OBJECTS;
    } else {
        return 0;
    }
    if (limit_ms < 0 || limit_ms > LONGEST_MS || *wait_ms < 0 || *wait_ms > LONGEST_MS)
        return 0;
    request->limit_seconds = request->objects.limit_seconds = request->strings.limit_seconds = (double)limit_ms / 1000;
    return 1;
}

short culet_client_events(const struct culet_client *client)
{
    if (client->stage == CLIENT_READING)
        return POLLIN;
    return client->stage == CLIENT_SENDING ? POLLOUT : 0; /* poll(2) reports a hang-up in any case */
}

void culet_client_read(struct culet_client *client)
{
    ssize_t got =
        recv(client->connection, client->line + client->length, CULET_LINE_BYTES - 1 - client->length, MSG_DONTWAIT);
    char *end;

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        culet_client_close(client);
        return;
    }
    end = memchr(client->line + client->length, '\n', (size_t)got);
    client->length += (size_t)got;
    if (end != NULL) {
        *end = '\0';
        client->stage = CLIENT_QUEUED;
        if (!parse_request(client->line, &client->request, &client->wait_ms))
            culet_client_answer(client, NULL, "its agent belongs to another version of culet; use that version");
    } else if (client->length == CULET_LINE_BYTES - 1) {
        culet_client_close(client);
    }
}

static void begin_to_send(struct culet_client *client)
{
    client->sent = 0;
    client->stage = CLIENT_SENDING;
    client->until = culet_now_ms() + SEND_MS;
    culet_client_send(client);
}

void culet_client_answer(struct culet_client *client, struct culet_buffer *buffer, const char *error)
{
    int length;

    if (error != NULL) {
        length = snprintf(client->head, sizeof(client->head), "error %s\n", error);
    } else {
        client->buffer = *buffer;
        length = snprintf(client->head, sizeof(client->head), "ok %zu\n", client->buffer.length);
    }
    client->head_length = (size_t)length < sizeof(client->head) ? (size_t)length : sizeof(client->head) - 1;
    client->head[client->head_length - 1] = '\n';
    begin_to_send(client);
}

void culet_client_answer_figures(struct culet_client *client)
{
    char figures[CULET_FIGURES_BYTES];
    size_t length = culet_figures_write(figures);
    int line = snprintf(client->head, sizeof(client->head), "ok %zu\n", length);

    memcpy(client->head + line, figures, length);
    client->head_length = (size_t)line + length;
    begin_to_send(client);
}

/* For the next request. */
static void begin_to_read(struct culet_client *client)
{
    client->stage = CLIENT_READING;
    client->length = 0;
    client->since = culet_now_ms();
    client->until = client->since + KEEP_MS;
}

void culet_client_send(struct culet_client *client)
{
    size_t whole = client->head_length + client->buffer.length;

    while (client->sent < whole) {
        int in_head = client->sent < client->head_length;
        const char *from =
            in_head ? client->head + client->sent : client->buffer.bytes + (client->sent - client->head_length);
        size_t length = in_head ? client->head_length - client->sent : whole - client->sent;
        ssize_t sent = send(client->connection, from, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            client->sent += (size_t)sent;
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR)
            break; /* the client is gone */
    }
    if (client->sent == whole && client->request.kind == CULET_FIGURES)
        begin_to_read(client);
    else
        culet_client_close(client);
}

void culet_client_close(struct culet_client *client)
{
    if (client->stage == CLIENT_NONE)
        return;
    close(client->connection);
    if (client->stage == CLIENT_COPYING) {
        close(client->copy.status);
        close(client->copy.output);
    }
    culet_buffer_free(&client->buffer);
    client->stage = CLIENT_NONE;
}
