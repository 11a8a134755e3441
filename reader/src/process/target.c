#define _GNU_SOURCE
#include "process/target.h"

#include "base/clock.h"
#include "base/message.h"
#include "process/proc.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The least part of a slice for reading: else nothing would be read of a process with many threads. */
#define LEAST_WORK_NS UINT64_C(5000000)

/* The least rest between two pauses. */
#define LEAST_REST_NS UINT64_C(1000000)

/* How often threads that do not stop within a slice are released before the reader waits for them. */
#define STOP_TRIES 20

/* From this many threads on a pause may be too long (each takes about 10 us on an idle machine): the cost of
 * stopping is measured first with one in SAMPLE. */
#define MANY_THREADS 256
#define SAMPLE 8

/* PF_KTHREAD, of field 9 of /proc/PID/stat: include/linux/sched.h. */
#define KERNEL_THREAD UINT64_C(0x200000)

/* Limit for the sum of all pauses; the rest is read while the process runs. (A gigabyte of heap takes 0.1 to 0.4 s.) */
#define MOST_PAUSED_NS UINT64_C(2000000000)
#define MOST_EXPECTED_NS (MOST_PAUSED_NS / 4)

/* ---- identity ---- */

/* A /proc file of a thread. */
static struct culet_proc_path thread_file(pid_t process, pid_t tid, const char *file)
{
    return culet_proc_path("/proc/%d/task/%d/%s", (int)process, (int)tid, file);
}

/* Reads the number after "KEY:" in the status of the process. */
static bool read_status(pid_t process, const char *key, long *number)
{
    return culet_proc_number(culet_proc_path("/proc/%d/status", (int)process).text, key, number);
}

uint32_t culet_target_threads(const struct culet_target *target)
{
    long count = 0;

    if (target->most_threads)
        return target->most_threads;
    return read_status(target->pid, "Threads", &count) ? (uint32_t)count : 0;
}

static bool seems_ended(pid_t process)
{
    char state = culet_proc_state(process, process);
    long threads = 0;

    if (state != 'Z')
        return state == 'X';
    return !read_status(process, "Threads", &threads) || threads < 2;
}

/* Whether the main thread has ended, and all others with it. A thread that executes a program ends the main thread and
 * takes over its number, so that the state may be of the one and the number of threads of the other. */
static bool has_ended(pid_t process)
{
    return seems_ended(process) && seems_ended(process);
}

/* Whether the thread has memory: an ending thread drops it (field 23, its size) before its state changes. */
static bool has_memory(pid_t process, pid_t tid)
{
    uint64_t fields[CULET_PROC_FIELDS];
    char state;

    return culet_proc_stat(thread_file(process, tid, "stat").text, &state, fields) && state != 'Z' && state != 'X' &&
           fields[23];
}

/* A thread that has memory; 0: none. */
static pid_t find_thread(pid_t process)
{
    pid_t *threads, found = 0;
    size_t count = culet_proc_threads(process, &threads);

    for (size_t i = 0; i < count && !found; i++)
        found = has_memory(process, threads[i]) ? threads[i] : 0;
    free(threads);
    return found;
}

/* Fills in what changes when the process number is reused or the process calls exec: start time, addresses of code and
 * stack, inode of the program. Returns false if the process has ended, or has no memory at the moment. */
static bool identify(struct culet_target *target, uint64_t identity[4])
{
    char state;
    uint64_t fields[CULET_PROC_FIELDS], memory[CULET_PROC_FIELDS];
    struct stat program = {0};

    if (!has_memory(target->process, target->pid)) {
        pid_t tid = find_thread(target->process);
        target->pid = tid ? tid : target->process;
    }
    if (!culet_proc_stat(culet_proc_path("/proc/%d/stat", (int)target->process).text, &state, fields) ||
        !culet_proc_stat(thread_file(target->process, target->pid, "stat").text, &state, memory))
        return false;
    if (stat(thread_file(target->process, target->pid, "exe").text, &program) != 0)
        program.st_ino = 0;
    identity[0] = fields[22];
    identity[1] = memory[26];
    identity[2] = memory[28];
    identity[3] = program.st_ino;
    /* The thread may have ended meanwhile. */
    return has_memory(target->process, target->pid);
}

/* Identifies the process, and waits for at most CULET_TARGET_WAIT_MS while it has no memory: an ending process has
 * none for a while before it counts as ended. False: it has ended, or has no memory still. */
