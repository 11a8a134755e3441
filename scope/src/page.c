#define _GNU_SOURCE
#include "page.h"

#include "../format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
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
#define SCAN_IS_ZERO (UINT64_C(1) << 5)

bool culet_pages_open(struct culet_pages *pages, pid_t pid, unsigned shift)
{
    char name[64];

    snprintf(name, sizeof name, "/proc/%d/pagemap", (int)pid);
    pages->descriptor = open(name, O_RDONLY | O_CLOEXEC);
    pages->shift = shift;
    pages->scan = true;
    pages->maps = NULL;
    pages->count = 0;
    return pages->descriptor >= 0;
}

void culet_pages_forget(struct culet_pages *pages)
{
    pages->count = 0;
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

/* Marks the zero pages among the states of the window. */
static void find_zeroes(struct culet_pages *pages)
{
    struct scan_region found[64];
    uint64_t start = pages->first << pages->shift, end = (pages->first + pages->count) << pages->shift;

    while (pages->scan && start < end) {
        struct scan scan = {.size = sizeof scan, .start = start, .end = end, .regions = (uintptr_t)found,
                            .regions_count = sizeof found / sizeof *found, .mask = SCAN_IS_ZERO,
                            .wanted = SCAN_IS_ZERO};
        int count = ioctl(pages->descriptor, SCAN, &scan);
        if (count < 0) {
            pages->scan = false;
            break;
        }
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

    if (pages->descriptor >= 0)
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

static void add_run(struct culet_buffer *runs, uint64_t count, uint8_t state)
{
    if (!count)
        return;
    culet_buffer_varint(runs, count);
    culet_buffer_byte(runs, state);
}

void culet_pages_runs(struct culet_pages *pages, struct culet_mapping *mapping, culet_pages_known *known,
                      void *context)
{
    uint8_t states[CULET_PAGES_WINDOW];
    uint64_t page = mapping->start >> pages->shift, end = mapping->end >> pages->shift, run = 0;
    uint8_t state = 0;

    culet_buffer_free(&mapping->pages);
    while (page < end) {
        size_t count = end - page < CULET_PAGES_WINDOW ? (size_t)(end - page) : CULET_PAGES_WINDOW;
        bool is = false;
        count = known(context, page, count, states, &is);
        if (!is)
            culet_pages_copy(pages, page, count, states);
        for (size_t i = 0; i < count; i++) {
            if (states[i] != state) {
                add_run(&mapping->pages, run, state);
                run = 0;
                state = states[i];
            }
            run++;
        }
        page += count;
    }
    add_run(&mapping->pages, run, state);
}
