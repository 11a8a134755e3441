/* mapping.h - the replay's own memory: shared mappings.
 *
 * The kernel does not count them as anonymous memory, so the process's anonymous memory is that of the allocator under
 * test and of libc. */
#pragma once

#include <stddef.h>

/* Zeroed memory for `count` items of `bytes` each; ends the program without memory. */
void *culet_mapping_new(size_t count, size_t bytes);

void culet_mapping_free(void *mapping, size_t count, size_t bytes);

/* Grows `*mapping` from `*count` to at least `wanted` items, by doubling; new items are zero. */
void culet_mapping_grow(void **mapping, size_t *count, size_t wanted, size_t bytes);

/* Removes bytes `from` to `to` from the page tables, which the kernel walks to measure resident memory. The contents
 * stay. */
void culet_mapping_unmap_pages(void *mapping, size_t from, size_t to);
