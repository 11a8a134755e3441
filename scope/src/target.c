#define _GNU_SOURCE
#include "target.h"

#include "complain.h"
#include "proc.h"
#include "tracing.h"

#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A slice leaves at least this much for reading, however long it took to stop all threads: else many threads would
 * mean that nothing is ever read. */
#define LEAST_WORK_NS UINT64_C(5000000)

/* A single thread is let go for so long. */
#define MOMENT_NS 50000

/* Between two pauses at least this long. */
#define LEAST_REST_NS UINT64_C(1000000)

/* So often threads that do not stop within a slice are let go, before they are waited for. */
#define STOP_TRIES 20

/* So many threads can make a pause too long: on an idle machine each takes about 10 us. What stopping costs is then tried
 * with a part of them. */
#define MANY_THREADS 256
#define SAMPLE 8

/* PF_KTHREAD, of field 9 of /proc/PID/stat: include/linux/sched.h. */
#define KERNEL_THREAD UINT64_C(0x200000)

/* All pauses together are no longer than that, as far as the processors allow: what is not read by then is read while the
 * process runs. (A gigabyte of heap takes 0.1 to 0.4 s.) A pause that is about to begin counts as long as it may be. */
#define MOST_PAUSED_NS UINT64_C(2000000000)
#define MOST_EXPECTED_NS (MOST_PAUSED_NS / 4)

uint64_t culet_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- which process ---- */

/* The file of /proc about the thread by which the process is read. */
static const char *own_file(const struct culet_target *target, const char *file, char name[80])
{
    snprintf(name, 80, "/proc/%d/task/%d/%s", (int)target->process, (int)target->pid, file);
    return name;
}

/* A number of the status of the thread by which the process is read. */
static bool status_number(const struct culet_target *target, const char *key, long *number)
{
    char name[80];

    return culet_proc_number(own_file(target, "status", name), key, number);
}

uint32_t culet_target_threads(const struct culet_target *target)
{
    long count = 0;

    if (target->most_threads)
        return target->most_threads;
    return status_number(target, "Threads", &count) ? (uint32_t)count : 0;
}

void culet_target_moment(void)
{
    static const struct timespec moment = {.tv_nsec = 1000000};

    nanosleep(&moment, NULL);
}

/* Whether the process has ended: its main thread, and all others with it. */
static bool has_ended(pid_t process)
{
    char name[64], state = culet_proc_state(process, process);
    long threads = 0;

    if (state != 'Z')
        return state == 'X';
    snprintf(name, sizeof name, "/proc/%d/status", (int)process);
    return !culet_proc_number(name, "Threads", &threads) || threads < 2;
}

/* Whether the thread still has the memory: a thread that ends gives it up (field 23, its size) before its state tells. */
static bool has_memory(pid_t process, pid_t tid)
{
    char name[80], state;
    uint64_t fields[CULET_PROC_FIELDS];

    snprintf(name, sizeof name, "/proc/%d/task/%d/stat", (int)process, (int)tid);
    return culet_proc_stat(name, &state, fields) && state != 'Z' && state != 'X' && fields[23];
}

/* A thread that still has the memory; 0 where none is found. */
static pid_t find_thread(pid_t process)
{
    char name[64];
    struct dirent *entry;
    pid_t tid, found = 0;

    snprintf(name, sizeof name, "/proc/%d/task", (int)process);
    DIR *tasks = opendir(name);
    while (tasks && !found && (entry = readdir(tasks)))
        if ((tid = (pid_t)strtol(entry->d_name, NULL, 10)) > 0 && has_memory(process, tid))
            found = tid;
    if (tasks)
        closedir(tasks);
    return found;
}

/* What changes when the process ends and its number is given anew, or when it executes another program: its start, and
 * where its code, its stack and its program's file are. Returns false when it has ended, or has no memory just now. */
static bool identify(struct culet_target *target, uint64_t identity[4])
{
    char name[80], state;
    uint64_t fields[CULET_PROC_FIELDS], memory[CULET_PROC_FIELDS];
    struct stat program = {0};

    if (!has_memory(target->process, target->pid)) {
        pid_t tid = find_thread(target->process);
        target->pid = tid ? tid : target->process;
    }
    snprintf(name, sizeof name, "/proc/%d/stat", (int)target->process);
    if (!culet_proc_stat(name, &state, fields) || !culet_proc_stat(own_file(target, "stat", name), &state, memory))
        return false;
    if (stat(own_file(target, "exe", name), &program) != 0)
        program.st_ino = 0;
    identity[0] = fields[22];
    identity[1] = memory[26];
    identity[2] = memory[28];
    identity[3] = program.st_ino;
    /* Else the thread may have ended in between. */
    return has_memory(target->process, target->pid);
}

/* The same, but waits for a process that has no memory to end, or to have some: one that ends is without it a while before
 * the kernel says that it has ended. */
