/* ruby_transient.h - the transient heap of Ruby up to 3.2: 32 MiB by mmap, in blocks of 32 KiB, for what young arrays,
 * hashes and structs hold. (transient_heap.c of CRuby 2.6 to 3.2) */
#ifndef CULET_RUBY_TRANSIENT_H
#define CULET_RUBY_TRANSIENT_H

#include "scope.h"

#define CULET_TRANSIENT_BLOCK 32768u

struct culet_transient {
    uint64_t *blocks; /* addresses of what looks like a block, in order */
    size_t count, room;
    struct culet_place *place; /* NULL: none */
};

/* Notes the memory at `address` when it looks like a block by its first two words. */
void culet_transient_note(struct culet_transient *transient, uint64_t address, const uint64_t words[2]);

/* Makes the region, if there is a row of blocks long enough to be no chance. Only while the process is paused. */
void culet_transient_walk(struct culet_scope *scope, struct culet_transient *transient);

#endif
