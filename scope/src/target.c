#define _GNU_SOURCE
#include "target.h"

#include "buffer.h"
#include "complain.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A slice leaves at least this much for reading, however long it took to stop all threads: else many threads would
 * mean that nothing is ever read. */
#define LEAST_WORK_NS UINT64_C(5000000)

/* A thread that has not stopped after this long and sleeps in the kernel (D in ps) will not: it is going on without.
 * When it wakes it stops before it comes back to the program. */
#define STUCK_NS UINT64_C(2000000)

/* One that is not asleep is waited for: it only has to be given a processor. */
#define PATIENCE_NS UINT64_C(5000000000)

/* A single thread is let go for so long. */
#define MOMENT_NS 50000

/* Between two pauses at least this long. */
#define LEAST_REST_NS UINT64_C(1000000)

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

/* ---- what /proc tells ---- */

/* One line's number out of /proc/PID/status; false when it is not there. */
static bool status_number(pid_t pid, const char *key, long *number)
{
    char name[64], line[512];
    bool found = false;

    snprintf(name, sizeof name, "/proc/%d/status", (int)pid);
    FILE *file = fopen(name, "re");
    while (file && !found && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':') {
            *number = strtol(line + strlen(key) + 1, NULL, 10);
            found = true;
        }
    if (file)
        fclose(file);
    return found;
}

/* The fields of a stat file from the state on, as in proc(5), where the state is number 3. */
static bool stat_fields(const char *name, char *state, uint64_t *fields, int count)
{
    char text[2048];
    FILE *file = fopen(name, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;

    if (file)
        fclose(file);
    text[length] = 0;
    /* The name before it, in parentheses, may have anything in it. */
    char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || !at[2])
        return false;
    *state = at[2];
    at += 3;
    for (int i = 4; i < count; i++)
        fields[i] = (uint64_t)strtoll(at, &at, 10);
    return true;
}

uint32_t culet_target_threads(const struct culet_target *target)
{
    long count = 0;

    if (target->most_threads)
        return target->most_threads;
    return status_number(target->pid, "Threads", &count) ? (uint32_t)count : 0;
}

static char thread_state(pid_t pid, pid_t tid)
{
    char name[80], state = 'X';

    snprintf(name, sizeof name, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    if (!stat_fields(name, &state, NULL, 0))
        return 'X';
    return state;
}

/* What changes when the process ends and its number is given anew, or when it executes another program. */
static bool identify(pid_t pid, char *state, uint64_t identity[4])
{
    char name[64];
    uint64_t fields[29] = {0};
    struct stat program = {0};

    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    if (!stat_fields(name, state, fields, 29))
        return false;
    snprintf(name, sizeof name, "/proc/%d/exe", (int)pid);
    if (stat(name, &program) != 0)
        program.st_ino = 0;
    identity[0] = fields[22];
    identity[1] = fields[26];
    identity[2] = fields[28];
    identity[3] = program.st_ino;
    return true;
}

_Noreturn void culet_target_gone(const struct culet_target *target)
{
    uint64_t identity[4];
    char state;

    if (!identify(target->pid, &state, identity) || state == 'Z' || state == 'X' ||
        identity[0] != target->identity[0])
        culet_complain("process %d ended while it was being read", (int)target->pid);
    culet_complain("process %d executed another program while it was being read; ask again", (int)target->pid);
}

void culet_target_check(const struct culet_target *target)
{
    uint64_t identity[4];
    char state;

    if (!identify(target->pid, &state, identity) || state == 'Z' || state == 'X' ||
        memcmp(identity, target->identity, sizeof identity) != 0)
        culet_target_gone(target);
}

void culet_target_open(struct culet_target *target, pid_t pid, enum culet_mode mode, uint64_t slice_ns)
{
    long group, memory;
    char state;

    *target = (struct culet_target){.pid = pid, .mode = mode, .slice_ns = slice_ns};
    if (!identify(pid, &state, target->identity))
        culet_complain("there is no process %d; `ps` lists those that there are", (int)pid);
    if (status_number(pid, "Tgid", &group) && group != pid)
        culet_complain("%d is a thread of process %ld; give that number", (int)pid, group);
    if (state == 'Z' || state == 'X')
        culet_complain("process %d has ended and waits for its parent to notice; it has no memory", (int)pid);
    if (!status_number(pid, "VmSize", &memory))
        culet_complain("process %d is a part of the kernel; it has no memory of its own", (int)pid);
    /* Where it is allowed to this program goes first, so that others do not make the pauses longer; else not. */
    setpriority(PRIO_PROCESS, 0, -20);
    if (pid == getpid())
        culet_complain("a process cannot be stopped by itself; give another number than %d", (int)pid);
}

/* ---- letting go ---- */

static void detach(struct culet_thread *thread)
{
    if (thread->seized)
        ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(intptr_t)thread->signal);
    thread->seized = thread->paused = false;
    thread->signal = 0;
}

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

