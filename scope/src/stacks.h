/* stacks.h - which mappings are stacks: of threads, of threads that have ended, of Ruby's fibers. */
#ifndef CULET_STACKS_H
#define CULET_STACKS_H

#include "scope.h"

/* Lists the threads and where their stack pointers are. The process is paused before, but may run afterwards. */
void culet_stacks_read(struct culet_scope *scope);

/* Names the stacks, where no walker has found something else in the mapping. */
void culet_stacks_name(struct culet_scope *scope);

/* Writes the records "thread". */
void culet_stacks_tell(void);

#endif
