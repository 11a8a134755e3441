/* misuse.h - shared by the misuse programs. Each makes one mistake and must end with the diagnostic in its first lines;
 * run.sh inserts the addresses that the program prints. */
#ifndef MISUSE_H
#define MISUSE_H

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Prints an address of the expected line. Without stdio's buffer, which would be a block too. */
static inline void name(const char *what, const void *address)
{
    dprintf(STDOUT_FILENO, "%s=%p\n", what, address);
}

/* The program could not reach the state for its mistake. */
static inline void need(int met, const char *what)
{
    if (met)
        return;
    dprintf(STDERR_FILENO, "not in the state to test: %s\n", what);
    exit(1);
}

/* Runs `body` on another thread and joins it. */
static inline void on_thread(void *(*body)(void *), void *data)
{
    pthread_t thread;
    need(pthread_create(&thread, NULL, body, data) == 0, "a thread");
    need(pthread_join(thread, NULL) == 0, "the thread's end");
}

#endif
