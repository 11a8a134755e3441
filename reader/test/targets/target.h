/* target.h - for all targets: they print malloc's own figures and stop, so that nothing changes any more. */
#pragma once

#include "malloc_info.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prints malloc's figures as one line "mallinfo uordblks=... ..." without using malloc. */
static inline void print_malloc_info(void)
{
    char line[512];
    struct malloc_info info = read_malloc_info();
    int length =
        snprintf(line, sizeof line,
                 "mallinfo uordblks=%zu fordblks=%zu hblks=%zu hblkhd=%zu arena=%zu "
                 "fsmblks=%zu page=%d\n",
                 info.uordblks, info.fordblks, info.hblks, info.hblkhd, info.arena, info.fsmblks, getpagesize());

    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(3);
}

/* Prints the line of print_malloc_info, and stops the process. */
static inline void print_and_stop(void)
{
    print_malloc_info();
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
