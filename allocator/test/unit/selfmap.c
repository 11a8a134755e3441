/* The record for readers in another process: every table and member is where the record says. */
#include "selfmap.h"

#include "arena.h"
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "meta.h"
#include "pagemap.h"
#include "size_class.h"
#include "threads.h"
#include "huge_cache.h"

extern const struct culet_selfmap culet_selfmap;
#define MAP culet_selfmap

static uint64_t word(uint64_t address)
{
    return *(const uint64_t *)address;
}

static uint32_t half(uint64_t address)
{
    return *(const uint32_t *)address;
}

static uint8_t byte(uint64_t address)
{
    return *(const uint8_t *)address;
}

TEST(the_record_finds_itself)
{
    CHECK(memcmp(MAP.magic, CULET_SELFMAP_MAGIC, 16) == 0, "magic %.16s", MAP.magic);
    CHECK_EQUAL(MAP.self, (uintptr_t)&MAP);
    CHECK_EQUAL(MAP.bytes, sizeof MAP);
    CHECK(MAP.bss <= MAP.segments && MAP.segments + 8 * MAP.segment_entries <= MAP.bss_end,
          "the segments are elsewhere");
    CHECK(MAP.bss <= MAP.root && MAP.root + 8 * MAP.root_entries <= MAP.bss_end, "the pagemap's root is elsewhere");
}

TEST(classes_have_the_shapes_that_blocks_have)
{
    culet_heap_setup();
    for (unsigned k = 1; k < MAP.class_entries; k++) {
        uint64_t at = MAP.classes + k * MAP.klass.bytes;
        CHECK_EQUAL(half(at + MAP.klass.size), culet_classes[k].size);
        CHECK_EQUAL(*(const uint16_t *)(at + MAP.klass.count), culet_classes[k].count);
        CHECK_EQUAL(byte(at + MAP.klass.pages), culet_classes[k].pages);
        CHECK_EQUAL(half(MAP.classes + (k > MAP.sizes ? k - MAP.sizes : k) * MAP.klass.bytes + MAP.klass.size),
                    culet_classes[k].size);
    }
}

/* The pagemap's entry for an address, as a reader finds it. */
static uint64_t entry_of(uint64_t address)
{
    uint64_t page = address / MAP.page_bytes, leaf = word(MAP.root + 8 * (page / MAP.leaf_entries));

    return leaf ? word(leaf + 8 * (page % MAP.leaf_entries)) : 0;
}

static uint64_t span_of(uint64_t entry)
{
    return culet_selfmap_span(&MAP, entry);
}

static bool block_is_used(uint64_t slab, uint64_t block)
{
    uint64_t shape = MAP.classes + byte(slab + MAP.span.klass) * MAP.klass.bytes;
    uint64_t index = (block - word(slab + MAP.span.start)) / half(shape + MAP.klass.size);
    uint64_t unit = slab + MAP.slab.units + index / MAP.unit_blocks * MAP.slab.unit_bytes;
    uint64_t unused = word(unit + MAP.slab.free) | word(unit + MAP.slab.remote);

    return !(unused >> index % MAP.unit_blocks & 1);
}

#define BLOCKS 3000

static void *free_some(void *data)
{
    void **blocks = data;

    for (unsigned i = 1; i < BLOCKS; i += 3)
        culet_free(blocks[i]);
    return NULL;
}

TEST(every_block_is_found_and_freed_ones_are_not)
{
    static void *blocks[BLOCKS];

    for (unsigned i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = i % 2 ? culet_malloc(i * 9 + 1) : culet_calloc(1, i * 9 + 1)), "no memory");
    for (unsigned i = 0; i < BLOCKS; i += 3)
        culet_free(blocks[i]);
    struct culet_arena *arena = run_elsewhere(free_some, blocks);
    CHECK(atomic_load(&arena->remote), "nothing was freed by the remote words");
    for (unsigned i = 0; i < BLOCKS; i++) {
        uint64_t entry = entry_of((uintptr_t)blocks[i]), slab = span_of(entry);
        if (i % 3 == 0 && !slab)
            continue;
        CHECK(slab && culet_selfmap_is_slab(&MAP, entry), "block %u has no slab", i);
        CHECK_EQUAL(byte(slab + MAP.span.kind), MAP.kind_slab);
        CHECK(block_is_used(slab, (uintptr_t)blocks[i]) == (i % 3 == 2), "block %u", i);
    }
}

