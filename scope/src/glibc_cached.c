#define _GNU_SOURCE
#include "glibc.h"

#include <stdlib.h>
#include <string.h>

/* Arenas' fastbins, right before `top`; there are none from 2.43 on. */
#define FASTBINS 10u

/* The bins from here on are of no single size. */
#define SMALL_BINS 64u

/* struct tcache_perthread_struct, by the size of the chunk that it is in. */
static const struct layout {
    uint64_t chunk_bytes;
    unsigned bins;
    bool counts;
} layouts[] = {
    {0x290, 64, true},  /* 2.30 to 2.41 */
    {0x300, 76, false}, /* 2.42 on */
};

/* The heap may grow while it is read: brk's upwards, new mappings come mostly below the others. */
#define GROWTH (UINT64_C(1) << 30)

static struct culet_range with_growth(uint64_t start, uint64_t end)
{
    return (struct culet_range){start > GROWTH ? start - GROWTH : 0, end + GROWTH};
}

/* What lies near brk and what the kernel maps where it likes are terabytes apart: the widest gap divides them. */
void culet_glibc_bound_links(const struct culet_scope *scope, struct culet_glibc_cached *cached)
{
    uint64_t first = 0, last = 0, widest = 0;
    struct culet_range gap = {0, 0};

    for (size_t i = 0; i < scope->maps.count; i++) {
        const struct culet_mapping *mapping = &scope->maps.all[i];
        if (!culet_mapping_is_heap_like(mapping))
            continue;
        if (last && mapping->start - last > widest) {
            widest = mapping->start - last;
            gap = (struct culet_range){last, mapping->start};
        }
        first = first ? first : mapping->start;
        last = mapping->end;
    }
    cached->low = with_growth(first, gap.start ? gap.start : last);
    cached->high = with_growth(gap.start ? gap.end : first, last);
}

static bool plausible(const struct culet_glibc_tcache *tcache)
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

/* So many of a tcache's lists tell how links are written, of such as are no longer than that. */
#define TELLING_LISTS 8u
#define TELLING_LENGTH 128u
/* And of so many tcaches, or what looks like one, until it is known. */
#define TELLING_TCACHES 64u

/* Where no tcache told it, so many lists do, of such a length. */
#define VOTING_LISTS 256u
#define VOTING_LENGTH 4096u

/* Whether a list of `count` blocks in the process ends after the last of them, if links are written that way. */
static bool ends_after(struct culet_scope *scope, uint64_t block, unsigned count, bool masked)
{
    uint64_t link;

    for (; count && block && !(block & 15); count--) {
        if (!culet_memory_word(&scope->memory, block, &link))
            return false;
        block = masked ? link ^ block >> 12 : link;
    }
    return !count && !block;
}

/* Learns from a tcache how links are written: as all of its lists have it. What only looks like a tcache may have a
 * list of one block that begins with a nought. */
static void learn_links(struct culet_scope *scope, struct culet_glibc_cached *cached,
                        const struct culet_glibc_tcache *tcache)
{
    unsigned lists = 0, masked = 0, plain = 0;

    cached->lessons++;
    for (unsigned bin = 0; bin < tcache->bins && lists < TELLING_LISTS; bin++) {
        if (!tcache->entry[bin] || tcache->count[bin] > TELLING_LENGTH)
            continue;
        lists++;
        masked += ends_after(scope, tcache->entry[bin], tcache->count[bin], true);
        plain += ends_after(scope, tcache->entry[bin], tcache->count[bin], false);
    }
    if (!lists)
        return;
    if (masked == lists)
        cached->links = CULET_GLIBC_MASKED;
    else if (plain == lists)
        cached->links = CULET_GLIBC_PLAIN;
}

void culet_glibc_know_links(struct culet_glibc *heap)
{
    bool older = heap->sbrk_field && heap->counts_before == CULET_GLIBC_COUNTS_OLD;

    heap->cached.old_tcaches = older;
    heap->cached.new_tcaches = heap->top_at < 8 * FASTBINS;
    if ((heap->sbrk_field && !older) || heap->cached.new_tcaches)
        heap->cached.links = CULET_GLIBC_MASKED;
}

void culet_glibc_note_tcache(struct culet_scope *scope, struct culet_glibc *heap, uint64_t chunk, uint64_t bytes)
{
    struct culet_glibc_cached *cached = &heap->cached;

    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        struct culet_glibc_tcache tcache = {.counts = layouts[i].counts, .bins = layouts[i].bins};
        const unsigned char *data;
        if (layouts[i].counts ? cached->new_tcaches : cached->old_tcaches)
            continue;
        /* 16 bytes more where what was left of a larger chunk is too small to be one. */
        if (bytes - layouts[i].chunk_bytes > 16 ||
            !(data = culet_memory_at(&scope->memory, chunk + 16, layouts[i].bins * 10)))
            continue;
        memcpy(tcache.count, data, tcache.bins * 2);
        memcpy(tcache.entry, data + tcache.bins * 2, tcache.bins * 8);
        if (!plausible(&tcache))
            return;
        cached->tcaches = culet_grow(cached->tcaches, &cached->tcache_room, cached->tcache_count + 1,
                                     sizeof *cached->tcaches);
        cached->tcaches[cached->tcache_count++] = tcache;
        if (tcache.counts && cached->links == CULET_GLIBC_UNKNOWN && cached->lessons < TELLING_TCACHES &&
            !culet_target_due(&scope->target))
            learn_links(scope, cached, &tcache);
    }
}

