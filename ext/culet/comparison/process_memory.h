/* comparison/process_memory.h - the bytes of another process, through /proc/PID/mem, which pins no pages. Only pages in
 * memory are read: reading would map an absent page and swap a swapped one in. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define COMPARISON_WORD sizeof(uint64_t)
/* size of the cached window */
#define COMPARISON_PEEK_BYTES 65536

struct comparison_extent {
    uint64_t first, past;
};

struct comparison_memory {
    int fd;
    const struct comparison_extent *present; /* pages in memory, in address order, without overlaps */
    size_t extents;
    char *window; /* NULL before the first peek */
    uint64_t window_from;
    int window_held; /* whether the window is valid */
};

/* Whether all of [first, past) is in memory. */
int culet_comparison_present(const struct comparison_memory *memory, uint64_t first, uint64_t past);

/* Copies [first, past), with zeros for pages that are not in memory.
 * Returns 0 if a page cannot be read: it was unmapped, or the process has ended. */
int culet_comparison_read(const struct comparison_memory *memory, uint64_t first, uint64_t past, char *bytes);

/* Reads at most COMPARISON_PEEK_BYTES through the cached window, fast in address order.
 * Returns the bytes, valid until the next peek, or NULL. */
const char *culet_comparison_peek(struct comparison_memory *memory, uint64_t first, uint64_t past);
