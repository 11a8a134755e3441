/* store.h - the player's own memory.
 *
 * It comes from shared mappings, which the kernel does not count as anonymous memory: so the anonymous memory of the
 * process is that of the allocator which is tried, and of libc, but not the player's. */
#ifndef CULET_STORE_H
#define CULET_STORE_H

#include <stddef.h>

/* Zeroed memory for `count` items of `bytes` each; ends the program when there is none. */
void *culet_store_new(size_t count, size_t bytes);

void culet_store_free(void *store, size_t count, size_t bytes);

/* Makes room for `wanted` items where `*count` are: by doubling, zeroed, the old ones kept. */
void culet_store_grow(void **store, size_t *count, size_t wanted, size_t bytes);

/* Takes what lies from byte `from` to byte `to` out of this process's page tables; the contents stay, and a read
 * brings them back. The kernel goes through all that is in the tables when it is asked what is resident. */
void culet_store_rest(void *store, size_t from, size_t to);

#endif
