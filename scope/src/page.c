#define _GNU_SOURCE
#include "page.h"

#include "../format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* Entries looked up for a page that is read out of order. */
#define LONE 16u

/* Documentation/admin-guide/mm/pagemap.rst of Linux. */
#define ENTRY_PRESENT (UINT64_C(1) << 63)
#define ENTRY_SWAPPED (UINT64_C(1) << 62)
#define ENTRY_FILE (UINT64_C(1) << 61)
#define ENTRY_EXCLUSIVE (UINT64_C(1) << 56)
#define ENTRY_GUARD (UINT64_C(1) << 58)
/* A guard page (MADV_GUARD_INSTALL, Linux 6.13 on; newer glibc's stacks have some) looks like one in swap. From 6.15 on
 * it has a bit of its own; before, it is the only one of swap type 31 (a marker, in the low five bits) with bit 2 of
 * the offset behind it. */
#define ENTRY_TYPE UINT64_C(31)
#define ENTRY_GUARD_MARK (UINT64_C(4) << 5)

/* <linux/fs.h> of Linux 6.7 and later; the headers here may be older. */
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

/* Bytes that the kernel is asked about at once: page tables that were emptied and kept are walked entry by entry. */
#define SCAN_BYTES (UINT64_C(16) << 30)

/* The work that a reading may take: about ten times what the slowest heaps seen take (a gigabyte in blocks of 32 bytes:
 * 0.6 s), since a debugger's or emulator's reader is slower. */
#define ALLOWED_NS UINT64_C(4000000000)
#define ALLOWED_NS_PER_GB UINT64_C(4000000000)

/* Calls after which the clock is looked at again. */
#define CALLS 32u

/* Without PAGEMAP_SCAN an empty page costs 7 ns, like any other. */
#define ALLOWED_EMPTIES (UINT64_C(1) << 27)
#define EMPTIES_PER_PAGE 64u

/* Pages from which on a mapping that had none in memory when it was listed is passed over. */
#define LONG_MAPPING (UINT64_C(1) << 18)

bool culet_pages_open(struct culet_pages *pages, pid_t pid, unsigned shift)
{
    char name[64];

    snprintf(name, sizeof name, "/proc/%d/pagemap", (int)pid);
    pages->descriptor = open(name, O_RDONLY | O_CLOEXEC);
    pages->shift = shift;
    pages->scan = true;
    pages->maps = NULL;
    culet_pages_forget(pages);
    culet_pages_allow(pages, 0);
    return pages->descriptor >= 0;
}

static uint64_t processor_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

void culet_pages_allow(struct culet_pages *pages, uint64_t resident_bytes)
{
    pages->spent = false;
    pages->calls = 0;
    pages->limit_ns = processor_ns() + ALLOWED_NS + (resident_bytes >> 20) * (ALLOWED_NS_PER_GB >> 10);
    pages->empties = ALLOWED_EMPTIES + (resident_bytes >> pages->shift) * EMPTIES_PER_PAGE;
}

