/* usage: copy MEGABYTES
 *
 * Prints the bytes of another process that the kernel copies in a second of CPU time: the bound of every reader. */
#define _GNU_SOURCE
#include "../allocator/probes/probe.h"

#include <sys/prctl.h>
#include <sys/uio.h>

/* As the reader (CULET_MEMORY_WINDOW). */
#define AT_ONCE 262144u

static unsigned char buffer[AT_ONCE];

/* The child, which holds the memory and writes a byte to the pipe when it is filled. */
static void hold(unsigned char *memory, size_t bytes, int ready)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    memset(memory, 0x5a, bytes);
    if (write(ready, "r", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    size_t bytes = (size_t)(argc == 2 ? atoi(argv[1]) : 0) << 20;
    int pipe_ends[2];
    char byte;

    if (!bytes || pipe(pipe_ends) != 0)
        return 2;
    unsigned char *memory = own_memory(bytes);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    memset(buffer, 1, sizeof buffer);
    pid_t child = fork_child();
    if (child == 0)
        hold(memory, bytes, pipe_ends[1]);
    close(pipe_ends[1]);
    if (read(pipe_ends[0], &byte, 1) != 1)
        return 1;
    double began = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t at = 0; at + AT_ONCE <= bytes; at += AT_ONCE) {
        struct iovec here = {buffer, AT_ONCE}, there = {memory + at, AT_ONCE};
        if (process_vm_readv(child, &here, 1, &there, 1, 0) != AT_ONCE)
            return 1;
    }
    printf("%.0f\n", (double)bytes / (seconds(CLOCK_PROCESS_CPUTIME_ID) - began));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
