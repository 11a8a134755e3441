#define _GNU_SOURCE
#include "process/tracing.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/message.h"
#include "process/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A thread in uninterruptible sleep (D in ps) after this time is skipped. When it wakes it stops before it returns
 * to user code. */
#define BLOCKED_NS UINT64_C(2000000)

/* Other threads only need a processor. The limit is for the time in which not one of them stops. */
#define PATIENCE_NS UINT64_C(10000000000)

/* Poll intervals: at first, and after BLOCKED_NS. */
#define SHORT_POLL_NS 30000
#define LONG_POLL_NS 500000

/* How long culet_tracing_run_thread lets a thread run. */
#define RUN_NS 50000

/* A thread can be neither seizable nor gone for a moment: a thread that calls exec takes over the number of the main
 * thread. */
#define SEIZE_TRIES 3

/* For the signal handler: the process whose threads are being stopped or are stopped, else NULL. */
static struct culet_tracing *stopping;

/* ---- releasing ---- */

/* The signal to deliver to a stopped thread on release. */
static int signal_of(int status)
{
    /* An event has its number in the third byte: PTRACE_EVENT_STOP is our interrupt, or a group-stop, which the kernel
     * restores after the detach. */
    return status >> 16 ? 0 : WSTOPSIG(status);
}

/* Stopped by a signal such as SIGSTOP; our interrupt shows as SIGTRAP. */
static bool is_group_stop(int status)
{
    return status >> 16 && WSTOPSIG(status) != SIGTRAP;
}

/* Takes the wait status of a thread that stopped or ended. */
static void take_status(struct culet_tracee *thread, int status)
{
    thread->gone = !WIFSTOPPED(status);
    thread->stopped = !thread->gone;
    thread->signal = thread->stopped ? signal_of(status) : 0;
    thread->group_stopped = thread->stopped && is_group_stop(status);
}

static struct culet_tracee *thread_of(struct culet_tracing *tracing, pid_t tid)
{
    for (size_t i = 0; i < tracing->count; i++)
        if (tracing->threads[i].tid == tid)
            return &tracing->threads[i];
    return NULL;
}

/* Between pauses: releases threads that were blocked when the others were released, as soon as they stop. While a
 * thread is seized: a thread in exec waits in the kernel until all ended threads are reaped, and holds a lock that
 * PTRACE_SEIZE takes. */
static void on_child(int number)
{
    int kept = errno, status;
    pid_t tid;

    (void)number;
    while ((tid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        struct culet_tracee *thread = stopping ? thread_of(stopping, tid) : NULL;
        if (thread)
            take_status(thread, status);
        else if (WIFSTOPPED(status))
            ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal_of(status));
    }
    errno = kept;
}

static void block_sigchld(bool block)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void detach(struct culet_tracee *thread)
{
    ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(intptr_t)thread->signal);
    thread->stopped = false;
    thread->gone = true;
}

void culet_tracing_release(struct culet_tracing *tracing)
{
    for (size_t i = 0; i < tracing->count; i++)
        if (tracing->threads[i].stopped)
            detach(&tracing->threads[i]);
        else /* Blocked, or seized only: detached when it stops. */
            ptrace(PTRACE_INTERRUPT, tracing->threads[i].tid, NULL, NULL);
    tracing->count = 0;
    stopping = NULL;
    block_sigchld(false);
}

/* ---- the list of threads ---- */

static int by_number(const void *a, const void *b)
{
    pid_t one = ((const struct culet_tracee *)a)->tid, other = ((const struct culet_tracee *)b)->tid;

    return (one > other) - (one < other);
}

static bool is_listed(const struct culet_tracing *tracing, pid_t tid, size_t count)
{
    struct culet_tracee key = {.tid = tid};

    return count && bsearch(&key, tracing->threads, count, sizeof key, by_number);
}

/* Sorts the list by number and removes duplicates and threads that are gone. */
static void normalize(struct culet_tracing *tracing)
{
    size_t kept = 0;

    if (tracing->count)
        qsort(tracing->threads, tracing->count, sizeof *tracing->threads, by_number);
    for (size_t i = 0; i < tracing->count; i++)
        if (!tracing->threads[i].gone && (!kept || tracing->threads[kept - 1].tid != tracing->threads[i].tid))
            tracing->threads[kept++] = tracing->threads[i];
    tracing->count = kept;
}

/* ---- seizing ---- */

/* Fails if another process traces this thread. */
static void check_tracer(const struct culet_tracing *tracing, pid_t tid)
{
    struct culet_proc_path status = culet_proc_path("/proc/%d/task/%d/status", (int)tracing->process, (int)tid);
    long tracer = 0;
    char command[64];

    if (!culet_proc_number(status.text, "TracerPid", &tracer) || !tracer || tracer == getpid())
        return;
    culet_proc_line(culet_proc_path("/proc/%ld/comm", tracer).text, command, sizeof command);
    culet_fail("process %d is already being traced by process %ld%s%s%s; end that one, or read without "
               "pauses: --live",
               (int)tracing->process, tracer, *command ? " (" : "", command, *command ? ")" : "");
}

/* PTRACE_SEIZE, with SIGCHLD unblocked. */
static bool is_seized(pid_t tid)
{
    block_sigchld(false);
    bool seized = ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0;
    block_sigchld(true);
    return seized;
}

