#include "glibc/glibc_heap.h"

#include <string.h>

/* Bins from this one on have chunks of several sizes. */
#define SINGLE_SIZE_BINS 64u

/* struct tcache_perthread_struct, by the size of its chunk. */
static const struct layout {
    uint64_t chunk_bytes;
    unsigned bins;
    bool counts;
} layouts[] = {
    {0x290, 64, true},  /* 2.30 to 2.41 */
    {0x300, 76, false}, /* 2.42 on */
};

/* ---- reading the lists' heads ---- */

/* Fastbins lie right before `top`; from 2.43 on there are none. */
void culet_glibc_caches_read_fastbins(struct culet_reading *reading, const struct culet_glibc *heap,
                                      struct culet_glibc_arena *arena)
{
    uint64_t first = arena->address + heap->top_offset - 8 * CULET_GLIBC_FASTBINS;

    arena->fastbins = heap->top_offset >= 8 * CULET_GLIBC_FASTBINS ? CULET_GLIBC_FASTBINS : 0;
    for (unsigned bin = 0; bin < arena->fastbins; bin++)
        if (!culet_memory_word(&reading->memory, first + 8 * bin, &arena->fastbin[bin]))
            arena->fastbin[bin] = 0;
}

static bool is_plausible(const struct culet_glibc_tcache *tcache)
{
    unsigned lists = 0;

    for (unsigned bin = 0; bin < tcache->bins; bin++) {
        uint64_t entry = tcache->entry[bin];
        if (entry & 15 || entry >> 48 || (tcache->counts && !entry != !tcache->count[bin]))
            return false;
        lists += entry != 0;
    }
    return lists;
}

/* ---- the form of links ---- */

/* Lists of one tcache that are followed, and their maximum length. */
#define TCACHE_LISTS 8u
#define TCACHE_LIST_LENGTH 128u
/* Tcaches tried until the form of links is known. */
#define MOST_TCACHES_TRIED 64u

/* If no tcache has settled it: lists followed among the candidates, and their maximum length. */
#define SCORED_LISTS 256u
#define SCORED_LIST_LENGTH 4096u

void culet_glibc_caches_infer_links(struct culet_glibc *heap)
{
    bool older = heap->sbrk_field && heap->counts_before == CULET_GLIBC_COUNTS_OLD;

    heap->caches.only_counted_tcaches = older;
    heap->caches.only_uncounted_tcaches = heap->top_offset < 8 * CULET_GLIBC_FASTBINS;
    if ((heap->sbrk_field && !older) || heap->caches.only_uncounted_tcaches)
        heap->candidates.links = CULET_GLIBC_LINKS_PROTECTED;
}

/* Whether a list in the process ends after exactly `count` blocks, if links have this form. */
static bool ends_after(struct culet_reading *reading, uint64_t block, unsigned count, bool is_protected)
{
    uint64_t link;

    for (; count && block && !(block & 15); count--) {
        if (!culet_memory_word(&reading->memory, block, &link))
            return false;
        block = is_protected ? link ^ block >> 12 : link;
    }
    return !count && !block;
}

/* Learns the form of links if all lists of the tcache agree. (Other data that looks like a tcache may have a list of
 * one block that begins with zero.) */
static void learn_links(struct culet_reading *reading, struct culet_glibc *heap,
                        const struct culet_glibc_tcache *tcache)
{
    unsigned lists = 0, fit_protected = 0, fit_plain = 0;

    heap->caches.tcaches_tried++;
    for (unsigned bin = 0; bin < tcache->bins && lists < TCACHE_LISTS; bin++) {
        if (!tcache->entry[bin] || tcache->count[bin] > TCACHE_LIST_LENGTH)
            continue;
        lists++;
        fit_protected += ends_after(reading, tcache->entry[bin], tcache->count[bin], true);
        fit_plain += ends_after(reading, tcache->entry[bin], tcache->count[bin], false);
    }
    if (!lists)
        return;
    if (fit_protected == lists)
        heap->candidates.links = CULET_GLIBC_LINKS_PROTECTED;
    else if (fit_plain == lists)
        heap->candidates.links = CULET_GLIBC_LINKS_PLAIN;
}

void culet_glibc_caches_add_tcache(struct culet_reading *reading, struct culet_glibc *heap, uint64_t chunk,
                                   uint64_t bytes)
{
    struct culet_glibc_caches *caches = &heap->caches;

    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        struct culet_glibc_tcache tcache = {.counts = layouts[i].counts, .bins = layouts[i].bins};
        const unsigned char *data;
        if (tcache.counts ? caches->only_uncounted_tcaches : caches->only_counted_tcaches)
            continue;
        /* 16 bytes more if the rest of a larger chunk was too small for a chunk. */
        if (bytes - layouts[i].chunk_bytes > 16 ||
            !(data = culet_memory_at(&reading->memory, chunk + 16, layouts[i].bins * 10)))
            continue;
        memcpy(tcache.count, data, tcache.bins * 2);
        memcpy(tcache.entry, data + tcache.bins * 2, tcache.bins * 8);
        if (!is_plausible(&tcache))
            return;
        CULET_APPEND(caches->tcaches, caches->tcache_count, caches->tcache_room) = tcache;
        if (tcache.counts && heap->candidates.links == CULET_GLIBC_LINKS_UNKNOWN &&
            caches->tcaches_tried < MOST_TCACHES_TRIED && !culet_target_due(&reading->target))
            learn_links(reading, heap, &tcache);
    }
}