static bool identify_settled(struct culet_target *target, uint64_t identity[4])
{
    bool known;

    for (unsigned tries = 0; !(known = identify(target, identity)) && tries < CULET_SETTLE_TRIES &&
                             !has_ended(target->process); tries++)
        culet_target_moment();
    return known;
}

_Noreturn void culet_target_gone(struct culet_target *target)
{
    uint64_t identity[4];

    if (!identify_settled(target, identity) || identity[0] != target->identity[0])
        culet_complain("process %d ended while it was being read", (int)target->process);
    culet_complain("process %d executed another program while it was being read; ask again", (int)target->process);
}

void culet_target_check(struct culet_target *target)
{
    uint64_t identity[4];

    if (!identify_settled(target, identity) || memcmp(identity, target->identity, sizeof identity) != 0)
        culet_target_gone(target);
}

void culet_target_open(struct culet_target *target, pid_t process, enum culet_mode mode, uint64_t slice_ns)
{
    long group;
    char name[64], state;
    uint64_t fields[CULET_PROC_FIELDS];

    *target = (struct culet_target){.process = process, .pid = process, .mode = mode, .slice_ns = slice_ns};
    snprintf(name, sizeof name, "/proc/%d/stat", (int)process);
    if (!culet_proc_stat(name, &state, fields))
        culet_complain("there is no process %d; `ps` lists those that there are", (int)process);
    snprintf(name, sizeof name, "/proc/%d/status", (int)process);
    if (culet_proc_number(name, "Tgid", &group) && group != process)
        culet_complain("%d is a thread of process %ld; give that number", (int)process, group);
    if (fields[9] & KERNEL_THREAD)
        culet_complain("process %d is a part of the kernel; it has no memory of its own", (int)process);
    if (!identify_settled(target, target->identity))
        culet_complain("process %d has ended and waits for its parent to notice; it has no memory", (int)process);
    /* Where it is allowed to this program goes first, so that others do not make the pauses longer; else not. */
    setpriority(PRIO_PROCESS, 0, -20);
    if (process == getpid())
        culet_complain("a process cannot be stopped by itself; give another number than %d", (int)process);
}

/* ---- pauses ---- */

static void rest(const struct culet_target *target)
{
    uint64_t length = target->ended_ns - target->began_ns;
    uint64_t until = target->ended_ns + (length > LEAST_REST_NS ? length : LEAST_REST_NS);

    for (uint64_t now = culet_now(); target->pauses.count && now < until; now = culet_now()) {
        struct timespec left = {.tv_sec = (time_t)((until - now) / 1000000000),
                                .tv_nsec = (long)((until - now) % 1000000000)};
        nanosleep(&left, NULL);
    }
}

/* A slice is short, and whoever keeps the reader from a processor in it keeps the process waiting too: where this is
 * allowed it goes before all others. (A priority alone counts among the processes of one session only, where the kernel
 * groups them by sessions.) */
static void hurry(struct culet_target *target, bool on)
{
    struct sched_param parameters = {.sched_priority = on ? sched_get_priority_min(SCHED_FIFO) : 0};

    if (on == target->first || (on && (target->mode != CULET_SLICED || target->ordinary)))
        return;
    target->ordinary = sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &parameters) != 0;
    target->first = on && !target->ordinary;
}

/* The kernel does not let this program stop the process: it is read live. */
static void go_live(struct culet_target *target)
{
    snprintf(target->why_live, sizeof target->why_live,
             "the kernel does not let this program stop process %d (a sandbox, seccomp perhaps), so it was read "
             "while it ran: figures may be off by what changed meanwhile", (int)target->process);
    target->mode = CULET_LIVE;
}

static void begin(struct culet_target *target)
{
    target->cpu_ns = culet_pauses_cpu();
    target->began_ns = culet_now();
}

/* What a pause counts: its length, but no more than a slice, or than the reader worked in it. What goes beyond is the
 * processors': others had them. */
static uint64_t counted(const struct culet_target *target, uint64_t length_ns, uint64_t cpu_ns)
{
    if (length_ns <= target->slice_ns)
        return length_ns;
    return cpu_ns > target->slice_ns ? cpu_ns : target->slice_ns;
}

static void end(struct culet_target *target)
{
    target->ended_ns = culet_now();
    uint64_t length_ns = target->ended_ns - target->began_ns, cpu_ns = culet_pauses_cpu() - target->cpu_ns;
    culet_pauses_add(&target->pauses, length_ns, target->stopping_ns, cpu_ns);
    target->counted_ns += counted(target, length_ns, cpu_ns);
}