static bool identify_waiting(struct culet_target *target, uint64_t identity[4])
{
    bool known;

    for (unsigned tries = 0;
         !(known = identify(target, identity)) && tries < CULET_TARGET_WAIT_MS && !has_ended(target->process); tries++)
        culet_sleep_ns(1000000);
    return known;
}

static _Noreturn void fail_gone(struct culet_target *target)
{
    uint64_t identity[4];

    if (!identify_waiting(target, identity) || identity[0] != target->identity[0])
        culet_fail("process %d ended while it was being read", (int)target->process);
    culet_fail("process %d executed another program while it was being read; try again", (int)target->process);
}

void culet_target_check(struct culet_target *target)
{
    uint64_t identity[4];

    if (!identify_waiting(target, identity) || memcmp(identity, target->identity, sizeof identity) != 0)
        fail_gone(target);
}

void culet_target_open(struct culet_target *target, pid_t process, enum culet_mode mode, uint64_t slice_ns)
{
    long group;
    char state;
    uint64_t fields[CULET_PROC_FIELDS];

    *target = (struct culet_target){
        .process = process, .pid = process, .mode = mode, .slice_ns = slice_ns, .tracing = {.process = process}};
    if (!culet_proc_stat(culet_proc_path("/proc/%d/stat", (int)process).text, &state, fields))
        culet_fail("there is no process %d; `ps` lists all processes", (int)process);
    if (read_status(process, "Tgid", &group) && group != process)
        culet_fail("%d is a thread of process %ld; use that number", (int)process, group);
    if (fields[9] & KERNEL_THREAD)
        culet_fail("process %d is a kernel thread; it has no memory of its own", (int)process);
    if (!identify_waiting(target, target->identity))
        culet_fail("process %d is a zombie: it has ended, and has no memory", (int)process);
    /* If allowed: so that other processes do not make the pauses longer. */
    setpriority(PRIO_PROCESS, 0, -20);
    if (process == getpid())
        culet_fail("a process cannot stop itself; use another number than %d", (int)process);
}

/* ---- pauses ---- */

static void rest(const struct culet_target *target)
{
    uint64_t length = target->ended_ns - target->began_ns;
    uint64_t until = target->ended_ns + (length > LEAST_REST_NS ? length : LEAST_REST_NS);

    for (uint64_t now = culet_now(); target->pauses.count && now < until; now = culet_now())
        culet_sleep_ns(until - now);
}

/* In a slice the process waits for the reader, so the reader gets real-time priority if allowed. (A nice value
 * counts within one session only, where the kernel groups processes by sessions.) */
static void set_realtime(struct culet_target *target, bool on)
{
    struct sched_param parameters = {.sched_priority = on ? sched_get_priority_min(SCHED_FIFO) : 0};

    if (on == target->realtime || (on && (target->mode != CULET_SLICED || target->realtime_refused)))
        return;
    target->realtime_refused = sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &parameters) != 0;
    target->realtime = on && !target->realtime_refused;
}

/* The kernel does not allow stopping the process. */
static void go_live(struct culet_target *target)
{
    snprintf(target->why_live, sizeof target->why_live,
             "the kernel does not let this program stop process %d (a sandbox, perhaps seccomp), so the process was "
             "read while it ran: changes meanwhile make the figures inexact",
             (int)target->process);
    target->mode = CULET_LIVE;
}

static void begin(struct culet_target *target)
{
    target->cpu_ns = culet_cpu_now();
    target->began_ns = culet_now();
}

/* What a pause counts against the limit: its length, but no more than a slice or the reader's processor time in it. The
 * rest is time in which other processes had the processors. */
static uint64_t counted(const struct culet_target *target, uint64_t length_ns, uint64_t cpu_ns)
{
    if (length_ns <= target->slice_ns)
        return length_ns;
    return cpu_ns > target->slice_ns ? cpu_ns : target->slice_ns;
}

static void end(struct culet_target *target)
{
    target->ended_ns = culet_now();
    uint64_t length_ns = target->ended_ns - target->began_ns, cpu_ns = culet_cpu_now() - target->cpu_ns;
    culet_pauses_add(&target->pauses, length_ns, target->stopping_ns, cpu_ns);
    target->counted_ns += counted(target, length_ns, cpu_ns);
}

/* Measures what it takes to stop some of many threads, and prints a note if pauses will be too long. */
static enum culet_trace estimate(struct culet_target *target)
{
    size_t count = target->tracing.count;

