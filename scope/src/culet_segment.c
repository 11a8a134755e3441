/* One segment of culet's heap: slabs block by block, runs, and free granules. */
#include "culet_heap.h"
#include "culet_slab.h"
#include "gather.h"

#include <string.h>

/* What stands at a granule. */
struct item {
    uint32_t granule;
    uint32_t klass; /* 0: a run */
    uint64_t owner; /* address of the descriptor */
};

/* Descriptors that are copied at once: all of a segment, as culet makes them. */
#define AT_ONCE CULET_GATHER_PIECES

/* Of one segment at a time. */
static struct {
    struct item *items;
    uint64_t *entries;
    uint64_t *addresses;
    unsigned char *descriptors; /* of AT_ONCE items; and the same again, as they are read */
    bool *got;
    unsigned char *held; /* pages that a trim would not return though nothing there is used */
} room;

/* The pagemap's entries for `count` granules, the first at `address`. */
static void read_entries(struct culet_scope *scope, const struct culet_heap *heap, uint64_t address, uint32_t count,
                         uint64_t *entries)
{
    const struct culet_selfmap *self = &heap->self;
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

/* Granules that an entry's block or slab has at least; 0 when there cannot be one there. */
static uint32_t granules_of(const struct culet_heap *heap, uint32_t granule, uint32_t klass)
{
    uint32_t granules;

    if (klass >= heap->self.class_entries)
        return 0;
    granules = klass ? heap->shapes[klass].granules : 1;
    return granules <= heap->self.segment_granules - granule ? granules : 0;
}

/* What the entries of a segment lead to, in order. */
static size_t list_items(struct culet_heap *heap, const uint64_t *entries)
{
    const struct culet_selfmap *self = &heap->self;
    size_t count = 0;

    for (uint32_t g = 0; g < self->segment_granules;) {
        uint64_t entry = entries[g];
        uint32_t klass = (uint32_t)(entry >> self->class_shift), granules = granules_of(heap, g, klass);
        if (!entry || entry & 1) {
            g++;
            continue;
        }
        if (!granules) {
            heap->strange++;
            g++;
            continue;
        }
        room.items[count++] = (struct item){
            .granule = g, .klass = klass, .owner = entry & ((UINT64_C(1) << self->address_bits) - 1)};
        g += granules;
    }
    return count;
}

/* Room for a descriptor: a slab's has another length than a run's. */
static size_t descriptor_bytes(const struct culet_heap *heap)
{
    return heap->self.slab.bytes > heap->self.large.bytes ? heap->self.slab.bytes : heap->self.large.bytes;
}

/* Copies the descriptors of `count` items, each kind by its own length. */
static void read_descriptors(struct culet_scope *scope, const struct culet_heap *heap, const struct item *items, size_t count)
{
    for (unsigned runs = 0; runs <= 1; runs++) {
        size_t bytes = runs ? heap->self.large.bytes : heap->self.slab.bytes, wanted = 0;
        unsigned char *copies = room.descriptors + AT_ONCE * descriptor_bytes(heap);
        for (size_t i = 0; i < count; i++)
            if ((items[i].klass == 0) == (runs == 1))
                room.addresses[wanted++] = items[i].owner;
        if (!wanted)
            continue;
        culet_gather(&scope->memory, room.addresses, wanted, bytes, copies, room.got + AT_ONCE);
        for (size_t i = count, n = wanted; i-- > 0;)
            if ((items[i].klass == 0) == (runs == 1)) {
                n--;
                memcpy(room.descriptors + i * descriptor_bytes(heap), copies + n * bytes, bytes);
                room.got[i] = room.got[AT_ONCE + n];
            }
    }
}

/* Notes that a trim leaves the pages of from..to alone. */
static void hold(const struct culet_scope *scope, const struct culet_place *place, uint64_t from, uint64_t to)
{
    uint64_t shift = scope->places.shift, first = place->start >> shift;

    for (uint64_t page = from >> shift; page <= (to - 1) >> shift; page++)
        room.held[page - first] = 1;
}

struct slab_walk {
    struct culet_scope *scope;
    struct culet_place *place;
    const struct culet_shape *shape;
    uint64_t start;
    uint64_t blocks[3]; /* of each state */
};

static void walk_blocks(void *context, uint32_t first, uint32_t blocks, enum culet_block_state state)
{
    struct slab_walk *walk = context;
    uint64_t size = walk->shape->size, from = walk->start + first * size;

    walk->blocks[state] += blocks;
    if (state == CULET_BLOCK_USED)
        culet_place_use(&walk->scope->places, walk->place, from, from + blocks * size);
    culet_place_chunks(&walk->scope->places, walk->place, size, blocks, state);
}

/* Claimed blocks stay a thread's, but for those of the one that trims: the only one, or one of many. */
static void hold_claimed(const struct culet_heap *heap, struct slab_walk *walk, const unsigned char *descriptor)
{
    const struct culet_shape *shape = walk->shape;

    if (heap->threads <= 1)
        return;
    for (unsigned u = 0; u < culet_slab_units(shape); u++) {
        uint64_t claimed = culet_slab_bits(&heap->self, descriptor, u).claimed;
        for (; claimed; claimed &= claimed - 1) {
            uint64_t index = ((uint64_t)u << shape->unit_shift) + (unsigned)__builtin_ctzll(claimed);
            uint64_t from = walk->start + index * shape->size;
            if (index < shape->blocks)
                hold(walk->scope, walk->place, from, from + shape->size);
        }
    }
}

static void walk_slab(struct culet_scope *scope, struct culet_heap *heap, struct culet_place *place,
                      const struct item *item, const unsigned char *descriptor)
{
    const struct culet_shape *shape = &heap->shapes[item->klass];
    struct slab_walk walk = {.scope = scope, .place = place, .shape = shape,
                             .start = place->start + (uint64_t)item->granule * heap->self.granule_bytes};
    uint64_t bytes = (uint64_t)shape->granules * heap->self.granule_bytes;
    uint64_t blocks = (uint64_t)shape->blocks * shape->size;

    culet_slab_each(&heap->self, shape, descriptor, walk_blocks, &walk);
    culet_place_slab(place, bytes, shape->size);
    hold_claimed(heap, &walk, descriptor);
    culet_heap_chunk(scope, place, bytes - blocks, CULET_BLOCK_OVERHEAD);
    heap->used_bytes += walk.blocks[CULET_BLOCK_USED] * shape->size;
    heap->cached_bytes += walk.blocks[CULET_BLOCK_CACHED] * shape->size;
    culet_sizes_used(&heap->sizes, shape->size, walk.blocks[CULET_BLOCK_USED]);
    culet_sizes_free(&heap->sizes, shape->size, walk.blocks[CULET_BLOCK_FREE] + walk.blocks[CULET_BLOCK_CACHED]);
}

/* Whether the descriptor is that of the block that the pagemap promised; else the process has changed it meanwhile. */
static bool is_as_promised(const struct culet_heap *heap, const struct item *item, const unsigned char *descriptor,
                           uint64_t start)
{
    const struct culet_selfmap *self = &heap->self;
    uint8_t kind = descriptor[self->owner.kind];

    return culet_heap_word(descriptor + self->owner.start) == start && kind == (item->klass ? self->kind_slab : self->kind_run) &&
           (!item->klass || descriptor[self->owner.klass] == item->klass);
}

/* One granule that cannot be understood. */
static uint32_t strange_item(struct culet_scope *scope, struct culet_heap *heap, struct culet_place *place)
{
    heap->strange++;
    culet_heap_chunk(scope, place, heap->self.granule_bytes, CULET_BLOCK_OVERHEAD);
    culet_place_slab(place, heap->self.granule_bytes, CULET_SLAB_NONE);
    return 1;
}

/* Granules that belong to no block or slab. */
static void walk_gap(struct culet_scope *scope, const struct culet_heap *heap, struct culet_place *place, uint32_t granules)
{
    uint64_t bytes = (uint64_t)granules * heap->self.granule_bytes;

    culet_heap_chunk(scope, place, bytes, CULET_BLOCK_FREE);
    culet_place_slab(place, bytes, CULET_SLAB_NONE);
}

/* Walks one block or slab, whose descriptor is that of number `index`; returns how many granules it has, 1 for what cannot
 * be understood. */
static uint32_t walk_item(struct culet_scope *scope, struct culet_heap *heap, struct culet_place *place,
                          const struct item *item, size_t index)
{
    const struct culet_selfmap *self = &heap->self;
    const unsigned char *descriptor = room.descriptors + index * descriptor_bytes(heap);
    uint64_t start = place->start + (uint64_t)item->granule * self->granule_bytes, bytes;
    uint32_t left = self->segment_granules - item->granule;

    if (!room.got[index] || !is_as_promised(heap, item, descriptor, start))
        return strange_item(scope, heap, place);
    if (item->klass) {
        walk_slab(scope, heap, place, item, descriptor);
        return heap->shapes[item->klass].granules;
    }
    bytes = culet_heap_word(descriptor + self->large.length);
    if (!bytes || bytes % self->granule_bytes || bytes / self->granule_bytes > left)
        return strange_item(scope, heap, place);
    culet_place_use(&scope->places, place, start, start + bytes);
    culet_heap_chunk(scope, place, bytes, CULET_BLOCK_USED);
    culet_place_slab(place, bytes, CULET_SLAB_LARGE);
    culet_sizes_used(&heap->sizes, bytes, 1);
    heap->used_bytes += bytes;
    return (uint32_t)(bytes / self->granule_bytes);
}

/* Resident pages without a used block go back in a trim, unless they are held. */
static void count_trim(const struct culet_scope *scope, struct culet_heap *heap, const struct culet_place *place)
{
    struct culet_place_run run;

    for (uint64_t i = 0; i < place->pages; i += run.count) {
        run = culet_place_run(place, i);
        for (uint64_t n = 0; run.states && n < run.count; n++)
            if (run.states[n] & CULET_PAGE_PRESENT && !run.used[n] && !room.held[i + n])
                heap->trim_bytes += scope->page_bytes;
    }
}

static void prepare(const struct culet_scope *scope, const struct culet_heap *heap)
{
    size_t granules = heap->self.segment_granules;

    if (room.items)
        return;
    room.items = culet_new(granules, sizeof *room.items);
    room.entries = culet_new(granules, sizeof *room.entries);
    room.addresses = culet_new(AT_ONCE, sizeof *room.addresses);
    room.descriptors = culet_new(2 * AT_ONCE, descriptor_bytes(heap));
    room.got = culet_new(2 * AT_ONCE, sizeof *room.got);
    room.held = culet_new(granules * heap->self.granule_bytes / scope->page_bytes + 2, 1);
}

/* Walks what the entries lead to; returns the first granule behind all of it. */
static uint32_t walk_items(struct culet_scope *scope, struct culet_heap *heap, struct culet_place *place, size_t count)
{
    uint32_t granule = 0;

    for (size_t i = 0; i < count; i++) {
        const struct item *item = &room.items[i];
        if (i % AT_ONCE == 0) {
            if (i)
                culet_heap_breathe(scope, heap);
            read_descriptors(scope, heap, item, count - i < AT_ONCE ? count - i : AT_ONCE);
        }
        if (item->granule < granule) { /* inside of the one before: a change in the middle of it */
            heap->strange++;
            continue;
        }
        walk_gap(scope, heap, place, item->granule - granule);
        granule = item->granule + walk_item(scope, heap, place, item, i % AT_ONCE);
    }
    return granule;
}

void culet_segment_walk(struct culet_scope *scope, struct culet_heap *heap, uint64_t address)
{
    const struct culet_selfmap *self = &heap->self;
    uint64_t bytes = (uint64_t)self->segment_granules * self->granule_bytes, base;

    prepare(scope, heap);
    if (!culet_memory_word(&scope->memory, address + self->segment.base, &base))
        return;
    struct culet_place *place = base % self->granule_bytes ? NULL : culet_heap_place(scope, heap, "slabs", base, base + bytes, false);
    if (!place) {
        heap->strange++;
        return;
    }
    read_entries(scope, heap, base, self->segment_granules, room.entries);
    size_t count = list_items(heap, room.entries);
    memset(room.held, 0, place->pages);
    walk_gap(scope, heap, place, self->segment_granules - walk_items(scope, heap, place, count));
    count_trim(scope, heap, place);
    heap->segments++;
}
