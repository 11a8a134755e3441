/* stacks.h - which mappings are stacks: of threads, of ended threads, of Ruby's fibers. */
#pragma once

#include "mappings/thread_stacks.h"
#include "reading.h"

/* Lists the threads and their stack pointers. Paused at the start; the process may run afterwards. */
void culet_stacks_read(struct culet_reading *reading, struct culet_thread_stacks *threads);

/* Names the stacks among the mappings that no walker has named. */
void culet_stacks_name(struct culet_reading *reading, struct culet_thread_stacks *threads);
