/* waiting_threads.h - threads that wait for ever, for targets of this reader's tests and of test/scope. */
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t all_wait;

/* The argument is the size of a block of its own, or NULL. */
static void *wait_for_ever(void *argument)
{
    size_t bytes = (size_t)argument;

    if (bytes)
        memset(malloc(bytes), 1, bytes);
    pthread_barrier_wait(&all_wait);
    for (;;)
        pause();
    return NULL;
}

/* Starts threads, so that there are `count` with this one, and returns when all wait. Returns 0, or 1 on failure. */
static inline int start_waiting_threads(unsigned count, size_t bytes)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_barrier_init(&all_wait, NULL, count);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (unsigned i = 1; i < count; i++)
        if (pthread_create(&thread, &attributes, wait_for_ever, (void *)bytes))
            return 1;
    pthread_barrier_wait(&all_wait);
    return 0;
}