/* Stops some of many threads, and says so when it takes too long to stop all. Returns false where that is not allowed. */
static bool foresee(struct culet_target *target)
{
    size_t count = target->count;

    if (target->foreseen_ns || target->mode != CULET_SLICED || count < MANY_THREADS)
        return true;
    begin(target);
    culet_tracing_try(target, count / SAMPLE, target->slice_ns);
    target->stopping_ns = culet_now() - target->began_ns;
    target->foreseen_ns = (culet_pauses_cpu() - target->cpu_ns) * SAMPLE;
    end(target);
    uint64_t all = target->stopping_ns * SAMPLE;
    if (all + LEAST_WORK_NS > target->slice_ns)
        culet_note("process %d has %zu threads; stopping them and letting them go takes about %" PRIu64 " ms in each "
                   "pause, so pauses are longer than %" PRIu64 " ms; --live reads the process without pauses",
                   (int)target->process, count, (all + 999999) / 1000000, target->slice_ns / 1000000);
    return culet_tracing_seize(target);
}

/* How long one try to stop all threads may take: where they are many, the processor time for it, and as much again for the
 * threads' own part. */
static uint64_t stop_limit(const struct culet_target *target, unsigned tries)
{
    uint64_t needed = 2 * target->foreseen_ns;

    if (target->mode != CULET_SLICED || tries >= STOP_TRIES)
        return UINT64_MAX;
    return target->slice_ns > needed ? target->slice_ns : needed;
}

/* One try to stop all threads. */
static enum culet_stop stop(struct culet_target *target, unsigned tries)
{
    rest(target);
    hurry(target, true);
    target->paused = true;
    /* What can be done before the pause is. */
    bool allowed = culet_tracing_seize(target) && foresee(target);
    begin(target);
    enum culet_stop result = allowed ? culet_tracing_stop(target, stop_limit(target, tries)) : CULET_NONE_MAY_STOP;
    target->stopping_ns = culet_now() - target->began_ns;
    if (result == CULET_NONE_MAY_STOP)
        go_live(target);
    if (result != CULET_ALL_STOP)
        culet_target_release(target);
    return result;
}

/* Whether another pause would be too much: if so the rest is read live. */
static bool is_enough(struct culet_target *target)
{
    uint64_t expected = target->slice_ns < MOST_EXPECTED_NS ? target->slice_ns : MOST_EXPECTED_NS;

    if (target->mode != CULET_SLICED || !target->counted_ns || target->counted_ns + expected <= MOST_PAUSED_NS)
        return false;
    snprintf(target->why_live, sizeof target->why_live,
             "process %d was stopped for %.1f seconds in all, so what was left was read while it ran: figures may be off by "
             "what changed meanwhile; --stop reads all of it at one moment", (int)target->process,
             (double)target->pauses.sum_ns / 1e9);
    target->mode = CULET_LIVE;
    target->enough = true;
    return true;
}

void culet_target_pause(struct culet_target *target)
{
    if (target->paused || target->mode == CULET_LIVE)
        return;
    enum culet_stop result = CULET_SOME_STOP;
    /* On a busy machine one thread may wait long for a processor to stop on, and all others would wait for that one: they go
     * on, and another try may have more luck. */
    for (unsigned tries = 0; result == CULET_SOME_STOP; tries++) {
        if (is_enough(target))
            return;
        result = stop(target, tries);
    }
    if (result == CULET_NONE_MAY_STOP)
        return;
    if (target->count > target->most_threads)
        target->most_threads = (uint32_t)target->count;
    culet_target_check(target);
    /* What it took to stop them is a part of the pause, and so is letting go: the last quarter is left for that, and for
     * what is not looked up from. */
    uint64_t ready = target->began_ns + target->stopping_ns;
    target->due_ns = target->began_ns + target->slice_ns / 4 * 3;
    if (target->due_ns < ready + LEAST_WORK_NS)
        target->due_ns = ready + LEAST_WORK_NS;
}

bool culet_target_due(const struct culet_target *target)
{
    return target->mode == CULET_SLICED && target->paused && culet_now() >= target->due_ns;
}

void culet_target_release(struct culet_target *target)
{
    if (!target->paused)
        return;
    culet_tracing_release(target);
    target->paused = false;
    end(target);
    hurry(target, false);
}

void culet_target_resume(struct culet_target *target)
{
    if (target->mode == CULET_SLICED)
        culet_target_release(target);
}

bool culet_target_where(const struct culet_target *target, size_t index, uint64_t *instruction, long *call)
{
    char name[80], text[512], *at;

    if (!target->paused || index >= target->count)
        return false;
    snprintf(name, sizeof name, "/proc/%d/task/%d/syscall", (int)target->process, (int)target->threads[index].tid);
    /* "number arguments... stack instruction", or "-1 stack instruction"; proc(5). */
    if (!culet_proc_line(name, text, sizeof text) || (*text != '-' && (*text < '0' || *text > '9')) ||
        !(at = strrchr(text, ' ')))
        return false;
    *call = strtol(text, NULL, 10);
    *instruction = strtoull(at, NULL, 16);
    return true;
}

bool culet_target_nudge(struct culet_target *target, size_t index)
{
    return target->paused && index < target->count &&
           culet_tracing_nudge(target, &target->threads[index], MOMENT_NS);
}

bool culet_target_still(const struct culet_target *target)
{
    return target->paused;
}
