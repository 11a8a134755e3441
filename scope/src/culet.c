/* The walker of culet's own heap: segments by slabs and runs, huge blocks, kept extents, descriptors, tables. */
#include "culet_self.h"
#include "culet_slab.h"
#include "gather.h"
#include "names.h"
#include "ranges.h"
#include "sizes.h"

#include "../format.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#define ARENA 0

/* A list in the process is followed no further than this: it may be a ring. */
#define MOST_LISTED ((size_t)1 << 24)

/* No region is longer than this: the sizes come from the process. */
#define MOST_BYTES (UINT64_C(1) << 44)

/* Times that the process is let go because it is just changing its page heap. */
#define MOST_RETRIES 200

/* What stands at a granule of a segment. */
struct item {
    uint32_t granule;
    uint32_t klass; /* 0: a run */
    uint64_t owner; /* address of the descriptor */
};

static struct {
    struct culet_selfmap self;
    struct culet_shape *shapes;
    const char *library;
    struct culet_ranges taken; /* by regions */
    struct item *items; /* of one segment, as all that follows */
    uint64_t *entries;
    uint64_t *addresses;
    unsigned char *descriptors;
    bool *got;
    unsigned char *held; /* pages that a trim would not return though nothing there is used */

    uint64_t threads;
    uint64_t segments;
    uint64_t used_bytes;   /* in segments */
    uint64_t cached_bytes; /* held by threads */
    uint64_t huge_bytes, huge_blocks;
    uint64_t kept_bytes; /* freed huge blocks whose pages are kept */
    uint64_t trim_bytes;
    uint64_t walk_ns;
    uint64_t strange; /* descriptors that are not what the pagemap said */
    struct culet_sizes sizes;
} heap;

static struct {
    uint64_t used_resident, free_bytes, free_resident, free_swapped, metadata, metadata_resident, chunks;
} total;

