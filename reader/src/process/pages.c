#define _GNU_SOURCE
#include "process/pages.h"

#include "base/clock.h"
#include "process/proc.h"
#include "reader/format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Entries looked up for a single access out of order. */
#define SINGLE_ENTRIES 16u

/* Documentation/admin-guide/mm/pagemap.rst of Linux. */
#define ENTRY_PRESENT (UINT64_C(1) << 63)
#define ENTRY_SWAPPED (UINT64_C(1) << 62)
#define ENTRY_FILE (UINT64_C(1) << 61)
#define ENTRY_EXCLUSIVE (UINT64_C(1) << 56)
#define ENTRY_GUARD (UINT64_C(1) << 58)
/* A guard page (MADV_GUARD_INSTALL, Linux 6.13 on; newer glibc uses it for stacks) looks swapped. From 6.15 on it
 * has its own bit; in 6.13 and 6.14 it has swap type 31 (a marker, in the low five bits) and bit 2 of the offset
 * after it. */
#define ENTRY_TYPE UINT64_C(31)
#define ENTRY_GUARD_MARK (UINT64_C(4) << 5)

/* As in <linux/fs.h> of Linux 6.7 and later; the installed headers may be older. */
struct scan_region {
    uint64_t start, end, categories;
};
struct scan {
    uint64_t size, flags, start, end, walk_end, regions, regions_count, max_pages;
    uint64_t inverted, mask, any_of, wanted;
};
#define SCAN _IOWR('f', 16, struct scan)
#define SCAN_IS_PRESENT (UINT64_C(1) << 3)
#define SCAN_IS_SWAPPED (UINT64_C(1) << 4)
#define SCAN_IS_ZERO (UINT64_C(1) << 5)

/* Bytes per call: the kernel walks empty page tables entry by entry. */
#define SCAN_BYTES (UINT64_C(16) << 30)

/* The work budget: about ten times what the slowest heaps take (a gigabyte of 32-byte blocks: 0.6 s), because
 * readers under emulators and sanitizers are slower. */
#define BUDGET_NS UINT64_C(4000000000)
#define BUDGET_NS_PER_GB UINT64_C(4000000000)

/* Calls between two checks of the budget. */
#define CALLS_PER_CHECK 32u

/* Without PAGEMAP_SCAN an empty page takes 7 ns, like any other. */
#define BUDGET_EMPTIES (UINT64_C(1) << 27)
#define EMPTIES_PER_PAGE 64u

/* A mapping of at least this many pages is skipped if it had nothing in memory when it was listed. */
#define LONG_MAPPING (UINT64_C(1) << 18)

bool culet_pages_open(struct culet_pages *pages, pid_t pid, unsigned shift)
{
    pages->descriptor = open(culet_proc_path("/proc/%d/pagemap", (int)pid).text, O_RDONLY | O_CLOEXEC);
    pages->shift = shift;
    pages->scan = true;
    pages->maps = NULL;
    culet_pages_forget(pages);
    culet_pages_set_budget(pages, 0);
    return pages->descriptor >= 0;
}

void culet_pages_set_budget(struct culet_pages *pages, uint64_t resident_bytes)
{
    pages->exhausted = false;
    pages->calls = 0;
    pages->limit_ns = culet_cpu_now() + BUDGET_NS + (resident_bytes >> 20) * (BUDGET_NS_PER_GB >> 10);
    pages->empties = BUDGET_EMPTIES + (resident_bytes >> pages->shift) * EMPTIES_PER_PAGE;
}

bool culet_pages_charge(struct culet_pages *pages)
{
    if (++pages->calls >= CALLS_PER_CHECK) {
        pages->calls = 0;
        pages->exhausted = pages->exhausted || culet_cpu_now() >= pages->limit_ns;
    }
    return !pages->exhausted;
}

void culet_pages_forget(struct culet_pages *pages)
{
    pages->count = 0;
    pages->hole = pages->hole_end = 0;
}