/* A thread that slept in the kernel when the others were let go stops as soon as it wakes: it goes on at once. */
static void let_go(int number)
{
    int kept = errno, status;
    pid_t tid;

    (void)number;
    while ((tid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
        if (WIFSTOPPED(status))
            ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal_of(status));
    errno = kept;
}

static void hold_children(bool hold)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* ---- stopping ---- */

static struct culet_thread *thread_of(struct culet_target *target, pid_t tid)
{
    for (size_t i = 0; i < target->count; i++)
        if (target->threads[i].tid == tid)
            return &target->threads[i];
    return NULL;
}

static void drop(struct culet_target *target, struct culet_thread *thread)
{
    *thread = target->threads[--target->count];
}

/* Why the process may not be traced: ends the program, or has it read live. */
static void refused(struct culet_target *target)
{
    long tracer = 0;
    char name[64], command[64] = "";

    if (status_number(target->pid, "TracerPid", &tracer) && tracer) {
        snprintf(name, sizeof name, "/proc/%ld/comm", tracer);
        FILE *file = fopen(name, "re");
        if (!file || !fgets(command, sizeof command, file))
            command[0] = 0;
        if (file)
            fclose(file);
        command[strcspn(command, "\n")] = 0;
        culet_complain("process %d is being traced already, by process %ld%s%s%s; end that, or read it without "
                       "stopping it: --live", (int)target->pid, tracer, *command ? " (" : "", command,
                       *command ? ")" : "");
    }
    snprintf(target->why_live, sizeof target->why_live,
             "the kernel does not let this program stop process %d (a sandbox, seccomp perhaps), so it was read "
             "while it ran: figures may be off by what changed meanwhile", (int)target->pid);
    target->mode = CULET_LIVE;
}

/* One that had not stopped when the others were let go is ours already. */
static bool is_ours(pid_t tid)
{
    return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0;
}

/* Seizes a new thread and asks it to stop. */
static void seize(struct culet_target *target, pid_t tid)
{
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        bool gone = errno == ESRCH;
        /* A main thread that has ended before the others stays in the list, and cannot be traced. */
        if (gone || thread_state(target->pid, tid) == 'Z')
            return;
        if (!is_ours(tid)) {
            refused(target);
            return;
        }
    }
    target->threads = culet_grow(target->threads, &target->room, target->count + 1, sizeof *target->threads);
    target->threads[target->count++] = (struct culet_thread){.tid = tid, .seized = true};
    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
}

/* Seizes threads that are not seized yet. Returns how many there were. */
static size_t seize_new(struct culet_target *target)
{
    char name[64];
    struct dirent *entry;
    size_t before = target->count;

    snprintf(name, sizeof name, "/proc/%d/task", (int)target->pid);
    DIR *tasks = opendir(name);
    if (!tasks)
        culet_target_gone(target);
    while (target->mode != CULET_LIVE && (entry = readdir(tasks))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && !thread_of(target, tid))
            seize(target, tid);
    }
    closedir(tasks);
    return target->count - before;
}

