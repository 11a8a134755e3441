#include "agent/copy_answer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/clients.h"
#include "agent/state.h"

/* The first `length` bytes of the copy's file are the answer; 0: there is none. With the lock, so that a child forked
 * meanwhile closes the file. */
static void end_copy(struct culet_client *client, size_t length)
{
    culet_agent_lock();
    if (length > 0) {
        client->file = client->copy.output;
        client->copy.output = -1;
    }
    culet_copy_close(&client->copy);
    client->file_length = length;
    client->stage = CLIENT_IN_PROGRESS;
    culet_agent_unlock();
    /* the copy is our child if this process is its container's first */
    if (client->copy_pid > 0)
        (void)waitpid(client->copy_pid, NULL, WNOHANG);
}

static void answer_error(struct culet_client *client, const char *error)
{
    end_copy(client, 0);
    culet_clients_answer(client, NULL, error);
}

static void answer_sentence(struct culet_client *client)
{
    char sentence[CULET_ERROR_BYTES];
    ssize_t got = pread(client->copy.output, sentence, sizeof(sentence) - 1, 0);

    sentence[got > 0 ? got : 0] = '\0';
    answer_error(client, sentence);
}

static void answer(struct culet_client *client)
{
    struct stat stat;

    if (client->copy_status == 0 || fstat(client->copy.output, &stat) != 0 || stat.st_size <= 0) {
        answer_error(client, "its forked copy ended before it had the answer; the machine may be short of memory");
    } else if (client->copy_status == CULET_COPY_ERROR) {
        answer_sentence(client);
    } else {
        end_copy(client, (size_t)stat.st_size);
        culet_clients_answer(client, NULL, NULL);
    }
}

void culet_copy_answer_read(struct culet_client *client)
{
    ssize_t got;

    if (client->copy_pid == 0) {
        pid_t number;
        got = read(client->copy.status, &number, sizeof(number));
        if (got == (ssize_t)sizeof(number))
            client->copy_pid = number;
    } else {
        char byte;
        got = read(client->copy.status, &byte, 1);
        if (got == 1)
            client->copy_status = byte;
    }
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        answer(client);
}

/* While the copy holds the other end of the pipe its PID cannot be reused, so the pidfd is the copy's. Before Linux 5.3
 * only the copy's CPU limit ends it. */
void culet_copy_answer_kill(const struct culet_client *client)
{
    struct pollfd ended = {client->copy.status, POLLIN, 0};
    int copy = client->copy_pid > 0 ? (int)syscall(SYS_pidfd_open, client->copy_pid, 0) : -1;

    if (copy < 0)
        return;
    if (poll(&ended, 1, 0) >= 0 && (ended.revents & POLLHUP) == 0)
        (void)syscall(SYS_pidfd_send_signal, copy, SIGKILL, NULL, 0);
    close(copy);
}

void culet_copy_answer_end(struct culet_client *client)
{
    culet_copy_answer_kill(client);
    answer_error(client, "its forked copy did not finish in time");
}
