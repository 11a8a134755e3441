/* misuse.h - what the misuse programs share. Each of them makes one mistake, must die of it, and says in its
 * first lines which last words are expected; run.sh puts in the addresses that the program prints. */
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

/* Gives an address of the expected line its value. Without stdio's buffer, which would be a block too. */
static inline void name(const char *what, const void *address)
{
    dprintf(STDOUT_FILENO, "%s=%p\n", what, address);
}

/* The program could not get into the state in which it wanted to make its mistake. */
static inline void need(int met, const char *what)
{
    if (met)
        return;
    dprintf(STDERR_FILENO, "not in the state to test: %s\n", what);
    exit(1);
}

/* Runs `body` on another thread, to its end. */
static inline void on_thread(void *(*body)(void *), void *data)
{
    pthread_t thread;
    need(pthread_create(&thread, NULL, body, data) == 0, "a thread");
    need(pthread_join(thread, NULL) == 0, "the thread's end");
}

#endif
