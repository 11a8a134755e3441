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
    bool spent;     /* culet_pages_allow: nothing more is read, all pages count as absent */
    bool unseen;    /* pages may be where they were not looked for: too much that is empty, and a kernel without PAGEMAP_SCAN */
    uint64_t limit_ns;  /* of the reader's processor time */
    uint64_t empties;   /* empty entries that may still be read, without PAGEMAP_SCAN */
    unsigned calls;     /* to the kernel, since the processor time was last looked at */
    uint64_t hole, hole_end; /* numbers of pages: nothing is in memory between them */
    const struct culet_maps *maps; /* to tell zero pages where it does not; or NULL */
    uint64_t first; /* number of the window's first page */
    uint32_t count; /* pages in the window; 0: none */
    uint64_t entries[CULET_PAGES_WINDOW];
    uint8_t states[CULET_PAGES_WINDOW];
};

/* Opens pagemap. Returns false, errno set, when it may not be read. */
bool culet_pages_open(struct culet_pages *pages, pid_t pid, unsigned shift);

/* Allows so much more work, in processor time of this program, as reading a process with that many bytes in memory can
 * take. Once it is used up nothing more is read: whatever a walker looks for is absent, so each comes to its end. */
void culet_pages_allow(struct culet_pages *pages, uint64_t resident_bytes);

/* Notes one call to the kernel for the process's memory or pages; false when nothing more is to be read. */
bool culet_pages_spend(struct culet_pages *pages);

/* Forgets what it knows: the process has run since. */
void culet_pages_forget(struct culet_pages *pages);

/* CULET_PAGE_* bits of the page with this address; 0 also where nothing is mapped. */
uint8_t culet_pages_at(struct culet_pages *pages, uint64_t address);

/* The states of the `count` pages from page number `first` on, into `states`. */
void culet_pages_copy(struct culet_pages *pages, uint64_t first, size_t count, uint8_t *states);

/* Number of the first page from `page` on, and before `end`, that may be in memory, in swap or of zeroes; `end` where there
 * is none. What is empty costs next to nothing, however long it is. */
uint64_t culet_pages_next(struct culet_pages *pages, uint64_t page, uint64_t end);

/* What is known of a run of pages: nothing; that none is in memory; or each one's state. */
enum culet_pages_knowledge { CULET_PAGES_UNKNOWN, CULET_PAGES_ABSENT, CULET_PAGES_STATES };

/* Makes the runs of record 'P' of a mapping, now. `known` is asked for states that were seen earlier, while the process
 * was paused. It returns the length, at most `count`, of a run of pages from number `first` on, and *what is known of
 * them; where that is each one's state, at most CULET_PAGES_WINDOW and in `states`. */
typedef uint64_t culet_pages_known(void *context, uint64_t first, uint64_t count, uint8_t *states,
                                   enum culet_pages_knowledge *what);
void culet_pages_runs(struct culet_pages *pages, struct culet_mapping *mapping, culet_pages_known *known,
                      void *context);

#endif
