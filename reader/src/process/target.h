/* target.h - the process to read, and its pauses.
 *
 * Modes. Sliced: the process is stopped for some milliseconds at a time. Stopped: from the first pause to
 * culet_target_release. Live: never. All threads are released at the end of a pause, since signals that the process
 * gets between pauses must reach it. A process stopped by SIGSTOP stays stopped. */
#pragma once

#include "process/pauses.h"
#include "process/tracing.h"

enum culet_mode { CULET_SLICED, CULET_STOPPED, CULET_LIVE };

struct culet_target {
    pid_t process;
    pid_t pid; /* of the thread used to read /proc and memory: the main thread, unless that has ended */
    enum culet_mode mode;
    bool limit_reached;  /* it was sliced, until the pauses added up to the limit */
    uint64_t counted_ns; /* sum of all pauses, as counted against the limit */
    uint64_t slice_ns;
    struct culet_tracing tracing;
    bool paused;
    uint64_t began_ns;          /* start of this pause */
    uint64_t due_ns;            /* when this pause should end */
    uint64_t ended_ns;          /* end of the last pause */
    uint64_t stopping_ns;       /* time in this pause until all threads had stopped */
    uint64_t cpu_ns;            /* the reader's processor time at the start of this pause */
    struct culet_pauses pauses; /* finished pauses */
    bool realtime;              /* the reader has real-time priority now */
    bool realtime_refused;
    uint32_t most_threads; /* stopped at once */
    uint64_t estimated_ns; /* processor time to stop and release all threads, if they are many; 0: not measured yet */
    uint64_t identity[4];  /* start time, stack, code and program: exec changes them */
    char why_live[256];    /* sentence: why the process is read live though it should be paused; "" */
};

/* Number of threads in the process. */
uint32_t culet_target_threads(const struct culet_target *target);

/* Finds the process. Ends the program with a message if there is none, or none that can be read. */
void culet_target_open(struct culet_target *target, pid_t process, enum culet_mode mode, uint64_t slice_ns);

/* Stops all threads. Does nothing if they are stopped, and in live mode. Ends the program with a message if the
 * process has ended, or called exec since it was opened. */
void culet_target_pause(struct culet_target *target);

/* Whether the slice is over. Always false in the other modes and outside of a pause. */
bool culet_target_due(const struct culet_target *target);

/* Releases the process in sliced mode. The next pause starts after a rest as long as this pause was. */
void culet_target_resume(struct culet_target *target);

/* Releases the process in any mode: the reading is over. */
void culet_target_release(struct culet_target *target);

/* Where a thread of the paused process is: the address of its next instruction, and the number of its system call,
 * -1 for none. Returns false if unknown. */
bool culet_target_position(const struct culet_target *target, size_t thread, uint64_t *instruction, long *call);

/* How long to wait for a process that is about to end. */
#define CULET_TARGET_WAIT_MS 5000u

/* Ends the program with a message if the process is gone, or has called exec. Selects another thread to read by if the
 * current one has ended. */
void culet_target_check(struct culet_target *target);