static uint8_t state_of(uint64_t entry)
{
    uint8_t state = 0;

    if (!(entry & ENTRY_PRESENT) && entry & ENTRY_SWAPPED &&
        (entry & ENTRY_GUARD || ((entry & ENTRY_TYPE) == ENTRY_TYPE && entry & ENTRY_GUARD_MARK)))
        return 0;
    if (entry & ENTRY_PRESENT)
        state |= CULET_PAGE_PRESENT;
    else if (entry & ENTRY_SWAPPED)
        state |= CULET_PAGE_SWAPPED;
    if (!state)
        return 0;
    if (entry & ENTRY_EXCLUSIVE)
        state |= CULET_PAGE_EXCLUSIVE;
    if (entry & ENTRY_FILE)
        state |= CULET_PAGE_FILE;
    return state;
}

/* Before Linux 6.7: a page that is not exclusive, in a mapping without shared pages. */
static void guess_zero_pages(struct culet_pages *pages)
{
    for (uint32_t i = 0; i < pages->count && pages->maps && pages->maps->sized; i++) {
        if (pages->states[i] != CULET_PAGE_PRESENT)
            continue;
        const struct culet_mapping *mapping = culet_maps_at(pages->maps, (pages->first + i) << pages->shift);
        if (mapping && !mapping->shared_clean && !mapping->shared_dirty)
            pages->states[i] = CULET_PAGE_ZERO;
    }
}

/* Calls PAGEMAP_SCAN; *count gets the number of ranges found. EFAULT (a range outside of user memory) does not mean
 * that the kernel lacks the call. */
static bool scan_pages(struct culet_pages *pages, struct scan *scan, int *count)
{
    scan->size = sizeof *scan;
    *count = pages->scan && culet_pages_charge(pages) ? ioctl(pages->descriptor, SCAN, scan) : -1;
    if (*count < 0 && pages->scan && !pages->exhausted && errno != EFAULT)
        pages->scan = false;
    return *count >= 0;
}

/* Marks the zero pages of the window. */
static void find_zero_pages(struct culet_pages *pages)
{
    struct scan_region found[64];
    uint64_t start = pages->first << pages->shift, end = (pages->first + pages->count) << pages->shift;

    while (pages->scan && start < end) {
        struct scan scan = {.start = start,
                            .end = end,
                            .regions = (uintptr_t)found,
                            .regions_count = sizeof found / sizeof *found,
                            .mask = SCAN_IS_ZERO,
                            .wanted = SCAN_IS_ZERO};
        int count;
        if (!scan_pages(pages, &scan, &count))
            break;
        for (int i = 0; i < count; i++)
            for (uint64_t page = found[i].start >> pages->shift; page < found[i].end >> pages->shift; page++)
                if (page >= pages->first && page - pages->first < pages->count)
                    pages->states[page - pages->first] = CULET_PAGE_ZERO;
        if (scan.walk_end <= start)
            return;
        start = scan.walk_end;
    }
    if (!pages->scan)
        guess_zero_pages(pages);
}

/* Reads the window. */
static void read_window(struct culet_pages *pages, uint64_t first, uint32_t count)
{
    bool unclear = false;
    ssize_t got = 0;

    if (pages->descriptor >= 0 && culet_pages_charge(pages))
        got = pread(pages->descriptor, pages->entries, count * sizeof *pages->entries,
                    (off_t)(first * sizeof *pages->entries));
    uint32_t known = got > 0 ? (uint32_t)((size_t)got / sizeof *pages->entries) : 0;
    memset(pages->entries + known, 0, (count - known) * sizeof *pages->entries);
    pages->first = first;
    pages->count = count;
    for (uint32_t i = 0; i < count; i++) {
        pages->states[i] = state_of(pages->entries[i]);
        /* A page shared with a forked relative looks like a zero page. */
        unclear |= pages->states[i] == CULET_PAGE_PRESENT;
    }
    if (unclear)
        find_zero_pages(pages);
}

uint8_t culet_pages_at(struct culet_pages *pages, uint64_t address)
{
    uint64_t page = address >> pages->shift;

    if (page - pages->first >= pages->count) {
        /* Sequential access reads ahead, in growing steps. */
        bool next = pages->count && page >= pages->first && page - pages->first < pages->count + CULET_PAGES_WINDOW / 8;
        uint32_t longer = pages->count < CULET_PAGES_WINDOW / 4 ? pages->count * 4 : CULET_PAGES_WINDOW;
        read_window(pages, page, next ? longer : SINGLE_ENTRIES);
    }
    return pages->states[page - pages->first];
}

