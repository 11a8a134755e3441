/* target.h - the process that is read, and its pauses.
 *
 * Sliced: it is stopped for some milliseconds at a time. Stopped: from the first pause to culet_target_release.
 * Live: never. Threads are stopped with PTRACE_SEIZE and PTRACE_INTERRUPT and let go with PTRACE_DETACH at the end
 * of each pause: no signal is sent, nothing in the process changes, the kernel lets it run when the reader dies, and
 * signals that it gets between pauses are not ours to pass on. One that is stopped (SIGSTOP) stays stopped. */
#ifndef CULET_TARGET_H
#define CULET_TARGET_H

#include "pauses.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum culet_mode { CULET_SLICED, CULET_STOPPED, CULET_LIVE };

struct culet_thread {
    pid_t tid;
    bool seized;
    bool paused;
    bool grouped; /* it is stopped like ^Z does it, and stays so */
    int signal;  /* on its way when the thread was paused: delivered when it is let go */
};

struct culet_target {
    pid_t pid;
    enum culet_mode mode;
    bool enough; /* it was sliced, until it had been paused for long enough */
    uint64_t counted_ns; /* of all pauses: what they are to be kept short by */
    uint64_t slice_ns;
    struct culet_thread *threads;
    size_t count, room;
    bool paused;
    uint64_t began_ns;       /* of this pause */
    uint64_t due_ns;         /* when it should end */
    uint64_t ended_ns;       /* of the last pause */
    uint64_t stopping_ns;    /* how long it took in this pause until all had stopped */
    uint64_t cpu_ns;         /* the reader's processor time when this pause began */
    struct culet_pauses pauses; /* those that are over */
    bool first;              /* the reader goes before all others */
    bool ordinary;           /* the kernel does not let it */
    uint32_t most_threads; /* stopped at once */
    uint32_t stuck; /* threads that could not be stopped: asleep in the kernel */
    uint64_t identity[4]; /* start time, stack, code and program: an exec changes them */
    char why_live[256];   /* sentence: why the process is read live though it should be paused; "" */
};

/* Threads that the process has. */
uint32_t culet_target_threads(const struct culet_target *target);

/* Nanoseconds of a clock that only goes forward. */
uint64_t culet_now(void);

/* Finds the process. Ends the program with a sentence where there is none, or none that can be read. */
void culet_target_open(struct culet_target *target, pid_t pid, enum culet_mode mode, uint64_t slice_ns);

/* Stops all threads. Does nothing where they are stopped already, and in live mode. Ends the program with a sentence
 * where the process has ended, or has executed another program since it was opened. */
void culet_target_pause(struct culet_target *target);

/* The slice is over: let go soon. Never so in the other modes, nor outside of a pause. */
bool culet_target_due(const struct culet_target *target);

/* Lets it run, in sliced mode. The next pause begins after a rest as long as the pause was. */
void culet_target_resume(struct culet_target *target);

/* Lets it run in any mode: the reading is over. */
void culet_target_release(struct culet_target *target);

/* Whether what is read cannot change meanwhile: it is paused. */
bool culet_target_still(const struct culet_target *target);

/* What a thread of a paused process is in the middle of: the address of its next instruction, and the number of the
 * system call that it is in, -1 for none. False when it cannot be told. */
bool culet_target_where(const struct culet_target *target, size_t index, uint64_t *instruction, long *call);

/* Lets one thread of a paused process go on for a moment, the others rest. (Not step by step: the trap after a step is a
 * signal, which would end the process if the reader died just then.) False when it may not: it has a signal to take, or
 * is stopped as a whole. */
bool culet_target_nudge(struct culet_target *target, size_t index);

/* Ends the program with a sentence: the process has gone, or executed another program, or what else `what` tells. */
_Noreturn void culet_target_gone(const struct culet_target *target);

/* Ends the program with a sentence if it is not there any more, or not the same. */
void culet_target_check(const struct culet_target *target);

#endif