static uint64_t word_of(const unsigned char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

/* ---- finding it ---- */

static bool culet_recognise(struct culet_scope *scope)
{
    const struct culet_mapping *library = culet_self_library(&scope->maps);
    const char *why;
    uint8_t state = 0;

    if (!library || scope->served)
        return false;
    if (!culet_self_find(scope, &heap.self, &why)) {
        culet_scope_problem(scope, "%s. Its heap is shown by pages only.", why);
        return false;
    }
    culet_memory_copy(&scope->memory, heap.self.state, &state, sizeof state);
    if (state != 1 && state != 2) /* nothing allocated yet, or left to libc's allocator */
        return false;
    heap.shapes = culet_new(heap.self.class_entries, sizeof *heap.shapes);
    if (!culet_self_shapes(scope, &heap.self, heap.shapes)) {
        culet_scope_problem(scope, "The size classes of libculet.so in the process make no sense: its heap is shown by "
                                   "pages only.");
        return false;
    }
    heap.library = library->path;
    scope->served = culet_culet_walker.name;
    return true;
}

/* ---- regions ---- */

/* A new region, with the states of its pages; NULL where there is one already: the process has mapped something new
 * there since the last slice. */
static struct culet_place *add_place(struct culet_scope *scope, const char *kind, uint64_t start, uint64_t end,
                                     bool whole)
{
    if (start >= end || end - start > MOST_BYTES || (start | end) % 8 || !culet_ranges_add(&heap.taken, start, end))
        return NULL;
    struct culet_place *place = culet_place_new(&scope->places, kind, ARENA, start, end, whole);
    culet_scope_states(scope, place, start, end);
    culet_names_range(&scope->maps, start, end, "malloc", NULL);
    return place;
}

/* ---- segments ---- */

/* The pagemap's entries for `count` granules, the first at `address`. */
static void read_entries(struct culet_scope *scope, uint64_t address, uint32_t count, uint64_t *entries)
{
    const struct culet_selfmap *self = &heap.self;
    uint64_t granule = address / self->granule_bytes;

    while (count) {
        uint64_t leaf = 0, root = granule / self->leaf_entries, at = granule % self->leaf_entries;
        uint32_t here = self->leaf_entries - (uint32_t)at < count ? self->leaf_entries - (uint32_t)at : count;
        memset(entries, 0, here * sizeof *entries);
        if (root < self->root_entries && culet_memory_word(&scope->memory, self->root + 8 * root, &leaf) && leaf &&
            !culet_memory_copy(&scope->memory, leaf + 8 * at, entries, here * sizeof *entries))
            culet_scope_problem(scope, "Some of what culet knows of its heap in the process is swapped out: blocks may "
                                       "be missing.");
        entries += here;
        granule += here;
        count -= here;
    }
}

/* What the entries of a segment lead to, in order. */
static size_t list_items(const uint64_t *entries)
{
    const struct culet_selfmap *self = &heap.self;
    size_t count = 0;

    for (uint32_t g = 0; g < self->segment_granules;) {
        uint64_t entry = entries[g];
        uint32_t klass = (uint32_t)(entry >> self->class_shift);
        if (!entry || entry & 1) {
            g++;
            continue;
        }
        if (klass >= self->class_entries) {
            heap.strange++;
            g++;
            continue;
        }
        heap.items[count++] = (struct item){
            .granule = g, .klass = klass, .owner = entry & ((UINT64_C(1) << self->address_bits) - 1)};
        g += klass ? heap.shapes[klass].granules : 1;
    }
    return count;
}

/* Copies the descriptors of all items: a slab's has another length than a run's, so what is read is the longer. */
static size_t descriptor_bytes(void)
{
    return heap.self.slab.bytes > heap.self.large.bytes ? heap.self.slab.bytes : heap.self.large.bytes;
}

/* A run's descriptor may end closer to the end of what is mapped than a slab's would: each kind by its length. */
static void read_descriptors(struct culet_scope *scope, size_t count)
{
    for (unsigned runs = 0; runs <= 1; runs++) {
        size_t bytes = runs ? heap.self.large.bytes : heap.self.slab.bytes, wanted = 0;
        unsigned char *copies = heap.descriptors + heap.self.segment_granules * descriptor_bytes();
        for (size_t i = 0; i < count; i++)
            if ((heap.items[i].klass == 0) == (runs == 1))
                heap.addresses[wanted++] = heap.items[i].owner;
        if (!wanted)
            continue;
        culet_gather(&scope->memory, heap.addresses, wanted, bytes, copies, heap.got + heap.self.segment_granules);
        for (size_t i = count, n = wanted; i-- > 0;)
            if ((heap.items[i].klass == 0) == (runs == 1)) {
                n--;
                memcpy(heap.descriptors + i * descriptor_bytes(), copies + n * bytes, bytes);
                heap.got[i] = heap.got[heap.self.segment_granules + n];
            }
    }
}

/* Notes that a trim leaves the pages of from..to alone. */
static void hold(const struct culet_scope *scope, const struct culet_place *place, uint64_t from, uint64_t to)
{
    uint64_t shift = scope->places.shift, first = place->start >> shift;

    for (uint64_t page = from >> shift; page <= (to - 1) >> shift; page++)
        heap.held[page - first] = 1;
}

static void note_chunk(struct culet_scope *scope, struct culet_place *place, uint64_t bytes, enum culet_chunk state)
{
    if (bytes)
        culet_place_chunk(&scope->places, place, bytes, state);
}

struct slab_walk {
    struct culet_scope *scope;
    struct culet_place *place;
    const struct culet_shape *shape;
    uint64_t start;
    uint64_t blocks[3]; /* by enum culet_block */
};

static void walk_blocks(void *context, uint32_t first, uint32_t blocks, enum culet_block state)
{
    static const enum culet_chunk chunk[] = {
        [CULET_BLOCK_FREE] = CULET_CHUNK_FREE, [CULET_BLOCK_USED] = CULET_CHUNK_USED,
        [CULET_BLOCK_CACHED] = CULET_CHUNK_CACHED};
    struct slab_walk *walk = context;
    uint64_t size = walk->shape->size, from = walk->start + first * size;

    walk->blocks[state] += blocks;
    if (state == CULET_BLOCK_USED)
        culet_place_use(&walk->scope->places, walk->place, from, from + blocks * size);
    for (uint32_t i = 0; i < blocks; i++)
        note_chunk(walk->scope, walk->place, size, chunk[state]);
}

/* Claimed blocks stay a thread's, but for those of the one that trims: the only one, or one of many. */
static void hold_claimed(struct slab_walk *walk, const unsigned char *descriptor)
{
    const struct culet_shape *shape = walk->shape;

    if (heap.threads <= 1)
        return;
    for (unsigned u = 0; u < culet_slab_units(shape); u++) {
        uint64_t claimed = culet_slab_bits(&heap.self, descriptor, u).claimed;
        for (; claimed; claimed &= claimed - 1) {
            uint64_t index = ((uint64_t)u << shape->unit_shift) + (unsigned)__builtin_ctzll(claimed);
            uint64_t from = walk->start + index * shape->size;
            if (index < shape->blocks)
                hold(walk->scope, walk->place, from, from + shape->size);
        }
    }
}

static void walk_slab(struct culet_scope *scope, struct culet_place *place, const struct item *item,
                      const unsigned char *descriptor)
{
    const struct culet_shape *shape = &heap.shapes[item->klass];
    struct slab_walk walk = {.scope = scope, .place = place, .shape = shape,
                             .start = place->start + (uint64_t)item->granule * heap.self.granule_bytes};
    uint64_t bytes = (uint64_t)shape->granules * heap.self.granule_bytes;
    uint64_t blocks = (uint64_t)shape->blocks * shape->size;

    culet_slab_each(&heap.self, shape, descriptor, walk_blocks, &walk);
    hold_claimed(&walk, descriptor);
    note_chunk(scope, place, bytes - blocks, CULET_CHUNK_OTHER);
    heap.used_bytes += walk.blocks[CULET_BLOCK_USED] * shape->size;
    heap.cached_bytes += walk.blocks[CULET_BLOCK_CACHED] * shape->size;
    culet_sizes_used(&heap.sizes, shape->size, walk.blocks[CULET_BLOCK_USED]);
    culet_sizes_free(&heap.sizes, shape->size, walk.blocks[CULET_BLOCK_FREE] + walk.blocks[CULET_BLOCK_CACHED]);
}

/* Whether the descriptor is that of the block that the pagemap promised; else the process has changed it meanwhile. */
static bool is_as_promised(const struct item *item, const unsigned char *descriptor, uint64_t start)
{
    const struct culet_selfmap *self = &heap.self;
    uint8_t kind = descriptor[self->owner.kind];

    return word_of(descriptor + self->owner.start) == start && kind == (item->klass ? self->kind_slab : self->kind_run) &&
           (!item->klass || descriptor[self->owner.klass] == item->klass);
}

/* Walks one block or slab; returns how many granules it has, 1 for what cannot be understood. */
static uint32_t walk_item(struct culet_scope *scope, struct culet_place *place, size_t index)
{
    const struct culet_selfmap *self = &heap.self;
    const struct item *item = &heap.items[index];
    const unsigned char *descriptor = heap.descriptors + index * descriptor_bytes();
    uint64_t start = place->start + (uint64_t)item->granule * self->granule_bytes, bytes;
    uint32_t left = self->segment_granules - item->granule;

    if (!heap.got[index] || !is_as_promised(item, descriptor, start)) {
        heap.strange++;
        note_chunk(scope, place, self->granule_bytes, CULET_CHUNK_OTHER);
        return 1;
    }
    if (item->klass) {
        walk_slab(scope, place, item, descriptor);
        return heap.shapes[item->klass].granules;
    }
    bytes = word_of(descriptor + self->large.length);
    if (!bytes || bytes % self->granule_bytes || bytes / self->granule_bytes > left) {
        heap.strange++;
        note_chunk(scope, place, self->granule_bytes, CULET_CHUNK_OTHER);
        return 1;
    }
    culet_place_use(&scope->places, place, start, start + bytes);
    note_chunk(scope, place, bytes, CULET_CHUNK_USED);
    culet_sizes_used(&heap.sizes, bytes, 1);
    heap.used_bytes += bytes;
    return (uint32_t)(bytes / self->granule_bytes);
}

/* Resident pages without a used block go back in a trim, unless they are held. */
static void count_trim(const struct culet_scope *scope, const struct culet_place *place)
{
    for (uint32_t i = 0; i < place->pages; i++)
        if (place->states[i] & CULET_PAGE_PRESENT && !place->used[i] && !heap.held[i])
            heap.trim_bytes += scope->page_bytes;
}

static void walk_segment(struct culet_scope *scope, uint64_t address)
{
    const struct culet_selfmap *self = &heap.self;
    uint64_t bytes = (uint64_t)self->segment_granules * self->granule_bytes, base;

    if (!culet_memory_word(&scope->memory, address + self->segment.base, &base))
        return;
    struct culet_place *place = add_place(scope, "slabs", base, base + bytes, false);
    if (!place) {
        heap.strange++;
        return;
    }
    read_entries(scope, base, self->segment_granules, heap.entries);
    size_t count = list_items(heap.entries);
    read_descriptors(scope, count);
    memset(heap.held, 0, place->pages);
    uint32_t granule = 0;
    for (size_t i = 0; i < count; i++) {
        if (heap.items[i].granule < granule) { /* inside of the one before: a change in the middle of it */
            heap.strange++;
            continue;
        }
        note_chunk(scope, place, (uint64_t)(heap.items[i].granule - granule) * self->granule_bytes, CULET_CHUNK_FREE);
        granule = heap.items[i].granule + walk_item(scope, place, i);
    }
    note_chunk(scope, place, (uint64_t)(self->segment_granules - granule) * self->granule_bytes, CULET_CHUNK_FREE);
    count_trim(scope, place);
    heap.segments++;
}

/* ---- the rest ---- */

static void walk_huge(struct culet_scope *scope)
{
    const struct culet_selfmap *self = &heap.self;
    uint64_t at = 0;

    culet_memory_word(&scope->memory, self->huge, &at);
    for (size_t i = 0; at && i < MOST_LISTED; i++) {
        const unsigned char *descriptor = culet_memory_at(&scope->memory, at, self->large.bytes);
        if (!descriptor || descriptor[self->owner.kind] != self->kind_huge) {
            heap.strange++;
            return;
        }
        uint64_t start = word_of(descriptor + self->owner.start), bytes = word_of(descriptor + self->large.length);
        bool ending = descriptor[self->large.ending];
        at = word_of(descriptor + self->large.next);
        struct culet_place *place = add_place(scope, "large", start, start + bytes, !ending);
        if (!place) {
            heap.strange++;
            continue;
        }
        note_chunk(scope, place, bytes, ending ? CULET_CHUNK_FREE : CULET_CHUNK_USED);
        heap.huge_bytes += bytes;
        heap.huge_blocks++;
        (ending ? culet_sizes_free : culet_sizes_used)(&heap.sizes, bytes, 1);
    }
}

static uint64_t resident_bytes(const struct culet_scope *scope, const struct culet_place *place)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < place->pages; i++)
        bytes += place->states[i] & CULET_PAGE_PRESENT ? scope->page_bytes : 0;
    return bytes;
}