/* The notes of the region that has this address; an empty stretch where there is none. */
static struct culet_glibc_stretch stretch_of(const struct culet_glibc_cached *cached, uint64_t address)
{
    size_t from = 0, to = cached->stretch_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (cached->stretches[middle].end <= address)
            from = middle + 1;
        else
            to = middle;
    }
    if (from < cached->stretch_count && cached->stretches[from].start <= address)
        return cached->stretches[from];
    return (struct culet_glibc_stretch){0};
}

/* Index of the first note of the stretch at or behind an address. */
static size_t first_note(const struct culet_glibc_cached *cached, const struct culet_glibc_stretch *stretch,
                         uint64_t address)
{
    size_t from = stretch->first, to = stretch->past;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (culet_glibc_maybe_chunk(&cached->maybe[middle]) < address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The note of the chunk at this address, or NULL. */
static struct culet_glibc_maybe *note_of(const struct culet_glibc_cached *cached, uint64_t chunk)
{
    struct culet_glibc_stretch stretch = stretch_of(cached, chunk);
    size_t at = first_note(cached, &stretch, chunk);

    return at < stretch.past && culet_glibc_maybe_chunk(&cached->maybe[at]) == chunk ? &cached->maybe[at] : NULL;
}

static bool fits(const struct culet_glibc_maybe *note, unsigned bin)
{
    return note && note->kind == CULET_GLIBC_USED &&
           (bin >= SMALL_BINS || culet_glibc_maybe_bytes(note) == GLIBC_CHUNK_LEAST_BYTES + 16 * bin);
}

/* Where the list of this note goes on. */
static uint64_t behind(const struct culet_glibc_maybe *note, bool masked)
{
    return masked ? note->link ^ ((culet_glibc_maybe_chunk(note) + 16) >> 12) : note->link;
}

/* A list: of blocks (`ahead` is 16: the chunk begins that far before), or of chunks (0). */
struct list {
    uint64_t address, ahead;
    unsigned bin;
    enum culet_glibc_cache kind;
};

/* Whether a list ends as lists do, if links are written that way. */
static bool ends(const struct culet_glibc_cached *cached, const struct list *list, bool masked)
{
    uint64_t address = list->address;

    for (unsigned i = 0; address && i < VOTING_LENGTH; i++) {
        const struct culet_glibc_maybe *note = note_of(cached, address - list->ahead);
        if (!fits(note, list->bin))
            return false;
        address = behind(note, masked);
    }
    return !address;
}

/* Marks all that a list has. What is marked is in no other list, nor in this one again: a ring ends. */
static void mark(struct culet_glibc_cached *cached, const struct list *list)
{
    for (uint64_t address = list->address; address;) {
        struct culet_glibc_maybe *note = note_of(cached, address - list->ahead);
        if (!fits(note, list->bin))
            return;
        note->kind = list->kind & 3;
        address = behind(note, cached->links == CULET_GLIBC_MASKED);
    }
}

/* Calls `each` for the lists of all tcaches and arenas that have anything in them, at most `most`. */
static void each_list(struct culet_glibc *heap, size_t most, void (*each)(struct culet_glibc *heap, const struct list *list))
{
    const struct culet_glibc_cached *cached = &heap->cached;

    for (size_t i = 0; i < cached->tcache_count; i++)
        for (unsigned bin = 0; bin < cached->tcaches[i].bins && most; bin++)
            if (cached->tcaches[i].entry[bin]) {
                each(heap, &(struct list){cached->tcaches[i].entry[bin], 16, bin, CULET_GLIBC_TCACHE});
                most--;
            }
    for (size_t i = 0; i < heap->arena_count; i++)
        for (unsigned bin = 0; bin < heap->arenas[i].fastbins && most; bin++)
            if (heap->arenas[i].fastbin[bin]) {
                each(heap, &(struct list){heap->arenas[i].fastbin[bin], 0, bin, CULET_GLIBC_FASTBIN});
                most--;
            }
}

static void vote(struct culet_glibc *heap, const struct list *list)
{
    heap->cached.votes += ends(&heap->cached, list, true) - ends(&heap->cached, list, false);
}

static void mark_list(struct culet_glibc *heap, const struct list *list)
{
    mark(&heap->cached, list);
}

/* Which way links are written is seen from what leads to an end; in a heap that changed while it was read neither may. */
static void decide_links(struct culet_glibc *heap)
{
    if (heap->cached.links != CULET_GLIBC_UNKNOWN)
        return;
    each_list(heap, VOTING_LISTS, vote);
    heap->cached.links = heap->cached.votes < 0 ? CULET_GLIBC_PLAIN : CULET_GLIBC_MASKED;
}

static int by_start(const void *a, const void *b)
{
    const struct culet_glibc_stretch *one = a, *other = b;

    return (one->start > other->start) - (one->start < other->start);
}

void culet_glibc_end_stretch(struct culet_glibc_cached *cached, const struct culet_place *place, size_t first)
{
    cached->stretches = culet_grow(cached->stretches, &cached->stretch_room, cached->stretch_count + 1,
                                   sizeof *cached->stretches);
    cached->stretches[cached->stretch_count++] = (struct culet_glibc_stretch){
        .start = place->start, .end = place->end, .first = first, .past = cached->maybe_count};
}

void culet_glibc_read_fastbins(struct culet_scope *scope, const struct culet_glibc *heap,
                               struct culet_glibc_arena *arena)
{
    arena->fastbins = heap->top_at >= 8 * FASTBINS ? FASTBINS : 0;
    for (unsigned bin = 0; bin < arena->fastbins; bin++)
        if (!culet_memory_word(&scope->memory, arena->address + heap->top_at - 8 * FASTBINS + 8 * bin,
                               &arena->fastbin[bin]))
            arena->fastbin[bin] = 0;
}

/* What looked used was free: takes it from the one and gives it to the other. */
static void correct(struct culet_scope *scope, struct culet_glibc *heap, const struct culet_glibc_maybe *note)
{
    uint64_t bytes = culet_glibc_maybe_bytes(note), chunk = culet_glibc_maybe_chunk(note);
    struct culet_place *place = culet_places_at(&scope->places, chunk);

    if (!place || place->arena >= heap->arena_count)
        return;
    struct culet_glibc_sum *sum = &heap->arenas[place->arena].sum;
    culet_place_unuse(&scope->places, place, chunk, chunk + bytes);
    sum->used -= bytes;
    if (note->kind == CULET_GLIBC_TCACHE)
        sum->tcache += bytes;
    else
        sum->fastbin += bytes;
    culet_sizes_used(&heap->sizes, bytes, (uint64_t)-1);
    culet_sizes_free(&heap->sizes, bytes, 1);
}

/* In a region's chunks the cached ones are told as such. */
static void correct_chunks(const struct culet_glibc_cached *cached, struct culet_place *place)
{
    uint32_t *items = (uint32_t *)(void *)place->chunks.bytes;
    uint64_t at = place->first_chunk;
    struct culet_glibc_stretch stretch = stretch_of(cached, place->start);
    size_t next = stretch.first;

    for (size_t i = 0; i < place->chunks.length / sizeof *items; i++) {
        while (next < stretch.past && culet_glibc_maybe_chunk(&cached->maybe[next]) < at)
            next++;
        if (next < stretch.past && culet_glibc_maybe_chunk(&cached->maybe[next]) == at && cached->maybe[next].kind &&
            (items[i] & 3) == CULET_BLOCK_USED)
            items[i] |= CULET_BLOCK_CACHED;
        at += (uint64_t)(items[i] >> 2) * CULET_BLOCK_UNIT;
    }
}

/* What malloc_trim would give back of a run of free chunks, now that it is known which of them are in fastbins: the
 * others part it. */
static uint64_t settle_doubt(const struct culet_scope *scope, const struct culet_glibc *heap,
                             const struct culet_glibc_doubt *doubt)
{
    const struct culet_glibc_cached *cached = &heap->cached;
    struct culet_glibc_stretch stretch = stretch_of(cached, doubt->from);
    uint64_t from = doubt->from, bytes = 0;

    for (size_t i = first_note(cached, &stretch, from); i < stretch.past; i++) {
        const struct culet_glibc_maybe *note = &cached->maybe[i];
        if (culet_glibc_maybe_chunk(note) >= doubt->to)
            break;
        if (note->kind == CULET_GLIBC_FASTBIN)
            continue;
        bytes += culet_glibc_trimmed(scope, doubt->place, from, culet_glibc_maybe_chunk(note),
                                     CULET_GLIBC_CHUNK);
        from = culet_glibc_maybe_chunk(note) + culet_glibc_maybe_bytes(note);
    }
    return bytes + culet_glibc_trimmed(scope, doubt->place, from, doubt->to, doubt->end);
}

void culet_glibc_settle_cached(struct culet_scope *scope, struct culet_glibc *heap)
{
    struct culet_glibc_cached *cached = &heap->cached;

    if (cached->stretch_count)
        qsort(cached->stretches, cached->stretch_count, sizeof *cached->stretches, by_start);
    decide_links(heap);
    each_list(heap, SIZE_MAX, mark_list);
    for (size_t i = 0; i < cached->maybe_count; i++)
        if (cached->maybe[i].kind)
            correct(scope, heap, &cached->maybe[i]);
    for (size_t i = 0; i < cached->doubt_count; i++) {
        const struct culet_glibc_doubt *doubt = &cached->doubts[i];
        heap->arenas[doubt->place->arena].sum.trim += settle_doubt(scope, heap, doubt);
    }
    for (size_t i = 0; i < scope->places.count; i++)
        correct_chunks(cached, scope->places.all[i]);
}