/* Returns false if the kernel does not allow it. */
static bool seize(struct culet_tracing *tracing, pid_t tid)
{
    struct culet_tracee *thread = &CULET_APPEND(tracing->threads, tracing->count, tracing->room);

    *thread = (struct culet_tracee){.tid = tid};
    for (unsigned tries = 0; tries < SEIZE_TRIES; tries++) {
        /* A thread that had not stopped when the others were released is seized already. */
        if (is_seized(tid) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0)
            return true;
        /* A main thread that ended before the others stays listed as a zombie. */
        char state = culet_proc_state(tracing->process, tid);
        thread->gone = state == 'X' || state == 'Z';
        if (thread->gone)
            return true;
        check_tracer(tracing, tid);
    }
    thread->gone = true;
    return false;
}

enum culet_trace culet_tracing_seize(struct culet_tracing *tracing)
{
    struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
    pid_t *threads;
    size_t before = tracing->count;
    bool allowed = true;

    block_sigchld(true);
    stopping = tracing;
    sigaction(SIGCHLD, &action, NULL);
    size_t count = culet_proc_threads(tracing->process, &threads);
    for (size_t i = 0; i < count && allowed; i++)
        allowed = is_listed(tracing, threads[i], before) || seize(tracing, threads[i]);
    free(threads);
    if (!count)
        return CULET_TRACE_NO_PROCESS;
    normalize(tracing);
    return allowed ? CULET_TRACED : CULET_TRACE_REFUSED;
}

/* Whether the process may have threads that are not seized: the link count of the task directory has their number. */
static bool has_unseized(const struct culet_tracing *tracing)
{
    struct stat folder;

    return stat(culet_proc_path("/proc/%d/task", (int)tracing->process).text, &folder) != 0 ||
           folder.st_nlink != tracing->count + 2;
}

/* ---- stopping ---- */

/* Polls a thread. Returns false if it still runs. */
static bool poll_thread(struct culet_tracee *thread)
{
    int status;
    pid_t got = waitpid(thread->tid, &status, WNOHANG | __WALL);

    if (got > 0)
        take_status(thread, status);
    else if (got < 0) /* Its number belongs to another thread now. */
        thread->gone = true;
    return got != 0;
}

/* Whether a running thread will not stop: it is gone or blocked. */
static bool is_unstoppable(const struct culet_tracing *tracing, struct culet_tracee *thread)
{
    char state = culet_proc_state(tracing->process, thread->tid);

    thread->gone = state == 'X' || state == 'Z';
    thread->blocked = state == 'D';
    return thread->gone || thread->blocked;
}

/* Waits until an interrupted thread has stopped. Returns false `limit_ns` after `began_ns`, the time of all
 * interrupts. */
static bool await_stop(const struct culet_tracing *tracing, struct culet_tracee *thread, uint64_t began_ns,
                       uint64_t limit_ns)
{
    uint64_t from = culet_now();

    while (!poll_thread(thread)) {
        uint64_t now = culet_now();
        bool late = now - began_ns > BLOCKED_NS;
        if (late && is_unstoppable(tracing, thread))
            return true;
        /* Not before it is known whether the thread can stop. */
        if (late && now - began_ns > limit_ns)
            return false;
        if (now - from > PATIENCE_NS)
            culet_fail("process %d could not be stopped: its thread %d still ran after %d seconds; read without "
                       "pauses: --live",
                       (int)tracing->process, (int)thread->tid, (int)(PATIENCE_NS / 1000000000));
        culet_sleep_ns(late ? LONG_POLL_NS : SHORT_POLL_NS);
    }
    return true;
}

/* Stops the first `count` threads. Returns false if some still run after `limit_ns`. */
static bool stop_first(struct culet_tracing *tracing, size_t count, uint64_t limit_ns)
{
    for (size_t i = 0; i < count; i++)
        if (!tracing->threads[i].stopped && !tracing->threads[i].blocked)
            ptrace(PTRACE_INTERRUPT, tracing->threads[i].tid, NULL, NULL);
    uint64_t began = culet_now();
    for (size_t i = 0; i < count; i++)
        if (!tracing->threads[i].stopped && !tracing->threads[i].blocked &&
            !await_stop(tracing, &tracing->threads[i], began, limit_ns))
            return false;
    return true;
}

enum culet_trace culet_tracing_stop(struct culet_tracing *tracing, uint64_t limit_ns)
{
    size_t before;

    /* Running threads can start new ones: repeat until none is found. */
    do {
        if (!stop_first(tracing, tracing->count, limit_ns))
            return CULET_TRACE_TIMEOUT;
        normalize(tracing);
        before = tracing->count;
        if (!has_unseized(tracing))
            break;
        enum culet_trace seized = culet_tracing_seize(tracing);
        if (seized != CULET_TRACED)
            return seized;
    } while (tracing->count > before);
    return CULET_TRACED;
}

void culet_tracing_sample(struct culet_tracing *tracing, size_t count, uint64_t limit_ns)
{
    if (count > tracing->count)
        return;
    stop_first(tracing, count, limit_ns);
    for (size_t i = 0; i < count; i++)
        if (tracing->threads[i].stopped)
            detach(&tracing->threads[i]);
    normalize(tracing);
}

bool culet_tracing_run_thread(struct culet_tracing *tracing, size_t index)
{
    struct culet_tracee *thread = &tracing->threads[index];

    if (!thread->stopped || thread->group_stopped || thread->signal ||
        ptrace(PTRACE_CONT, thread->tid, NULL, NULL) != 0)
        return false;
    thread->stopped = false;
    culet_sleep_ns(RUN_NS);
    ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
    await_stop(tracing, thread, culet_now(), UINT64_MAX);
    return true;
}
