/* stacks.h - which mappings are stacks: of threads, of ended threads, of Ruby's fibers. */
#pragma once

#include "reading.h"

struct culet_thread_stack {
    pid_t tid;
    char name[64];
    uint64_t pointer; /* stack pointer; 0: the kernel does not report it, because the thread was running */
    const struct culet_mapping *mapping; /* of its stack, or NULL */
    bool in_fiber;                       /* the mapping is a fiber's; the thread's own stack is another */
};

struct culet_thread_stacks {
    struct culet_thread_stack *all;
    size_t count;
};

/* Lists the threads and their stack pointers. Paused at the start; the process may run afterwards. */
void culet_stacks_read(struct culet_reading *reading, struct culet_thread_stacks *threads);

/* Names the stacks among the mappings that no walker has named. */
void culet_stacks_name(struct culet_reading *reading, struct culet_thread_stacks *threads);
