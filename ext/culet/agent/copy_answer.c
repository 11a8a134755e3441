#include "agent/copy_answer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/clients.h"
#include "agent/state.h"

#define MAX_ANSWER_BYTES ((off_t)16 << 30)

static void close_copy(struct culet_client *client)
{
    culet_agent_lock();
    close(client->copy.status);
    close(client->copy.output);
    client->stage = CLIENT_IN_PROGRESS;
    culet_agent_unlock();
    /* the copy is our child if this process is its container's first */
    if (client->copy_pid > 0)
        (void)waitpid(client->copy_pid, NULL, WNOHANG);
}

static void map_answer(struct culet_client *client)
{
    struct culet_buffer buffer = {NULL, 0, 0, 0};
    struct stat stat;
    void *bytes = MAP_FAILED;

    if (client->copy_status != 0 && fstat(client->copy.output, &stat) == 0 && stat.st_size > 0 &&
        stat.st_size <= MAX_ANSWER_BYTES)
        bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, client->copy.output, 0);
    close_copy(client);
    if (bytes == MAP_FAILED) {
        culet_clients_answer(client, NULL,
                             "its forked copy ended before it had the answer; the machine may be short of memory");
        return;
    }
    if (client->copy_status == CULET_COPY_ERROR) {
        char sentence[CULET_ERROR_BYTES];
        snprintf(sentence, sizeof(sentence), "%.*s", (int)stat.st_size, (const char *)bytes);
        munmap(bytes, (size_t)stat.st_size);
        culet_clients_answer(client, NULL, sentence);
        return;
    }
    buffer = (struct culet_buffer){bytes, (size_t)stat.st_size, (size_t)stat.st_size, 0};
    culet_clients_answer(client, &buffer, NULL);
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
        map_answer(client);
}

/* While the copy holds the other end of the pipe its PID cannot be reused, so the pidfd is the copy's. Before Linux 5.3
 * only the copy's CPU limit ends it. */
void culet_copy_answer_kill(const struct culet_client *client)
{
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
    struct pollfd ended = {client->copy.status, POLLIN, 0};
    int copy = client->copy_pid > 0 ? (int)syscall(SYS_pidfd_open, client->copy_pid, 0) : -1;

    if (copy < 0)
        return;
    if (poll(&ended, 1, 0) >= 0 && (ended.revents & POLLHUP) == 0)
        (void)syscall(SYS_pidfd_send_signal, copy, SIGKILL, NULL, 0);
    close(copy);
#else
    (void)client;
#endif
}

void culet_copy_answer_end(struct culet_client *client)
{
    culet_copy_answer_kill(client);
    close_copy(client);
    culet_clients_answer(client, NULL, "its forked copy did not finish in time");
}
