/* target.h - the process that is read, and its pauses.
 *
 * Sliced: it is stopped for some milliseconds at a time. Stopped: from the first pause to culet_target_release.
 * Live: never. How threads are stopped stands in tracing.h. They are let go for good at the end of each pause: signals that
 * the process gets between pauses are not ours to pass on. One that is stopped (SIGSTOP) stays stopped. */
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
    bool paused;
    bool stuck;   /* asleep in the kernel: it cannot be stopped */
    bool gone;    /* ended, or let go */
    bool grouped; /* it is stopped like ^Z does it, and stays so */
    int signal;   /* on its way when the thread was paused: delivered when it is let go */
};

struct culet_target {
    pid_t process; /* its number */
    pid_t pid;     /* of the thread by which /proc and the memory are read: the main thread, unless that has ended */
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
    uint64_t foreseen_ns;  /* processor time to stop all threads and let them go, where there are many; 0: not tried yet */
    uint64_t identity[4]; /* start time, stack, code and program: an exec changes them */
    char why_live[256];   /* sentence: why the process is read live though it should be paused; "" */
};

/* Threads that the process has. */
uint32_t culet_target_threads(const struct culet_target *target);

/* Nanoseconds of a clock that only goes forward. */
uint64_t culet_now(void);

/* Finds the process. Ends the program with a sentence where there is none, or none that can be read. */
void culet_target_open(struct culet_target *target, pid_t process, enum culet_mode mode, uint64_t slice_ns);

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

/* So many moments a process is given to end. */
#define CULET_SETTLE_TRIES 5000u

/* Waits for a millisecond. */
void culet_target_moment(void);

/* Ends the program with a sentence: the process has gone, or executed another program, or what else `what` tells. */
_Noreturn void culet_target_gone(struct culet_target *target);

/* Ends the program with a sentence if it is not there any more, or not the same. Finds another thread to read it by, if
 * that one has ended. */
void culet_target_check(struct culet_target *target);

#endif
