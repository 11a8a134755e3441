/*
 * comparison/process_memory.h - the bytes of another process's pages, by its /proc/PID/mem, which pins no page. Only pages that
 * were in memory are read: a read maps an absent page, and brings a swapped one back.
 */
#ifndef CULET_COMPARISON_PROCESS_MEMORY_H
#define CULET_COMPARISON_PROCESS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define COMPARISON_WORD sizeof(uint64_t)
/* The memory that a peek keeps. */
#define COMPARISON_PEEK_BYTES 65536

struct comparison_extent {
  uint64_t first, past;
};

struct comparison_memory {
  int fd;
  const struct comparison_extent *present; /* pages in memory: in address order, without overlaps */
  size_t extents;
  char *window; /* COMPARISON_PEEK_BYTES, or NULL before the first peek */
  uint64_t window_from;
  int window_held; /* whether the window was read; 0 as long as there is none */
};

/* Whether all of [first, past) was in memory. */
int culet_comparison_present(const struct comparison_memory *memory, uint64_t first, uint64_t past);

/*
 * Copies [first, past) to `bytes`, with zeroes for pages that were not in memory.
 * Returns 0 where a page could not be read: it was unmapped, or the process has ended.
 */
int culet_comparison_read(const struct comparison_memory *memory, uint64_t first, uint64_t past, char *bytes);

/*
 * The same of at most COMPARISON_PEEK_BYTES, for callers that ask in the order of addresses.
 * Returns the bytes, valid until the next peek; NULL where they could not be read.
 */
const char *culet_comparison_peek(struct comparison_memory *memory, uint64_t first, uint64_t past);

#endif
