/* tracing.h - stops the threads of a process and releases them; target.c decides when.
 *
 * Threads are stopped by PTRACE_SEIZE and PTRACE_INTERRUPT and released by PTRACE_DETACH: no signal is sent, nothing
 * in the process changes, and the kernel releases the threads when this program dies. Each thread is waited for by
 * its number: a wait for any thread takes the kernel a walk over all of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct culet_tracee {
    pid_t tid;
    bool stopped;
    bool blocked;       /* in uninterruptible sleep: it cannot be stopped */
    bool gone;          /* ended or released */
    bool group_stopped; /* by SIGSTOP or ^Z; it stays so after its release */
    int signal;         /* pending when the thread was stopped; delivered on release */
};

struct culet_tracing {
    pid_t process;
    struct culet_tracee *threads;
    size_t count, room;
};

/* CULET_TRACE_REFUSED: the kernel does not allow tracing (a sandbox). */
enum culet_trace { CULET_TRACED, CULET_TRACE_TIMEOUT, CULET_TRACE_REFUSED, CULET_TRACE_NO_PROCESS };

/* Seizes the threads that are not seized yet, without stopping them. Skips threads that end or exec meanwhile. Ends the
 * program with a message if another process traces them. */
enum culet_trace culet_tracing_seize(struct culet_tracing *tracing);

/* Stops all threads, new ones included. CULET_TRACE_TIMEOUT: some still run after `limit_ns`; they stop when they
 * next run, and are released at once if culet_tracing_release was called. Ends the program with a message if a
 * thread never stops. */
enum culet_trace culet_tracing_stop(struct culet_tracing *tracing, uint64_t limit_ns);

/* Stops the first `count` seized threads and releases them, to measure the cost. Threads that have not stopped after
 * `limit_ns` are left to culet_tracing_stop. */
void culet_tracing_sample(struct culet_tracing *tracing, size_t count, uint64_t limit_ns);

/* Releases all threads. */
void culet_tracing_release(struct culet_tracing *tracing);

/* Lets one stopped thread run for a moment and stops it again. Returns false if it cannot run: it has a pending signal,
 * or is group-stopped. (No single steps: their trap is a signal that would kill the process if the reader died just
 * then.) */
bool culet_tracing_run_thread(struct culet_tracing *tracing, size_t index);