static void walk_kept(struct culet_scope *scope)
{
    const struct culet_selfmap *self = &heap.self;
    uint32_t count = 0;

    culet_memory_copy(&scope->memory, self->extent_count, &count, sizeof count);
    for (uint32_t i = 0; i < count && i < self->extent_entries; i++) {
        const unsigned char *extent = culet_memory_at(&scope->memory, self->extents + (uint64_t)i * self->extent.bytes,
                                                      self->extent.bytes);
        if (!extent)
            return;
        uint64_t start = word_of(extent + self->extent.start), bytes = word_of(extent + self->extent.length);
        struct culet_place *place = add_place(scope, "large", start, start + bytes, false);
        if (!place) {
            heap.strange++;
            continue;
        }
        note_chunk(scope, place, bytes, CULET_CHUNK_FREE);
        heap.kept_bytes += bytes;
        heap.trim_bytes += resident_bytes(scope, place);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

    return first < second ? -1 : first > second;
}

/* Descriptors: chunks that lie side by side make one region. */
static void walk_chunks(struct culet_scope *scope)
{
    uint64_t *chunks = NULL, at = 0, bytes = heap.self.chunk_bytes;
    size_t count = 0, room = 0;

    culet_memory_word(&scope->memory, heap.self.chunks, &at);
    while (at && count < MOST_LISTED) {
        chunks = culet_grow(chunks, &room, count + 1, sizeof *chunks);
        chunks[count++] = at;
        if (!culet_memory_word(&scope->memory, at + heap.self.chunk.next, &at))
            at = 0;
    }
    if (count)
        qsort(chunks, count, sizeof *chunks, compare);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && chunks[next] == chunks[next - 1] + bytes;)
            next++;
        add_place(scope, "metadata", chunks[i], chunks[next - 1] + bytes, true);
    }
    free(chunks);
}

