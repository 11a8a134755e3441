/* threads.h - runs a thread to its end: in this thread's arena, or in another one. */
#pragma once

#include "arena.h"
#include "check.h"
#include "heap.h"

#include <pthread.h>

static inline void run_thread(void *(*run)(void *), void *data)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, run, data) == 0, "no thread");
    CHECK(pthread_join(thread, NULL) == 0, "no end of the thread");
}

/* This thread is inside its arena meanwhile, so the other one has to use another arena. Returns the arena. */
static inline struct culet_arena *run_elsewhere(void *(*run)(void *), void *data)
{
    CHECK(culet_heap_state() != CULET_DORMANT, "the heap is dormant");
    struct culet_arena *arena = culet_arena_enter();

    run_thread(run, data);
    CHECK(atomic_load(&culet_thread.arena) == arena, "an arena was taken over while its holder was inside");
    culet_arena_leave(arena);
    return arena;
}