static void take_reports(struct culet_target *target)
{
    int status;
    pid_t tid;

    while ((tid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        struct culet_thread *thread = thread_of(target, tid);
        if (!thread)
            continue;
        if (!WIFSTOPPED(status)) {
            drop(target, thread);
            continue;
        }
        thread->paused = true;
        thread->signal = signal_of(status);
        thread->grouped = is_group_stop(status);
    }
}

/* Threads that are neither stopped nor, after a while, asleep in the kernel. */
static size_t running(struct culet_target *target, bool late)
{
    size_t count = 0;

    target->stuck = 0;
    for (size_t i = target->count; i-- > 0;) {
        struct culet_thread *thread = &target->threads[i];
        char state;
        if (thread->paused)
            continue;
        if (!late) {
            count++;
            continue;
        }
        state = thread_state(target->pid, thread->tid);
        if (state == 'X' || state == 'Z')
            drop(target, thread);
        else if (state == 'D')
            target->stuck++;
        else
            count++;
    }
    return count;
}

/* Waits until every seized thread has stopped. */
static void await_stops(struct culet_target *target)
{
    uint64_t began = culet_now(), waited = 0;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (;;) {
        take_reports(target);
        if (!running(target, waited > STUCK_NS))
            return;
        if (waited > PATIENCE_NS)
            culet_complain("process %d could not be stopped within %d seconds; read it without stopping it: --live",
                           (int)target->pid, (int)(PATIENCE_NS / 1000000000));
        struct timespec limit = {.tv_nsec = 1000000};
        sigtimedwait(&set, NULL, &limit);
        waited = culet_now() - began;
    }
}

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

/* Whether another pause would be too much: if so the rest is read live. */
static bool is_enough(struct culet_target *target)
{
    uint64_t expected = target->slice_ns < MOST_EXPECTED_NS ? target->slice_ns : MOST_EXPECTED_NS;

    if (target->mode != CULET_SLICED || !target->counted_ns || target->counted_ns + expected <= MOST_PAUSED_NS)
        return false;
    snprintf(target->why_live, sizeof target->why_live,
             "process %d was stopped for %.1f seconds in all, so what was left was read while it ran: figures may be off by "
             "what changed meanwhile; --stop reads all of it at one moment", (int)target->pid,
             (double)target->pauses.sum_ns / 1e9);
    target->mode = CULET_LIVE;
    target->enough = true;
    return true;
}

void culet_target_pause(struct culet_target *target)
{
    if (target->paused || target->mode == CULET_LIVE || is_enough(target))
        return;
    rest(target);
    signal(SIGCHLD, let_go);
    hold_children(true);
    target->count = 0;
    hurry(target, true);
    target->cpu_ns = culet_pauses_cpu();
    target->began_ns = culet_now();
    target->stopping_ns = 0;
    target->paused = true;
    /* Threads that run can make new ones: once none is found all are stopped. */
    while (seize_new(target))
        await_stops(target);
    if (target->mode == CULET_LIVE) {
        culet_target_release(target);
        return;
    }
    if (target->count > target->most_threads)
        target->most_threads = (uint32_t)target->count;
    culet_target_check(target);
    /* What it took to stop them is a part of the pause, and so is letting go: the last quarter is left for that, and for
     * what is not looked up from. */
    uint64_t ready = culet_now();
    target->stopping_ns = ready - target->began_ns;
    target->due_ns = target->began_ns + target->slice_ns / 4 * 3;
    if (target->due_ns < ready + LEAST_WORK_NS)
        target->due_ns = ready + LEAST_WORK_NS;
}

bool culet_target_due(const struct culet_target *target)
{
    return target->mode == CULET_SLICED && target->paused && culet_now() >= target->due_ns;
}

/* What a pause counts: its length, but no more than a slice, or than the reader worked in it. What goes beyond is the
 * processors': others had them. */
static uint64_t counted(const struct culet_target *target, uint64_t length_ns, uint64_t cpu_ns)
{
    if (length_ns <= target->slice_ns)
        return length_ns;
    return cpu_ns > target->slice_ns ? cpu_ns : target->slice_ns;
}

void culet_target_release(struct culet_target *target)
{
    if (!target->paused)
        return;
    for (size_t i = 0; i < target->count; i++)
        if (target->threads[i].paused)
            detach(&target->threads[i]);
    target->paused = false;
    target->ended_ns = culet_now();
    uint64_t length_ns = target->ended_ns - target->began_ns, cpu_ns = culet_pauses_cpu() - target->cpu_ns;
    culet_pauses_add(&target->pauses, length_ns, target->stopping_ns, cpu_ns);
    target->counted_ns += counted(target, length_ns, cpu_ns);
    hurry(target, false);
    hold_children(false);
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
    snprintf(name, sizeof name, "/proc/%d/task/%d/syscall", (int)target->pid, (int)target->threads[index].tid);
    FILE *file = fopen(name, "re");
    bool read = file && fgets(text, sizeof text, file);
    if (file)
        fclose(file);
    /* "number arguments... stack instruction", or "-1 stack instruction"; proc(5). */
    if (!read || (*text != '-' && (*text < '0' || *text > '9')) || !(at = strrchr(text, ' ')))
        return false;
    *call = strtol(text, NULL, 10);
    *instruction = strtoull(at, NULL, 16);
    return true;
}

bool culet_target_nudge(struct culet_target *target, size_t index)
{
    struct timespec moment = {.tv_nsec = MOMENT_NS};
    struct culet_thread *thread = &target->threads[index];

    if (!target->paused || index >= target->count || !thread->paused || thread->grouped || thread->signal)
        return false;
    thread->paused = false;
    if (ptrace(PTRACE_CONT, thread->tid, NULL, NULL) != 0)
        return false;
    nanosleep(&moment, NULL);
    ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
    await_stops(target);
    return true;
}

bool culet_target_still(const struct culet_target *target)
{
    return target->paused;
}
