#include "inherited.h"

#include "harden.h"
#include "os.h"
#include "pages.h"

#define WORDS (CULET_SEGMENT_PAGES / 64)

struct marks {
    _Atomic uint64_t own[WORDS], stale[WORDS]; /* bits per page */
};

/* Constant between two forks, of the segments that there were at the last one. Pages of later segments are the process's
 * own. */
static struct marks *marks;
static uint32_t segments; /* that have marks */
static size_t mapped;     /* bytes */

/* Without memory for new marks the old ones stay: more pages count as the process's own then. Stale ones must not be
 * forgotten, since a block there that is not zero would be taken for one that was written to. */
void culet_inherited_after_fork(void)
{
    size_t page = culet_os_page_bytes();
    uint32_t count = segments;

    if (culet_harden_level < CULET_HARDEN_CANARIES)
        return;
    while (culet_pages_segment(count) != CULET_PAGES_END)
        count++;
    size_t bytes = (count * sizeof *marks + page - 1) & ~(page - 1);
    struct marks *fresh = culet_os_map(bytes);
    if (!fresh)
        return;
    for (uint32_t i = 0; i < segments; i++)
        for (unsigned w = 0; w < WORDS; w++) {
            uint64_t stale = atomic_load_explicit(&marks[i].stale[w], memory_order_relaxed);
            if (stale)
                atomic_store_explicit(&fresh[i].stale[w], stale, memory_order_relaxed);
        }
    if (marks)
        culet_os_unmap(marks, mapped);
    marks = fresh;
    segments = count;
    mapped = bytes;
}

/* The pages of a block from the segment's `first` to its `last` one. False: the segment has no marks. */
static bool pages_of(const struct culet_slab *slab, uintptr_t block, size_t bytes, size_t *first, size_t *last)
{
    uint32_t segment = slab->span.segment;

    if (CULET_LIKELY(segment >= segments))
        return false;
    uintptr_t offset = block - culet_pages_segment(segment);
    *first = offset >> CULET_PAGE_SHIFT;
    *last = (offset + bytes - 1) >> CULET_PAGE_SHIFT;
    return true;
}

static bool is_set(_Atomic uint64_t *words, size_t page)
{
    return atomic_load_explicit(&words[page / 64], memory_order_relaxed) >> page % 64 & 1;
}

static void set(_Atomic uint64_t *words, size_t first, size_t last)
{
    for (size_t page = first; page <= last; page++)
        if (!is_set(words, page))
            atomic_fetch_or_explicit(&words[page / 64], UINT64_C(1) << page % 64, memory_order_relaxed);
}

bool culet_inherited(const struct culet_slab *slab, uintptr_t block, size_t bytes)
{
    size_t first, last;

    if (!pages_of(slab, block, bytes, &first, &last))
        return false;
    for (size_t page = first; page <= last; page++)
        if (!is_set(marks[slab->span.segment].own, page))
            return true;
    return false;
}

void culet_inherited_own(const struct culet_slab *slab, uintptr_t block, size_t bytes)
{
    size_t first, last;

    if (pages_of(slab, block, bytes, &first, &last))
        set(marks[slab->span.segment].own, first, last);
}

bool culet_inherited_stale(const struct culet_slab *slab, uintptr_t block, size_t bytes)
{
    size_t first, last;

    if (!pages_of(slab, block, bytes, &first, &last))
        return false;
    for (size_t page = first; page <= last; page++)
        if (is_set(marks[slab->span.segment].stale, page))
            return true;
    return false;
}

void culet_inherited_set_stale(const struct culet_slab *slab, uintptr_t block, size_t bytes)
{
    size_t first, last;

    if (pages_of(slab, block, bytes, &first, &last))
        set(marks[slab->span.segment].stale, first, last);
}
