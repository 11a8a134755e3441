/* usage: copy MEGABYTES
 *
 * Prints the bytes of another process that the kernel copies in a second of CPU time: the bound of every reader. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* As the reader (CULET_MEMORY_WINDOW). */
#define AT_ONCE 262144u

static unsigned char buffer[AT_ONCE];

static double processor_seconds(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

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
    unsigned char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    memset(buffer, 1, sizeof buffer);
    pid_t child = fork();
    if (child == 0)
        hold(memory, bytes, pipe_ends[1]);
    close(pipe_ends[1]);
    if (child < 0 || read(pipe_ends[0], &byte, 1) != 1)
        return 1;
    double began = processor_seconds();
    for (size_t at = 0; at + AT_ONCE <= bytes; at += AT_ONCE) {
        struct iovec here = {buffer, AT_ONCE}, there = {memory + at, AT_ONCE};
        if (process_vm_readv(child, &here, 1, &there, 1, 0) != AT_ONCE)
            return 1;
    }
    printf("%.0f\n", (double)bytes / (processor_seconds() - began));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
