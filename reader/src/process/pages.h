/* pages.h - which pages of the process are in memory, from /proc/PID/pagemap and the ioctl PAGEMAP_SCAN (Linux 6.7 on).
 * Neither touches a page of the process. */
#pragma once

#include "process/maps.h"

#include <stdbool.h>
#include <stdint.h>

/* Pages looked up at once. */
#define CULET_PAGES_WINDOW 1024u

struct culet_pages {
    int descriptor;          /* of pagemap; -1: not readable */
    unsigned shift;          /* log2 of the page size */
    bool scan;               /* the kernel has PAGEMAP_SCAN */
    bool exhausted;          /* the work budget is used up: all pages count as absent */
    bool incomplete;         /* too many empty pages for a kernel without PAGEMAP_SCAN: some pages were not looked at */
    uint64_t limit_ns;       /* the budget's end, in processor time of the reader */
    uint64_t empties;        /* empty entries that may still be read, without PAGEMAP_SCAN */
    unsigned calls;          /* to the kernel, since the budget was last checked */
    uint64_t hole, hole_end; /* page numbers: nothing is in memory between them */
    const struct culet_maps *maps; /* to recognize zero pages without PAGEMAP_SCAN; or NULL */
    uint64_t first;                /* page number of the window's first page */
    uint32_t count;                /* pages in the window; 0: none */
    uint64_t entries[CULET_PAGES_WINDOW];
    uint8_t states[CULET_PAGES_WINDOW];
};

/* Opens pagemap. Returns false, errno set, on failure. */
bool culet_pages_open(struct culet_pages *pages, pid_t pid, unsigned shift);

/* Starts a new work budget: as much processor time as reading a process with that many resident bytes can take. Once
 * it is used up nothing more is read: everything looks absent to the walkers, so each of them ends by itself. */
void culet_pages_set_budget(struct culet_pages *pages, uint64_t resident_bytes);

/* Charges one call to the kernel for memory or pages. Returns false if the budget is used up. */
bool culet_pages_charge(struct culet_pages *pages);

/* Forgets the window: the process has run. */
void culet_pages_forget(struct culet_pages *pages);

/* The CULET_PAGE_* bits of the page at this address; 0 if nothing is mapped there. */
uint8_t culet_pages_at(struct culet_pages *pages, uint64_t address);

/* Copies the states of `count` pages from page number `first` on. */
void culet_pages_copy(struct culet_pages *pages, uint64_t first, size_t count, uint8_t *states);

/* The number of the first page in page..end that may be in memory, in swap or a zero page; `end`: none. Takes hardly
 * any time for empty ranges of any length. */
uint64_t culet_pages_next(struct culet_pages *pages, uint64_t page, uint64_t end);
