/* threads.h - the process's threads, by name, and where their stacks are. */
#ifndef CULET_THREADS_H
#define CULET_THREADS_H

#include "maps.h"

struct culet_thread_stack {
    pid_t tid;
    char name[64];
    uint64_t pointer; /* its stack pointer; 0 where the kernel does not tell: it was running */
    const struct culet_mapping *mapping; /* of its stack, or NULL */
    bool in_fiber;                       /* that is a fiber's, and its own is another */
};

struct culet_threads {
    struct culet_thread_stack *all;
    size_t count, room;
};

/* Lists the threads of a process. */
void culet_threads_list(struct culet_threads *threads, pid_t process);

/* Reads a thread's stack pointer from /proc/PID/task/TID/syscall. Returns false where the kernel does not tell it, because
 * the thread runs, or has ended. */
bool culet_thread_find_pointer(struct culet_thread_stack *thread, pid_t process);

/* Reads their names. */
void culet_threads_name(struct culet_threads *threads, pid_t process);

/* Writes the records "thread". */
void culet_threads_tell(const struct culet_threads *threads);

#endif
