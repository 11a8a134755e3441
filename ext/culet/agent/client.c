#include "agent/client.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/process_reading.h"
#include "reading/clock.h"

#define SEND_MS 10000                    /* for the client to receive the answer */
#define PROGRESS_BYTES ((size_t)1 << 20) /* as many received at once give the client more time */
#define KEEP_MS 60000                    /* for the next request for a reading to arrive */
#define BLOCK_BYTES ((size_t)16 << 10)   /* of a file, sent at once */

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
        if (!culet_request_parse(client->line, &client->request, &client->wait_ms))
            culet_client_answer(client, NULL, "its agent belongs to another version of culet; use that version");
    } else if (client->length == CULET_LINE_BYTES - 1) {
        culet_client_close(client);
    }
}

static void begin_to_send(struct culet_client *client)
{
    client->sent = client->noted = 0;
    client->stage = CLIENT_SENDING;
    client->until = culet_clock_milliseconds() + SEND_MS;
    culet_client_send(client);
}

void culet_client_answer(struct culet_client *client, struct culet_buffer *buffer, const char *error)
{
    int length;

    if (error != NULL) {
        length = snprintf(client->head, sizeof(client->head), "error %s\n", error);
    } else {
        if (buffer != NULL)
            client->buffer = *buffer;
        length = snprintf(client->head, sizeof(client->head), "ok %zu\n", client->buffer.length + client->file_length);
    }
    client->head_length = (size_t)length < sizeof(client->head) ? (size_t)length : sizeof(client->head) - 1;
    client->head[client->head_length - 1] = '\n';
    begin_to_send(client);
}

void culet_client_answer_reading(struct culet_client *client)
{
    char reading[CULET_READING_JSON_BYTES];
    size_t length = culet_process_reading_write(reading);
    int line = snprintf(client->head, sizeof(client->head), "ok %zu\n", length);

    memcpy(client->head + line, reading, length);
    client->head_length = (size_t)line + length;
    begin_to_send(client);
}

/* Resets the client for its next request. */
static void begin_to_read(struct culet_client *client)
{
    client->stage = CLIENT_READING;
    client->length = 0;
    client->since = culet_clock_milliseconds();
    client->until = client->since + KEEP_MS;
}

/* A large answer may take longer, as long as it is being received. */
static void note_progress(struct culet_client *client)
{
    if (client->sent - client->noted < PROGRESS_BYTES)
        return;
    client->noted = client->sent;
    client->until = culet_clock_milliseconds() + SEND_MS;
}

static ssize_t send_bytes(const struct culet_client *client, const char *bytes, size_t length)
{
    return send(client->connection, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t send_file(const struct culet_client *client, size_t from)
{
    char block[BLOCK_BYTES];
    ssize_t got = pread(client->file, block, sizeof(block), (off_t)from);

    if (got == 0)
        errno = EIO; /* it was cut */
    return got > 0 ? send_bytes(client, block, (size_t)got) : -1;
}

/* Sends the next part of the answer. Returns as send(2). */
static ssize_t send_some(const struct culet_client *client)
{
    size_t from = client->sent;

    if (from < client->head_length)
        return send_bytes(client, client->head + from, client->head_length - from);
    from -= client->head_length;
    if (client->file_length > 0)
        return send_file(client, from);
    return send_bytes(client, client->buffer.bytes + from, client->buffer.length - from);
}

void culet_client_send(struct culet_client *client)
{
    size_t whole = client->head_length + client->buffer.length + client->file_length;

    while (client->sent < whole) {
        ssize_t sent = send_some(client);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            break; /* the client is gone, or the file cannot be read */
        if (sent > 0)
            client->sent += (size_t)sent;
        if (client->sent < whole && (sent < 0 || client->file_length > 0)) {
            note_progress(client);
            return;
        }
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
    if (client->stage == CLIENT_COPYING)
        culet_copy_close(&client->copy);
    culet_buffer_free(&client->buffer);
    if (client->file_length > 0)
        close(client->file);
    client->file_length = 0;
    client->stage = CLIENT_NONE;
}
