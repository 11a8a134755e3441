/* Runs the thread of the windows by a clock of its own.
 *
 * windows span NANOSECONDS begins a span so long before a window opens, ends it in the window, and prints for how many
 * nanoseconds the window is still open then.
 *
 * windows cost NANOSECONDS has each window cost so much, and prints a line for each part of PART windows: the processor
 * time of its windows and all of its time. */
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sleeper.h"
#include "profile/windows.h"

#define SPAN 10000 /* nanoseconds in the window */
#define PART 64
#define PARTS 32

static bool costs;
static uint64_t now = UINT64_C(1000000000), given;
static uint64_t part_began = UINT64_C(1000000000);
static unsigned windows;
static int sleeps;
static struct culet_windows_span span;
static sem_t printed;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    uint64_t read = clock == CLOCK_MONOTONIC ? now : 0;

    *time = (struct timespec){(time_t)(read / 1000000000), (long)(read % 1000000000)};
    return 0;
}

static void sleep_for(uint64_t nanoseconds)
{
    if (costs) {
        now += nanoseconds;
        return;
    }
    switch (sleeps++) {
    case 0: /* until the window opens */
        span = culet_windows_begin();
        now += given;
        break;
    case 1: /* until it closes */
        now += SPAN;
        culet_windows_end(span);
        break;
    case 2:
        printf("%llu\n", (unsigned long long)nanoseconds);
        now += nanoseconds;
        sem_post(&printed);
    }
}

/* Of culet_sleeper_sleep and culet_sleeper_wake. */
long syscall(long number, ...)
{
    const struct timespec *time;
    va_list list;
    int operation;

    (void)number;
    va_start(list, number);
    (void)va_arg(list, void *);
    operation = va_arg(list, int);
    (void)va_arg(list, uint32_t);
    time = va_arg(list, const struct timespec *);
    va_end(list);
    if (operation == FUTEX_WAIT_PRIVATE)
        sleep_for((uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec);
    return 0;
}

/* The job runs at once. */
static void trigger(void)
{
    if (!costs || !culet_windows_wanted() || windows == PART * PARTS)
        return;
    culet_windows_cost(given);
    if (++windows % PART != 0)
        return;
    printf("%llu %llu\n", (unsigned long long)(PART * given), (unsigned long long)(now - part_began));
    part_began = now;
    if (windows == PART * PARTS)
        sem_post(&printed);
}

int main(int argc, char **argv)
{
    costs = argc > 1 && strcmp(argv[1], "cost") == 0;
    given = strtoull(argv[argc - 1], NULL, 10);
    if (sem_init(&printed, 0, 0) != 0 || culet_windows_prepare(trigger) != 0 || culet_windows_start() != 0)
        return 1;
    sem_wait(&printed);
    culet_windows_stop();
    return 0;
}