/* ---- following the lists ---- */

/* A list of blocks (`header` is 16: the chunk begins that much before), or of chunks (0). */
struct list {
    uint64_t address, header;
    unsigned bin;
    enum culet_glibc_cache cache;
};

/* Calls `each` for the lists of all tcaches and arenas that are not empty, at most `most`. */
static void each_list(struct culet_glibc *heap, size_t most,
                      void (*each)(struct culet_glibc *heap, const struct list *list))
{
    for (size_t i = 0; i < heap->caches.tcache_count; i++) {
        const struct culet_glibc_tcache *tcache = &heap->caches.tcaches[i];
        for (unsigned bin = 0; bin < tcache->bins && most; bin++)
            if (tcache->entry[bin]) {
                each(heap, &(struct list){tcache->entry[bin], 16, bin, CULET_GLIBC_TCACHE});
                most--;
            }
    }
    for (size_t i = 0; i < heap->arena_count; i++)
        for (unsigned bin = 0; bin < heap->arenas[i].fastbins && most; bin++)
            if (heap->arenas[i].fastbin[bin]) {
                each(heap, &(struct list){heap->arenas[i].fastbin[bin], 0, bin, CULET_GLIBC_FASTBIN});
                most--;
            }
}

/* Whether the candidate can be in this bin. */
static bool fits(const struct culet_glibc_candidate *candidate, unsigned bin)
{
    return candidate && candidate->cache == CULET_GLIBC_USED &&
           (bin >= SINGLE_SIZE_BINS || culet_glibc_candidate_bytes(candidate) == GLIBC_CHUNK_LEAST_BYTES + 16 * bin);
}

/* Whether the list ends with NULL if links have this form. */
static bool ends(const struct culet_glibc_candidates *candidates, const struct list *list, bool is_protected)
{
    uint64_t address = list->address;

    for (unsigned i = 0; address && i < SCORED_LIST_LENGTH; i++) {
        const struct culet_glibc_candidate *candidate = culet_glibc_candidates_at(candidates, address - list->header);
        if (!fits(candidate, list->bin))
            return false;
        address = culet_glibc_candidate_next(candidate, is_protected);
    }
    return !address;
}

static void score_list(struct culet_glibc *heap, const struct list *list)
{
    heap->caches.link_score += ends(&heap->candidates, list, true) - ends(&heap->candidates, list, false);
}

/* Marks the chunks of a list. A marked chunk fits no list any more, so a circular list ends. */
static void mark_list(struct culet_glibc *heap, const struct list *list)
{
    for (uint64_t address = list->address; address;) {
        struct culet_glibc_candidate *candidate = culet_glibc_candidates_at(&heap->candidates, address - list->header);
        if (!fits(candidate, list->bin))
            return;
        candidate->cache = list->cache & 3;
        address = culet_glibc_candidate_next(candidate, heap->candidates.links == CULET_GLIBC_LINKS_PROTECTED);
    }
}

/* By which lists end; in a heap that changed while it was read neither form may fit. */
static void decide_links(struct culet_glibc *heap)
{
    if (heap->candidates.links != CULET_GLIBC_LINKS_UNKNOWN)
        return;
    each_list(heap, SCORED_LISTS, score_list);
    heap->candidates.links = heap->caches.link_score < 0 ? CULET_GLIBC_LINKS_PLAIN : CULET_GLIBC_LINKS_PROTECTED;
}

/* ---- correcting the figures ---- */

/* A cached chunk with a mapping of its own, which is the region's only block. */
static void correct_mapped(struct culet_glibc *heap, struct culet_region *region)
{
    if (!region->full)
        return;
    culet_region_empty(region);
    heap->cached_mmapped_bytes += region->end - region->start;
    if (region->blocks.length >= sizeof(uint32_t))
        *(uint32_t *)(void *)region->blocks.bytes |= CULET_BLOCK_CACHED;
}