/* The leaves of the pagemap. Of the root's pages few are in memory. */
static void walk_leaves(struct culet_scope *scope)
{
    const struct culet_selfmap *self = &heap.self;
    uint64_t end = self->root + 8 * (uint64_t)self->root_entries, leaf;

    for (uint64_t at = self->root; at < end; at += 8) {
        if (!culet_memory_word(&scope->memory, at, &leaf))
            at = (at | (scope->page_bytes - 1)) + 1 - 8;
        else if (leaf)
            add_place(scope, "metadata", leaf, leaf + 8 * (uint64_t)self->leaf_entries, true);
    }
}

/* The tables in the library's own zero-initialised data. Its first page may be the file's. */
static void walk_bss(struct culet_scope *scope)
{
    uint64_t page = scope->page_bytes, start = (heap.self.bss + page - 1) & ~(page - 1);
    uint64_t end = (heap.self.bss_end + page - 1) & ~(page - 1);
    struct culet_mapping *mapping = culet_maps_at(&scope->maps, start);

    if (!mapping || mapping->inode)
        return;
    culet_mapping_name(mapping, "allocator", "culet's tables");
    add_place(scope, "metadata", start, end < mapping->end ? end : mapping->end, true);
}

/* Whether no thread is in the middle of a change of the page heap. */
static bool is_at_rest(struct culet_scope *scope)
{
    uint32_t lock = 0;

    culet_memory_copy(&scope->memory, heap.self.pages_lock, &lock, sizeof lock);
    return lock == 0;
}