TEST(large_and_huge_blocks_are_found)
{
    char *large = culet_malloc(100000), *huge = culet_malloc(5 << 20), *second = culet_malloc(3 << 20);
    uint64_t span = span_of(entry_of((uintptr_t)large));

    CHECK_EQUAL(byte(span + MAP.span.kind), MAP.kind_large);
    CHECK_EQUAL(word(span + MAP.span.start), (uintptr_t)large);
    CHECK_EQUAL(word(span + MAP.large.length), culet_malloc_usable_size(large));

    span = word(MAP.huge);
    CHECK_EQUAL(word(span + MAP.span.start), (uintptr_t)second);
    CHECK_EQUAL(byte(span + MAP.span.kind), MAP.kind_huge);
    CHECK_EQUAL(byte(span + MAP.large.ending), 0);
    span = word(span + MAP.large.next);
    CHECK_EQUAL(word(span + MAP.span.start), (uintptr_t)huge);
    CHECK_EQUAL(word(span + MAP.large.length), culet_malloc_usable_size(huge));
    CHECK_EQUAL(word(span + MAP.large.next), 0);
}

static unsigned count_bits(uint64_t words)
{
    unsigned bits = 0;

    for (unsigned w = 0; w < MAP.segment_pages / 64; w++)
        bits += (unsigned)__builtin_popcountll(word(words + 8 * w));
    return bits;
}

TEST(segments_and_their_bitmaps_add_up)
{
    size_t segments = 0, used = 0, dirty = 0;

    for (unsigned i = 0; i < 20; i++)
        culet_free(culet_malloc(900000) ? culet_malloc(700000) : NULL);
    CHECK(half(MAP.ceiling) >= 2, "%u segments", half(MAP.ceiling));
    for (uint32_t i = 0; i < half(MAP.ceiling); i++) {
        uint64_t segment = word(MAP.segments + 8 * i);
        if (!segment)
            continue;
        segments++;
        CHECK_EQUAL(word(segment + MAP.segment.base), culet_pages_segment(i));
        used += count_bits(segment + MAP.segment.used);
        dirty += count_bits(segment + MAP.segment.dirty);
    }
    struct culet_pages_stats counts = culet_pages_stats();
    CHECK_EQUAL(segments, counts.segments);
    CHECK_EQUAL(used, counts.used);
    CHECK_EQUAL(dirty, counts.dirty);
    CHECK(dirty > 0, "nothing was free and dirty");
}

TEST(chunks_of_descriptors_add_up)
{
    size_t chunks = 0;

    for (unsigned i = 0; i < 3000; i++)
        CHECK(culet_meta_get(CULET_META_SLAB), "no memory");
    for (uint64_t chunk = word(MAP.chunks); chunk; chunk = word(chunk + MAP.chunk.next))
        chunks++;
    CHECK(chunks > 10, "%zu chunks", chunks);
    CHECK_EQUAL(chunks * MAP.chunk_bytes, culet_meta_bytes());
}

TEST(cached_extents_are_found)
{
    char *pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK_EQUAL(half(MAP.extent_count), 0);
    culet_huge_cache_put(
        (struct culet_extent){.start = (uintptr_t)pages, .bytes = 1 << 20, .mapping = culet_huge_cache_new_mapping()});
    CHECK_EQUAL(half(MAP.extent_count), 1);
    CHECK_EQUAL(word(MAP.extents + MAP.extent.start), (uintptr_t)pages);
    CHECK_EQUAL(word(MAP.extents + MAP.extent.length), 1 << 20);
}

TEST(the_state_and_the_lock_are_seen)
{
    CHECK_EQUAL(byte(MAP.state), CULET_UNINITIALIZED);
    CHECK_EQUAL(word(MAP.threads), 0);
    culet_free(culet_malloc(1));
    CHECK_EQUAL(word(MAP.threads), 1);
    CHECK(byte(MAP.state) == CULET_EARLY || byte(MAP.state) == CULET_ACTIVE, "state %u", byte(MAP.state));
    CHECK_EQUAL(half(MAP.pages_lock), 0);
    atomic_store(&culet_pages_lock.state, 1);
    CHECK_EQUAL(half(MAP.pages_lock), 1);
}

CHECK_MAIN