    if (target->estimated_ns || target->mode != CULET_SLICED || count < MANY_THREADS)
        return CULET_TRACED;
    begin(target);
    culet_tracing_sample(&target->tracing, count / SAMPLE, target->slice_ns);
    target->stopping_ns = culet_now() - target->began_ns;
    target->estimated_ns = (culet_cpu_now() - target->cpu_ns) * SAMPLE;
    end(target);
    uint64_t all = target->stopping_ns * SAMPLE;
    if (all + LEAST_WORK_NS > target->slice_ns)
        culet_note("process %d has %zu threads; stopping and releasing them takes about %" PRIu64 " ms in each "
                   "pause, so pauses are longer than %" PRIu64 " ms; --live reads without pauses",
                   (int)target->process, count, (all + 999999) / 1000000, target->slice_ns / 1000000);
    return culet_tracing_seize(&target->tracing);
}

/* Time limit of one try to stop all threads: with many threads the measured processor time, and as much for their
 * part. */
static uint64_t stop_limit(const struct culet_target *target, unsigned tries)
{
    uint64_t needed = 2 * target->estimated_ns;

    if (target->mode != CULET_SLICED || tries >= STOP_TRIES)
        return UINT64_MAX;
    return target->slice_ns > needed ? target->slice_ns : needed;
}

/* One try to stop all threads. */
static enum culet_trace stop(struct culet_target *target, unsigned tries)
{
    rest(target);
    set_realtime(target, true);
    target->paused = true;
    /* As much as possible before the pause begins. */
    enum culet_trace result = culet_tracing_seize(&target->tracing);
    if (result == CULET_TRACED)
        result = estimate(target);
    begin(target);
    if (result == CULET_TRACED)
        result = culet_tracing_stop(&target->tracing, stop_limit(target, tries));
    if (result == CULET_TRACE_NO_PROCESS)
        fail_gone(target);
    target->stopping_ns = culet_now() - target->began_ns;
    if (result == CULET_TRACE_REFUSED)
        go_live(target);
    if (result != CULET_TRACED)
        culet_target_release(target);
    return result;
}

/* Whether another pause would exceed the limit: then the rest is read live. */
static bool reaches_limit(struct culet_target *target)
{
    uint64_t expected = target->slice_ns < MOST_EXPECTED_NS ? target->slice_ns : MOST_EXPECTED_NS;

    if (target->mode != CULET_SLICED || !target->counted_ns || target->counted_ns + expected <= MOST_PAUSED_NS)
        return false;
    snprintf(target->why_live, sizeof target->why_live,
             "process %d was stopped for %.1f seconds in all, so the rest was read while it ran: changes meanwhile "
             "make the figures inexact; --stop reads the whole process in one pause",
             (int)target->process, (double)target->pauses.sum_ns / 1e9);
    target->mode = CULET_LIVE;
    target->limit_reached = true;
    return true;
}

void culet_target_pause(struct culet_target *target)
{
    if (target->paused || target->mode == CULET_LIVE)
        return;
    enum culet_trace result = CULET_TRACE_TIMEOUT;
    /* On a busy machine one thread may wait long for a processor: the others are released meanwhile. */
    for (unsigned tries = 0; result == CULET_TRACE_TIMEOUT; tries++) {
        if (reaches_limit(target))
            return;
        result = stop(target, tries);
    }
    if (result == CULET_TRACE_REFUSED)
        return;
    if (target->tracing.count > target->most_threads)
        target->most_threads = (uint32_t)target->tracing.count;
    culet_target_check(target);
    /* Stopping is part of the pause. The last quarter is left for releasing, and for work between two looks at the
     * clock. */
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
    culet_tracing_release(&target->tracing);
    target->paused = false;
    end(target);
    set_realtime(target, false);
}

void culet_target_resume(struct culet_target *target)
{
    if (target->mode == CULET_SLICED)
        culet_target_release(target);
}

bool culet_target_position(const struct culet_target *target, size_t thread, uint64_t *instruction, long *call)
{
    char text[512], *at;

    if (!target->paused || thread >= target->tracing.count)
        return false;
    struct culet_proc_path path = thread_file(target->process, target->tracing.threads[thread].tid, "syscall");
    /* "number arguments... stack instruction", or "-1 stack instruction"; proc(5). */
    if (!culet_proc_line(path.text, text, sizeof text) || (*text != '-' && (*text < '0' || *text > '9')) ||
        !(at = strrchr(text, ' ')))
        return false;
    *call = strtol(text, NULL, 10);
    *instruction = strtoull(at, NULL, 16);
    return true;
}