/* Pauses, at a moment when the page heap is whole. In live mode there may be none. */
static void pause_at_rest(struct culet_scope *scope)
{
    culet_scope_pause(scope);
    for (unsigned i = 0; scope->target.mode == CULET_SLICED && !is_at_rest(scope); i++) {
        if (i == MOST_RETRIES) {
            culet_scope_problem(scope, "The process was always just changing its heap when it was paused: some figures "
                                       "may be off.");
            return;
        }
        culet_scope_resume(scope);
        culet_scope_pause(scope);
    }
}

static void prepare(const struct culet_scope *scope)
{
    size_t granules = heap.self.segment_granules;

    heap.items = culet_new(granules, sizeof *heap.items);
    heap.entries = culet_new(granules, sizeof *heap.entries);
    heap.addresses = culet_new(granules, sizeof *heap.addresses);
    heap.descriptors = culet_new(2 * granules, descriptor_bytes());
    heap.got = culet_new(2 * granules, sizeof *heap.got);
    heap.held = culet_new(granules * heap.self.granule_bytes / scope->page_bytes + 2, 1);
}

static void walk_segments(struct culet_scope *scope)
{
    uint64_t segment;
    uint32_t ceiling = 0;

    for (uint32_t i = 0; i < heap.self.segment_entries; i++) {
        culet_memory_copy(&scope->memory, heap.self.ceiling, &ceiling, sizeof ceiling);
        if (i >= ceiling)
            return;
        if (culet_memory_word(&scope->memory, heap.self.segments + 8 * (uint64_t)i, &segment) && segment)
            walk_segment(scope, segment);
        if (culet_target_due(&scope->target)) {
            culet_scope_resume(scope);
            pause_at_rest(scope);
        }
    }
}

static void culet_walk(struct culet_scope *scope)
{
    uint64_t began = culet_now();

    prepare(scope);
    pause_at_rest(scope);
    culet_memory_word(&scope->memory, heap.self.threads, &heap.threads);
    walk_bss(scope);
    walk_leaves(scope);
    walk_chunks(scope);
    walk_huge(scope);
    walk_kept(scope);
    walk_segments(scope);
    culet_scope_resume(scope);
    heap.walk_ns = culet_now() - began;
    if (heap.strange)
        culet_scope_problem(scope, "%llu pieces of culet's heap changed while they were read: their bytes are missing in "
                                   "the figures. --stop reads all of it at one moment.",
                            (unsigned long long)heap.strange);
}

