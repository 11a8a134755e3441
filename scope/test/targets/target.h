/* target.h - what the targets share: they say what malloc itself knows, and stop, so that nothing changes any more. */
#ifndef CULET_TARGET_TEST_H
#define CULET_TARGET_TEST_H

#include "figures.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prints the figures as one line "mallinfo uordblks=... ..." without using malloc. */
static inline void say(void)
{
    char line[512];
    struct figures info = figures_of_malloc();
    int length = snprintf(line, sizeof line, "mallinfo uordblks=%zu fordblks=%zu hblks=%zu hblkhd=%zu arena=%zu fsmblks=%zu page=%d\n",
                          info.uordblks, info.fordblks, info.hblks, info.hblkhd, info.arena, info.fsmblks,
                          getpagesize());

    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(3);
}

/* The same, and stops the process. */
static inline void say_and_stop(void)
{
    say();
    raise(SIGSTOP);
}

/* Random numbers that are the same on every machine: splitmix64, S. Vigna, public domain. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

#endif
