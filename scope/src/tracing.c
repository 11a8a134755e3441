#define _GNU_SOURCE
#include "tracing.h"

#include "buffer.h"
#include "complain.h"
#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A thread that has not stopped after this long and sleeps in the kernel (D in ps) will not: the reading goes on without
 * it. When it wakes it stops before it comes back to the program. */
#define STUCK_NS UINT64_C(2000000)

/* A thread that is not asleep only has to be given a processor. On a busy machine many threads take their time; so the
 * limit is for as long as not one of them stops. */
#define PATIENCE_NS UINT64_C(10000000000)

/* Between two looks at a thread that has not stopped: at first, and after STUCK_NS. */
#define SHORT_NAP_NS 30000
#define LONG_NAP_NS 500000

/* So often a thread is tried that can be neither seized nor told to have ended. It may just become another one: the thread
 * that executes another program takes over the number of the main thread. */
#define SEIZE_TRIES 3

/* The target whose threads are being stopped, or are stopped; else NULL. */
static struct culet_target *stopping;

static void nap(long ns)
{
    struct timespec time = {.tv_nsec = ns};

    nanosleep(&time, NULL);
}

/* ---- letting go ---- */

/* The signal that a stopped thread must get when it is let go. */
static int signal_of(int status)
{
    /* An event's stop has its number in the third byte; PTRACE_EVENT_STOP is ours, or a group-stop, which the kernel
     * resumes by itself after the detach. */
    return status >> 16 ? 0 : WSTOPSIG(status);
}

/* Stopped by a signal such as SIGSTOP, not by the interrupt: that has SIGTRAP. */
static bool is_group_stop(int status)
{
    return status >> 16 && WSTOPSIG(status) != SIGTRAP;
}

/* What the kernel tells of a thread that stopped or ended. */
static void note(struct culet_thread *thread, int status)
{
    thread->gone = !WIFSTOPPED(status);
    thread->paused = !thread->gone;
    thread->signal = thread->paused ? signal_of(status) : 0;
    thread->grouped = thread->paused && is_group_stop(status);
}

static struct culet_thread *thread_of(struct culet_target *target, pid_t tid)
{
    for (size_t i = 0; i < target->count; i++)
        if (target->threads[i].tid == tid)
            return &target->threads[i];
    return NULL;
}

/* Between pauses: a thread that slept in the kernel when the others were let go stops as soon as it wakes, and goes on at
 * once. While a thread is seized: one that executes another program waits in the kernel until all others that have ended
 * are collected, and keeps a lock meanwhile that PTRACE_SEIZE takes. */
static void on_child(int number)
{
    int kept = errno, status;
    pid_t tid;

    (void)number;
    while ((tid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        struct culet_thread *thread = stopping ? thread_of(stopping, tid) : NULL;
        if (thread)
            note(thread, status);
        else if (WIFSTOPPED(status))
            ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal_of(status));
    }
    errno = kept;
}

static void hold_children(bool hold)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void detach(struct culet_thread *thread)
{
    ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(intptr_t)thread->signal);
    thread->paused = false;
    thread->gone = true;
}

void culet_tracing_release(struct culet_target *target)
{
    for (size_t i = 0; i < target->count; i++)
        if (target->threads[i].paused)
            detach(&target->threads[i]);
        else /* Asleep, or seized only: detached when it stops. */
            ptrace(PTRACE_INTERRUPT, target->threads[i].tid, NULL, NULL);
    target->count = 0;
    stopping = NULL;
    hold_children(false);
}

/* ---- the list of threads ---- */

static int by_number(const void *a, const void *b)
{
    pid_t one = ((const struct culet_thread *)a)->tid, other = ((const struct culet_thread *)b)->tid;

    return (one > other) - (one < other);
}

static bool is_listed(const struct culet_target *target, pid_t tid, size_t count)
{
    struct culet_thread key = {.tid = tid};

    return count && bsearch(&key, target->threads, count, sizeof key, by_number);
}

static struct culet_thread *add(struct culet_target *target, pid_t tid)
{
    target->threads = culet_grow(target->threads, &target->room, target->count + 1, sizeof *target->threads);
    target->threads[target->count] = (struct culet_thread){.tid = tid};
    return &target->threads[target->count++];
}

/* In the order of their numbers, each once, without those that have gone. */
static void tidy(struct culet_target *target)
{
    size_t kept = 0;

    if (target->count)
        qsort(target->threads, target->count, sizeof *target->threads, by_number);
    for (size_t i = 0; i < target->count; i++)
        if (!target->threads[i].gone && (!kept || target->threads[kept - 1].tid != target->threads[i].tid))
            target->threads[kept++] = target->threads[i];
    target->count = kept;
}

/* ---- seizing ---- */

/* Complains about the process that traces this thread; returns where none does. */
static void complain_of_tracer(const struct culet_target *target, pid_t tid)
{
    long tracer = 0;
    char name[64], command[64] = "";

    snprintf(name, sizeof name, "/proc/%d/task/%d/status", (int)target->process, (int)tid);
    if (!culet_proc_number(name, "TracerPid", &tracer) || !tracer || tracer == getpid())
        return;
    snprintf(name, sizeof name, "/proc/%ld/comm", tracer);
    culet_proc_line(name, command, sizeof command);
    culet_complain("process %d is being traced already, by process %ld%s%s%s; end that, or read it without "
                   "stopping it: --live", (int)target->process, tracer, *command ? " (" : "", command,
                   *command ? ")" : "");
}

