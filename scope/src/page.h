/* page.h - which pages of the process are in memory: /proc/PID/pagemap, and what it does not tell from the ioctl
 * PAGEMAP_SCAN (Linux 6.7 on). Reading either touches no page of the process. */
#ifndef CULET_PAGE_H
#define CULET_PAGE_H

#include "maps.h"

#include <stdbool.h>
#include <stdint.h>

/* Pages that are looked up at once: 512 entries are one page of pagemap. */
#define CULET_PAGES_WINDOW 1024u

struct culet_pages {
    int descriptor; /* of pagemap; -1: it may not be read */
    unsigned shift; /* log2 of the page size */
    bool scan;      /* the kernel knows PAGEMAP_SCAN */
    const struct culet_maps *maps; /* to tell zero pages where it does not; or NULL */
    uint64_t first; /* number of the window's first page */
    uint32_t count; /* pages in the window; 0: none */
    uint64_t entries[CULET_PAGES_WINDOW];
    uint8_t states[CULET_PAGES_WINDOW];
};

/* Opens pagemap. Returns false, errno set, when it may not be read. */
bool culet_pages_open(struct culet_pages *pages, pid_t pid, unsigned shift);

/* Forgets what it knows: the process has run since. */
void culet_pages_forget(struct culet_pages *pages);

/* CULET_PAGE_* bits of the page with this address; 0 also where nothing is mapped. */
uint8_t culet_pages_at(struct culet_pages *pages, uint64_t address);

/* The states of the `count` pages from page number `first` on, into `states`. */
void culet_pages_copy(struct culet_pages *pages, uint64_t first, size_t count, uint8_t *states);

/* Makes the runs of record 'P' of a mapping, now. `known` is asked for states that were seen earlier, while the process
 * was paused. It returns the length, at most `count`, of a run of pages from number `first` on: *is tells whether these
 * are known, and then `states` are theirs. */
typedef size_t culet_pages_known(void *context, uint64_t first, size_t count, uint8_t *states, bool *is);
void culet_pages_runs(struct culet_pages *pages, struct culet_mapping *mapping, culet_pages_known *known,
                      void *context);

#endif