void culet_pages_copy(struct culet_pages *pages, uint64_t first, size_t count, uint8_t *states)
{
    while (count) {
        if (first - pages->first >= pages->count) {
            bool next = pages->count && first == pages->first + pages->count;
            read_window(pages, first,
                        next || count > CULET_PAGES_WINDOW ? CULET_PAGES_WINDOW
                        : count > SINGLE_ENTRIES           ? (uint32_t)count
                                                           : SINGLE_ENTRIES);
        }
        size_t from = (size_t)(first - pages->first), part = pages->count - from;
        if (part > count)
            part = count;
        memcpy(states, pages->states + from, part);
        states += part;
        first += part;
        count -= part;
    }
}

/* The first page that is not empty, by PAGEMAP_SCAN; `end` if there is none, or on failure. */
static uint64_t scan_next(struct culet_pages *pages, uint64_t page, uint64_t end)
{
    struct scan_region found;
    uint64_t most = SCAN_BYTES >> pages->shift;

    while (page < end && pages->scan) {
        uint64_t part = end - page < most ? end : page + most;
        struct scan scan = {.start = page << pages->shift,
                            .end = part << pages->shift,
                            .regions = (uintptr_t)&found,
                            .regions_count = 1,
                            .max_pages = 1,
                            .any_of = SCAN_IS_PRESENT | SCAN_IS_SWAPPED,
                            .wanted = SCAN_IS_PRESENT | SCAN_IS_SWAPPED};
        int count;
        if (!scan_pages(pages, &scan, &count))
            return pages->scan ? end : page;
        if (count > 0)
            return found.start >> pages->shift;
        page = part;
    }
    return page;
}

/* The end of the mapping of this page, if it is long and had nothing in memory when it was listed; else the page. */
static uint64_t after_empty_mapping(const struct culet_pages *pages, uint64_t page)
{
    const struct culet_mapping *mapping = NULL;

    if (pages->maps && pages->maps->sized)
        mapping = culet_maps_at(pages->maps, page << pages->shift);

    return mapping && !mapping->rss && !mapping->swap && mapping->end - mapping->start >= LONG_MAPPING << pages->shift
               ? mapping->end >> pages->shift
               : page;
}

/* The first page that is not empty, read window by window for kernels without PAGEMAP_SCAN; `end` if there is none. */
static uint64_t read_next(struct culet_pages *pages, uint64_t page, uint64_t end)
{
    while (page < end && !pages->exhausted) {
        uint64_t after = after_empty_mapping(pages, page);
        if (after > page) {
            page = after;
            continue;
        }
        if (!pages->empties) {
            pages->incomplete = true;
            return end;
        }
        read_window(pages, page, CULET_PAGES_WINDOW);
        for (uint32_t i = 0; i < pages->count; i++)
            if (pages->states[i])
                return page + i;
        page += pages->count;
        pages->empties -= pages->empties < pages->count ? pages->empties : pages->count;
    }
    return page < end && !pages->exhausted ? page : end;
}

/* The first page in the rest of the window that is not empty, or the end of the window. */
static uint64_t next_in_window(const struct culet_pages *pages, uint64_t page)
{
    uint64_t end = pages->first + pages->count;

    while (page < end && !pages->states[page - pages->first])
        page++;
    return page;
}

uint64_t culet_pages_next(struct culet_pages *pages, uint64_t page, uint64_t end)
{
    while (page < end) {
        if (page - pages->first < pages->count) {
            uint64_t next = next_in_window(pages, page);
            if (next < pages->first + pages->count)
                return next < end ? next : end;
            page = next;
        } else if (page - pages->hole < pages->hole_end - pages->hole) {
            page = pages->hole_end;
        } else {
            uint64_t next = scan_next(pages, page, end);
            if (!pages->scan)
                next = read_next(pages, next, end);
            pages->hole = page;
            pages->hole_end = next;
            return next < end ? next : end;
        }
    }
    return end;
}