/* ---- telling ---- */

static bool is_metadata(const struct culet_place *place)
{
    return strcmp(place->kind, "metadata") == 0;
}

/* Metadata are told as far as they are in memory or swap: tables are long and mostly never touched. */
static void add_up(const struct culet_scope *scope)
{
    for (size_t i = 0; i < scope->places.count; i++) {
        const struct culet_place *place = scope->places.all[i];
        if (place->arena != ARENA || !place->malloc)
            continue;
        struct culet_place_sum sum = culet_place_sum(&scope->places, place);
        if (is_metadata(place)) {
            total.metadata_resident += sum.used_resident;
            continue;
        }
        total.used_resident += sum.used_resident;
        total.free_bytes += sum.free;
        total.free_resident += sum.free_resident;
        total.free_swapped += sum.free_swapped;
    }
}

static void tell_allocator(void)
{
    struct culet_json json;

    culet_json_begin(&json, "allocator");
    culet_json_text(&json, "name", culet_culet_walker.name);
    culet_json_text(&json, "library", heap.library);
    culet_json_text(&json, "level", "blocks");
    culet_json_text(&json, "why", "");
    culet_json_end(&json);
}

static void tell_arena(uint64_t system_bytes)
{
    struct culet_json json;

    culet_json_begin(&json, "arena");
    culet_json_number(&json, "id", ARENA);
    culet_json_text(&json, "name", "culet");
    culet_json_number(&json, "address", heap.self.self);
    culet_json_number(&json, "system_bytes", system_bytes);
    culet_json_number(&json, "used_bytes", heap.used_bytes);
    culet_json_number(&json, "free_bytes", system_bytes - heap.used_bytes);
    culet_json_number(&json, "top_bytes", 0);
    culet_json_number(&json, "trim_bytes", heap.trim_bytes);
    culet_json_bool(&json, "broken", false);
    culet_json_text(&json, "why", "");
    culet_json_end(&json);
}

static void tell_malloc(const struct culet_scope *scope)
{
    struct culet_json json;

    culet_json_begin(&json, "malloc");
    culet_json_number(&json, "arenas", 1);
    culet_json_number(&json, "heaps", heap.segments);
    culet_json_number(&json, "used_bytes", heap.used_bytes);
    culet_json_number(&json, "free_resident_bytes", total.free_resident);
    culet_json_number(&json, "free_returned_bytes", total.free_bytes - total.free_resident);
    culet_json_number(&json, "free_swapped_bytes", total.free_swapped);
    culet_json_number(&json, "mmapped_bytes", heap.huge_bytes);
    culet_json_number(&json, "mmapped_chunks", heap.huge_blocks);
    culet_json_number(&json, "metadata_bytes", total.metadata_resident);
    culet_json_number(&json, "tcache_bytes", heap.cached_bytes);
    culet_json_number(&json, "fastbin_bytes", 0);
    culet_json_number(&json, "kept_bytes", heap.kept_bytes);
    culet_json_number(&json, "trim_bytes", heap.trim_bytes);
    culet_json_float(&json, "pause_seconds", (double)scope->target.longest_ns / 1e9);
    culet_json_number(&json, "pauses", scope->target.pauses);
    culet_json_float(&json, "paused_seconds", (double)scope->target.paused_ns / 1e9);
    culet_json_float(&json, "walk_seconds", (double)heap.walk_ns / 1e9);
    culet_json_number(&json, "chunks", scope->places.chunks);
    culet_json_number(&json, "used_resident_bytes", total.used_resident);
    culet_json_number(&json, "metadata_resident_bytes", total.metadata_resident);
    culet_json_end(&json);
}

static void culet_tell(struct culet_scope *scope)
{
    uint64_t system_bytes = heap.segments * heap.self.segment_granules * heap.self.granule_bytes;

    add_up(scope);
    tell_allocator();
    tell_arena(system_bytes);
    tell_malloc(scope);
    culet_sizes_tell(&heap.sizes);
    culet_freeruns_tell(&scope->places);
}

const struct culet_walker culet_culet_walker = {
    .name = "culet", .recognise = culet_recognise, .walk = culet_walk, .tell = culet_tell};