bool culet_pages_spend(struct culet_pages *pages)
{
    if (++pages->calls >= CALLS) {
        pages->calls = 0;
        pages->spent = pages->spent || processor_ns() >= pages->limit_ns;
    }
    return !pages->spent;
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

/* Linux before 6.7: a private page that no one else has, and that is not this process's alone either. */
static void guess_zeroes(struct culet_pages *pages)
{
    for (uint32_t i = 0; i < pages->count && pages->maps && pages->maps->sized; i++) {
        if (pages->states[i] != CULET_PAGE_PRESENT)
            continue;
        const struct culet_mapping *mapping = culet_maps_at(pages->maps, (pages->first + i) << pages->shift);
        if (mapping && !mapping->shared_clean && !mapping->shared_dirty)
            pages->states[i] = CULET_PAGE_ZERO;
    }
}

/* Asks the kernel; false when it does not answer. A range that it does not have in a process (EFAULT) says nothing of
 * whether it knows the question. */
static bool ask(struct culet_pages *pages, struct scan *scan, int *count)
{
    scan->size = sizeof *scan;
    *count = pages->scan && culet_pages_spend(pages) ? ioctl(pages->descriptor, SCAN, scan) : -1;
    if (*count < 0 && pages->scan && !pages->spent && errno != EFAULT)
        pages->scan = false;
    return *count >= 0;
}

/* Marks the zero pages among the states of the window. */
static void find_zeroes(struct culet_pages *pages)
{
    struct scan_region found[64];
    uint64_t start = pages->first << pages->shift, end = (pages->first + pages->count) << pages->shift;

    while (pages->scan && start < end) {
        struct scan scan = {.start = start, .end = end, .regions = (uintptr_t)found,
                            .regions_count = sizeof found / sizeof *found, .mask = SCAN_IS_ZERO,
                            .wanted = SCAN_IS_ZERO};
        int count;
        if (!ask(pages, &scan, &count))
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
        guess_zeroes(pages);
}

static void look(struct culet_pages *pages, uint64_t first, uint32_t count)
{
    bool doubtful = false;
    ssize_t got = 0;

    if (pages->descriptor >= 0 && culet_pages_spend(pages))
        got = pread(pages->descriptor, pages->entries, count * sizeof *pages->entries,
                    (off_t)(first * sizeof *pages->entries));
    uint32_t known = got > 0 ? (uint32_t)((size_t)got / sizeof *pages->entries) : 0;
    memset(pages->entries + known, 0, (count - known) * sizeof *pages->entries);
    pages->first = first;
    pages->count = count;
    for (uint32_t i = 0; i < count; i++) {
        pages->states[i] = state_of(pages->entries[i]);
        /* A private page that a forked relative has too looks the same. */
        doubtful |= pages->states[i] == CULET_PAGE_PRESENT;
    }
    if (doubtful)
        find_zeroes(pages);
}

uint8_t culet_pages_at(struct culet_pages *pages, uint64_t address)
{
    uint64_t page = address >> pages->shift;

    if (page - pages->first >= pages->count) {
        /* In order of addresses the rule is to look ahead; a lone page has no use for it. */
        bool next = pages->count && page >= pages->first && page - pages->first < pages->count + CULET_PAGES_WINDOW / 8;
        look(pages, page, !next ? LONE : pages->count < CULET_PAGES_WINDOW / 4 ? pages->count * 4 : CULET_PAGES_WINDOW);
    }
    return pages->states[page - pages->first];
}

void culet_pages_copy(struct culet_pages *pages, uint64_t first, size_t count, uint8_t *states)
{
    while (count) {
        if (first - pages->first >= pages->count) {
            bool next = pages->count && first == pages->first + pages->count;
            look(pages, first, next || count > CULET_PAGES_WINDOW ? CULET_PAGES_WINDOW
                               : count > LONE ? (uint32_t)count : LONE);
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

/* The first page that is not empty, by the kernel's own search; `end` also where it cannot tell. */
static uint64_t scan_next(struct culet_pages *pages, uint64_t page, uint64_t end)
{
    struct scan_region found;
    uint64_t most = SCAN_BYTES >> pages->shift;

    while (page < end && pages->scan) {
        uint64_t part = end - page < most ? end : page + most;
        struct scan scan = {.start = page << pages->shift, .end = part << pages->shift, .regions = (uintptr_t)&found,
                            .regions_count = 1, .max_pages = 1, .any_of = SCAN_IS_PRESENT | SCAN_IS_SWAPPED,
                            .wanted = SCAN_IS_PRESENT | SCAN_IS_SWAPPED};
        int count;
        if (!ask(pages, &scan, &count))
            return pages->scan ? end : page;
        if (count > 0)
            return found.start >> pages->shift;
        page = part;
    }
    return page;
}

/* Where the mapping of this page ends, if it is long and had nothing in memory when it was listed; else the page. */
static uint64_t behind_empty_mapping(const struct culet_pages *pages, uint64_t page)
{
    const struct culet_mapping *mapping = pages->maps && pages->maps->sized ? culet_maps_at(pages->maps, page << pages->shift) : NULL;

    return mapping && !mapping->rss && !mapping->swap && mapping->end - mapping->start >= LONG_MAPPING << pages->shift
               ? mapping->end >> pages->shift
               : page;
}

/* The same, page by page, for kernels that do not search. */
static uint64_t read_next(struct culet_pages *pages, uint64_t page, uint64_t end)
{
    while (page < end && !pages->spent) {
        uint64_t behind = behind_empty_mapping(pages, page);
        if (behind > page) {
            page = behind;
            continue;
        }
        if (!pages->empties) {
            pages->unseen = true;
            return end;
        }
        look(pages, page, CULET_PAGES_WINDOW);
        for (uint32_t i = 0; i < pages->count; i++)
            if (pages->states[i])
                return page + i;
        page += pages->count;
        pages->empties -= pages->empties < pages->count ? pages->empties : pages->count;
    }
    return page < end && !pages->spent ? page : end;
}

/* The first page of the window from `page` on that is not empty, or the window's end. */
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

static void add_run(struct culet_buffer *runs, uint64_t count, uint8_t state)
{
    if (!count)
        return;
    culet_buffer_varint(runs, count);
    culet_buffer_byte(runs, state);
}

/* More pages in this state. */
struct runs {
    struct culet_buffer *to;
    uint64_t length;
    uint8_t state;
};

static void extend(struct runs *runs, uint8_t state, uint64_t length)
{
    if (state != runs->state) {
        add_run(runs->to, runs->length, runs->state);
        runs->length = 0;
        runs->state = state;
    }
    runs->length += length;
}

void culet_pages_runs(struct culet_pages *pages, struct culet_mapping *mapping, culet_pages_known *known,
                      void *context)
{
    uint8_t states[CULET_PAGES_WINDOW];
    uint64_t page = mapping->start >> pages->shift, end = mapping->end >> pages->shift;
    struct runs runs = {.to = &mapping->pages};

    culet_buffer_free(&mapping->pages);
    while (page < end) {
        enum culet_pages_knowledge what = CULET_PAGES_UNKNOWN;
        uint64_t count = known(context, page, end - page, states, &what);
        if (what == CULET_PAGES_UNKNOWN) {
            uint64_t next = count > CULET_PAGES_WINDOW ? culet_pages_next(pages, page, page + count) : page;
            what = next > page ? CULET_PAGES_ABSENT : CULET_PAGES_STATES;
            count = next > page ? next - page : count < CULET_PAGES_WINDOW ? count : CULET_PAGES_WINDOW;
            if (what == CULET_PAGES_STATES)
                culet_pages_copy(pages, page, (size_t)count, states);
        }
        for (uint64_t i = 0; i < count && what == CULET_PAGES_STATES; i++)
            extend(&runs, states[i], 1);
        if (what == CULET_PAGES_ABSENT)
            extend(&runs, 0, count);
        page += count;
    }
    add_run(&mapping->pages, runs.length, runs.state);
}
