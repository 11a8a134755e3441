/* thread_stacks.h - the threads of the process, by name, and where their stacks are. */
#pragma once

#include "process/maps.h"

struct culet_thread_stack {
    pid_t tid;
    char name[64];
    uint64_t pointer; /* stack pointer; 0: the kernel does not report it, because the thread was running */
    const struct culet_mapping *mapping; /* of its stack, or NULL */
    bool in_fiber;                       /* the mapping is a fiber's; the thread's own stack is another */
};

struct culet_thread_stacks {
    struct culet_thread_stack *all;
    size_t count, room;
};

/* Lists the threads of a process. */
void culet_thread_stacks_list(struct culet_thread_stacks *threads, pid_t process);

/* Reads a stack pointer from /proc/PID/task/TID/syscall. Returns false if the thread runs or has ended. */
bool culet_thread_stack_find_pointer(struct culet_thread_stack *thread, pid_t process);

void culet_thread_stacks_read_names(struct culet_thread_stacks *threads, pid_t process);