/* PTRACE_SEIZE, while reports of children are taken. */
static bool is_seized(pid_t tid)
{
    hold_children(false);
    bool seized = ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0;
    hold_children(true);
    return seized;
}

/* Seizes a thread. Returns false where that is not allowed. */
static bool seize(struct culet_target *target, pid_t tid)
{
    struct culet_thread *thread = add(target, tid);

    for (unsigned tries = 0; tries < SEIZE_TRIES; tries++) {
        /* One that had not stopped when the others were let go is ours already. */
        if (is_seized(tid) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0)
            return true;
        /* A main thread that has ended before the others stays in the list, and cannot be traced. */
        char state = culet_proc_state(target->process, tid);
        thread->gone = state == 'X' || state == 'Z';
        if (thread->gone)
            return true;
        complain_of_tracer(target, tid);
    }
    thread->gone = true;
    return false;
}

bool culet_tracing_seize(struct culet_target *target)
{
    struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
    char name[64];
    struct dirent *entry;
    size_t before = target->count;
    bool allowed = true;

    hold_children(true);
    stopping = target;
    sigaction(SIGCHLD, &action, NULL);
    snprintf(name, sizeof name, "/proc/%d/task", (int)target->process);
    DIR *tasks = opendir(name);
    if (!tasks)
        culet_target_gone(target);
    while (allowed && (entry = readdir(tasks))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && !is_listed(target, tid, before))
            allowed = seize(target, tid);
    }
    closedir(tasks);
    tidy(target);
    return allowed;
}

/* Whether the process may have threads that are not seized. The kernel counts the threads as the folder's links. */
static bool has_others(const struct culet_target *target)
{
    char name[64];
    struct stat folder;

    snprintf(name, sizeof name, "/proc/%d/task", (int)target->process);
    return stat(name, &folder) != 0 || folder.st_nlink != target->count + 2;
}

/* ---- stopping ---- */

/* Takes what the kernel has to tell of a thread. Returns false when it has not stopped yet. */
static bool take_report(struct culet_thread *thread)
{
    int status;
    pid_t got = waitpid(thread->tid, &status, WNOHANG | __WALL);

    if (got > 0)
        note(thread, status);
    else if (got < 0) /* Another one has its number by now. */
        thread->gone = true;
    return got != 0;
}

/* Whether a thread that has not stopped will not. */
static bool is_out_of_reach(const struct culet_target *target, struct culet_thread *thread)
{
    char state = culet_proc_state(target->process, thread->tid);

    thread->gone = state == 'X' || state == 'Z';
    thread->stuck = state == 'D';
    return thread->gone || thread->stuck;
}

/* Waits until an interrupted thread has stopped; all were interrupted at `began_ns`. Returns false when `limit_ns` have gone
 * by since. */
static bool await_stop(const struct culet_target *target, struct culet_thread *thread, uint64_t began_ns, uint64_t limit_ns)
{
    uint64_t from = culet_now();

    while (!take_report(thread)) {
        uint64_t now = culet_now();
        bool late = now - began_ns > STUCK_NS;
        if (late && is_out_of_reach(target, thread))
            return true;
        /* Not before it is known whether the thread will stop at all. */
        if (late && now - began_ns > limit_ns)
            return false;
        if (now - from > PATIENCE_NS)
            culet_complain("process %d could not be stopped: its thread %d went on for %d seconds; read it without "
                           "stopping it: --live", (int)target->process, (int)thread->tid,
                           (int)(PATIENCE_NS / 1000000000));
        nap(late ? LONG_NAP_NS : SHORT_NAP_NS);
    }
    return true;
}

/* Stops the first `count` threads. Returns false when they have not all stopped after `limit_ns`. */
static bool stop_first(struct culet_target *target, size_t count, uint64_t limit_ns)
{
    for (size_t i = 0; i < count; i++)
        if (!target->threads[i].paused && !target->threads[i].stuck)
            ptrace(PTRACE_INTERRUPT, target->threads[i].tid, NULL, NULL);
    uint64_t began = culet_now();
    for (size_t i = 0; i < count; i++)
        if (!target->threads[i].paused && !target->threads[i].stuck &&
            !await_stop(target, &target->threads[i], began, limit_ns))
            return false;
    return true;
}

enum culet_stop culet_tracing_stop(struct culet_target *target, uint64_t limit_ns)
{
    size_t before;

    /* Threads that run can make new ones: once none is found all are stopped. */
    do {
        if (!stop_first(target, target->count, limit_ns))
            return CULET_SOME_STOP;
        tidy(target);
        before = target->count;
        if (!has_others(target))
            break;
        if (!culet_tracing_seize(target))
            return CULET_NONE_MAY_STOP;
    } while (target->count > before);
    return CULET_ALL_STOP;
}

void culet_tracing_try(struct culet_target *target, size_t count, uint64_t limit_ns)
{
    if (count > target->count)
        return;
    stop_first(target, count, limit_ns);
    for (size_t i = 0; i < count; i++)
        if (target->threads[i].paused)
            detach(&target->threads[i]);
    tidy(target);
}

bool culet_tracing_nudge(struct culet_target *target, struct culet_thread *thread, long ns)
{
    if (!thread->paused || thread->grouped || thread->signal || ptrace(PTRACE_CONT, thread->tid, NULL, NULL) != 0)
        return false;
    thread->paused = false;
    nap(ns);
    ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
    await_stop(target, thread, culet_now(), UINT64_MAX);
    return true;
}