/* Moves a cached chunk from the used to the free figures. */
static void correct_sums(struct culet_reading *reading, struct culet_glibc *heap,
                         const struct culet_glibc_candidate *candidate)
{
    uint64_t bytes = culet_glibc_candidate_bytes(candidate), chunk = culet_glibc_candidate_chunk(candidate);
    struct culet_region *region = culet_regions_at(&reading->regions, chunk);

    if (region && region->arena == CULET_NO_ARENA)
        correct_mapped(heap, region);
    if (!region || region->arena >= heap->arena_count)
        return;
    struct culet_glibc_sum *sum = &heap->arenas[region->arena].sum;
    culet_region_unuse(region, chunk, chunk + bytes);
    sum->used -= bytes;
    if (candidate->cache == CULET_GLIBC_TCACHE)
        sum->tcache += bytes;
    else
        sum->fastbin += bytes;
    culet_histogram_add(&heap->sizes, CULET_BLOCK_USED, bytes, (uint64_t)-1);
    culet_histogram_add(&heap->sizes, CULET_BLOCK_FREE, bytes, 1);
}

/* Marks cached chunks among the blocks of a region. */
static void correct_blocks(const struct culet_glibc_candidates *candidates, struct culet_region *region)
{
    uint32_t *items = (uint32_t *)(void *)region->blocks.bytes;
    uint64_t at = region->first_block;
    struct culet_glibc_candidate_range range = culet_glibc_candidates_of(candidates, region->start);
    size_t next = range.first;

    for (size_t i = 0; i < region->blocks.length / sizeof *items; i++) {
        while (next < range.past && culet_glibc_candidate_chunk(&candidates->all[next]) < at)
            next++;
        if (next < range.past && culet_glibc_candidate_chunk(&candidates->all[next]) == at &&
            candidates->all[next].cache && (items[i] & 3) == CULET_BLOCK_USED)
            items[i] |= CULET_BLOCK_CACHED;
        at += (uint64_t)(items[i] >> CULET_BLOCK_STATE_BITS) * CULET_BLOCK_UNIT;
    }
}

/* ---- what malloc_trim returns ---- */

/* systrim keeps a chunk of the least size, and a byte, in main's top. */
#define TOP_KEEPS (GLIBC_CHUNK_LEAST_BYTES + 1)

/* Resident bytes of the whole pages in from..to. */
static uint64_t whole_pages(const struct culet_region *region, uint64_t from, uint64_t to)
{
    uint64_t page = UINT64_C(1) << region->shift;

    return culet_region_bytes_in_state(region, (from + page - 1) & ~(page - 1), to & ~(page - 1), CULET_PAGE_PRESENT);
}

/* Algorithm: mtrim and systrim of glibc's malloc/malloc.c. A binned chunk keeps its header and links. Main's top is
 * trimmed from its end; the tops of other arenas stay. */
uint64_t culet_glibc_trim_bytes(const struct culet_region *region, uint64_t from, uint64_t to, enum culet_glibc_end end)
{
    uint64_t page = UINT64_C(1) << region->shift;

    if (end == CULET_GLIBC_TOP || to <= from)
        return 0;
    if (end == CULET_GLIBC_CHUNK)
        return whole_pages(region, from + GLIBC_CHUNK_STRUCT_BYTES, to);
    if (to - from <= TOP_KEEPS)
        return 0;
    return whole_pages(region, to - ((to - from - TOP_KEEPS) & ~(page - 1)), to);
}

/* What trim returns of a run of free chunks, now that it is known which are in fastbins: other candidates divide the
 * run. */
static uint64_t resolve_trim(const struct culet_glibc_candidates *candidates,
                             const struct culet_glibc_deferred_trim *deferred)
{
    struct culet_glibc_candidate_range range = culet_glibc_candidates_of(candidates, deferred->from);
    uint64_t from = deferred->from, bytes = 0;

    for (size_t i = culet_glibc_candidates_from(candidates, &range, from); i < range.past; i++) {
        const struct culet_glibc_candidate *candidate = &candidates->all[i];
        uint64_t chunk = culet_glibc_candidate_chunk(candidate);
        if (chunk >= deferred->to)
            break;
        if (candidate->cache == CULET_GLIBC_FASTBIN)
            continue;
        bytes += culet_glibc_trim_bytes(deferred->region, from, chunk, CULET_GLIBC_CHUNK);
        from = chunk + culet_glibc_candidate_bytes(candidate);
    }
    return bytes + culet_glibc_trim_bytes(deferred->region, from, deferred->to, deferred->end);
}

void culet_glibc_caches_resolve(struct culet_reading *reading, struct culet_glibc *heap)
{
    struct culet_glibc_candidates *candidates = &heap->candidates;

    culet_glibc_candidates_sort(candidates);
    decide_links(heap);
    each_list(heap, SIZE_MAX, mark_list);
    for (size_t i = 0; i < candidates->count; i++)
        if (candidates->all[i].cache)
            correct_sums(reading, heap, &candidates->all[i]);
    for (size_t i = 0; i < heap->caches.deferred_count; i++) {
        const struct culet_glibc_deferred_trim *deferred = &heap->caches.deferred[i];
        heap->arenas[deferred->region->arena].sum.trim += resolve_trim(candidates, deferred);
    }
    for (size_t i = 0; i < reading->regions.count; i++)
        correct_blocks(candidates, reading->regions.all[i]);
}
