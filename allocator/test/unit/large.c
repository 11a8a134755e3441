/* Large and huge blocks: sizes, alignment, zeros, resizing in place and by moving pages, single frees. */
#include "large.h"
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "lock.h"
#include "pagemap.h"
#include "pages.h"
#include "resident.h"

#include <errno.h>

static void check_pattern(const unsigned char *block, size_t bytes, unsigned char seed)
{
    for (size_t i = 0; i < bytes; i += 61)
        CHECK(block[i] == (unsigned char)(seed + i), "byte %zu of %zu is %u", i, bytes, block[i]);
    CHECK(block[bytes - 1] == (unsigned char)(seed + bytes - 1), "the last byte of %zu", bytes);
}

static void write_pattern(unsigned char *block, size_t bytes, unsigned char seed)
{
    for (size_t i = 0; i < bytes; i++)
        block[i] = (unsigned char)(seed + i);
}

static void check_zero(const unsigned char *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (block[i])
            CHECK(false, "byte %zu of %zu is %u, not 0", i, bytes, block[i]);
}

static struct culet_span *span_of(void *block)
{
    return culet_pagemap_span((uintptr_t)block);
}

static void *get(size_t bytes, size_t alignment, bool *zeroed)
{
    unsigned char *block = culet_large_get(bytes, alignment, zeroed);

    CHECK(block, "no memory for %zu bytes at %zu", bytes, alignment);
    CHECK((uintptr_t)block % alignment == 0, "%p is not aligned to %zu", (void *)block, alignment);
    CHECK(culet_large_bytes(span_of(block)) >= bytes, "%zu usable of %zu", culet_large_bytes(span_of(block)), bytes);
    if (*zeroed)
        check_zero(block, culet_large_bytes(span_of(block)));
    return block;
}

static unsigned mappings(void)
{
    char text[4096];
    unsigned lines = 0;
    FILE *maps = fopen("/proc/self/maps", "r");

    CHECK(maps, "no /proc/self/maps");
    while (fgets(text, sizeof text, maps))
        lines++;
    fclose(maps);
    return lines;
}

/* Bytes of address space, from /proc/self/statm. */
static size_t address_space(void)
{
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");

    CHECK(statm && fscanf(statm, "%lu", &pages) == 1, "no /proc/self/statm");
    fclose(statm);
    return pages * culet_os_page_bytes();
}

TEST(sizes_at_every_border)
{
    static const size_t borders[] = {CULET_SMALL_MAX, 65536, CULET_LARGE_MAX, 2 << 20, CULET_SEGMENT_BYTES, 64 << 20};
    bool zeroed;

    culet_free(culet_malloc(1));
    for (unsigned b = 0; b < sizeof borders / sizeof *borders; b++)
        for (size_t bytes = borders[b] - 1; bytes <= borders[b] + 1; bytes++) {
            unsigned char *block = get(bytes, CULET_ALIGNMENT, &zeroed);
            struct culet_span *span = span_of(block);
            CHECK_EQUAL(span->kind, bytes <= CULET_LARGE_MAX ? CULET_LARGE : CULET_HUGE);
            CHECK(culet_large_bytes(span) - bytes < (span->kind == CULET_LARGE ? CULET_PAGE : culet_os_page_bytes()),
                  "%zu bytes for %zu", culet_large_bytes(span), bytes);
            memset(block, 0xaa, culet_large_bytes(span));
            CHECK(culet_large_put(span, (uintptr_t)block), "not freed");
            culet_heap_check();
        }
    CHECK_EQUAL(culet_large_stats().large + culet_large_stats().huge, 0);
    CHECK_EQUAL(culet_large_stats().large_bytes + culet_large_stats().huge_bytes, 0);
}

TEST(alignments_up_to_a_gibibyte)
{
    static const size_t sizes[] = {1, 4096, 33000, 300000, CULET_LARGE_MAX, 5 << 20};
    bool zeroed;

    for (size_t alignment = CULET_ALIGNMENT; alignment <= (size_t)1 << 30; alignment *= check_rounds(4, 2))
        for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            unsigned char *block[3];
            for (unsigned i = 0; i < 3; i++) {
                block[i] = get(sizes[s], alignment, &zeroed);
                write_pattern(block[i], sizes[s], (unsigned char)i);
            }
            for (unsigned i = 0; i < 3; i++) {
                check_pattern(block[i], sizes[s], (unsigned char)i);
                CHECK(culet_large_put(span_of(block[i]), (uintptr_t)block[i]), "not freed");
            }
        }
    culet_heap_check();
}

static void map_and_unmap_aligned(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        culet_free(culet_memalign((size_t)1 << (21 + i % 5), (3 << 20) + i * 4096));
    culet_malloc_trim(0);
}

/* So many blocks start the scavenger, with its stack: once it runs, nothing more may be added. It may be working, so
 * the check is repeated for a while. */
TEST(aligned_huge_blocks_leave_no_address_space_behind)
{
    size_t before;
    unsigned lines;

    map_and_unmap_aligned(50);
    usleep(200000);
    before = address_space();
    lines = mappings();
    map_and_unmap_aligned(200);
    for (unsigned i = 0; i < 600 && (address_space() > before + (1 << 20) || mappings() > lines + 2); i++)
        usleep(100000);
    CHECK(address_space() <= before + (1 << 20), "the address space grew by %zu bytes", address_space() - before);
    CHECK(mappings() <= lines + 2, "%u mappings became %u", lines, mappings());
}

TEST(a_large_block_is_resized_in_place)
{
    unsigned char *block = culet_malloc(40000);
    void *barrier;

    write_pattern(block, 40000, 1);
    CHECK(culet_realloc(block, 400000) == block, "nothing is behind it: it grows where it is");
    check_pattern(block, 40000, 1);
    CHECK(culet_malloc_usable_size(block) >= 400000 && culet_malloc_usable_size(block) < 400000 + CULET_PAGE,
          "%zu usable", culet_malloc_usable_size(block));
    write_pattern(block, 400000, 2);
    CHECK(culet_realloc(block, 50000) == block, "it shrinks where it is");
    check_pattern(block, 50000, 2);
    culet_heap_check();
    barrier = culet_malloc(33000);
    CHECK((uintptr_t)barrier > (uintptr_t)block && (uintptr_t)barrier < (uintptr_t)block + 400000,
          "what was cut off is used again");
    unsigned char *moved = culet_realloc(block, 500000);
    CHECK(moved && moved != block, "it must move: something lies behind it");
    check_pattern(moved, 50000, 2);
    culet_free(moved);
    culet_free(barrier);
    CHECK_EQUAL(culet_large_stats().large, 0);
    culet_heap_check();
}

TEST(a_huge_block_grows_by_moving_pages)
{
    size_t bytes = 2 << 20;
    unsigned char *block = culet_malloc(bytes);

    write_pattern(block, bytes, 3);
    for (unsigned i = 0; i < 6; i++) {
        void *wall = culet_malloc(bytes); /* so that it cannot always grow in place */
        unsigned char *grown = culet_realloc(block, bytes * 2);
        CHECK(grown, "no memory");
        if (grown != block)
            CHECK(!span_of(block) && culet_pagemap_freed((uintptr_t)block).present, "the old address is still a block");
        check_pattern(grown, bytes, 3);
        check_zero(grown + bytes, bytes); /* moved pages, not copied ones: the rest is zero */
        CHECK(culet_malloc_usable_size(grown) >= bytes * 2, "%zu usable", culet_malloc_usable_size(grown));
        culet_free(wall);
        block = grown;
        bytes *= 2;
        write_pattern(block, bytes, 3);
        culet_heap_check();
    }
    while (bytes > CULET_LARGE_MAX * 2) {
        bytes /= 2;
        block = culet_realloc(block, bytes);
        CHECK(block, "no memory");
        check_pattern(block, bytes, 3);
        CHECK_EQUAL(culet_large_stats().huge_bytes, bytes);
    }
    culet_free(block);
    CHECK_EQUAL(culet_large_stats().huge, 0);
}

TEST(growing_a_huge_block_needs_no_second_copy)
{
    size_t bytes = 64 << 20;
    unsigned char *block = culet_malloc(bytes);
    FILE *status;
    unsigned long peak = 0, peak_after = 0;
    char line[256];

    memset(block, 1, bytes);
    for (unsigned round = 0; round < 2; round++) {
        status = fopen("/proc/self/status", "r");
        CHECK(status, "no /proc/self/status");
        while (fgets(line, sizeof line, status))
            sscanf(line, "VmHWM: %lu", round ? &peak_after : &peak);
        fclose(status);
        if (!round)
            CHECK((block = culet_realloc(block, bytes * 2)), "no memory");
    }
    CHECK(peak > 0 && peak_after < peak + 8192, "the peak grew from %lu KiB to %lu KiB", peak, peak_after);
    culet_free(block);
}

TEST(sizes_cross_all_borders_by_realloc)
{
    static const size_t sizes[] = {10,      1000,          32768,   32769, 200000, 1 << 20, (1 << 20) + 1,
                                   9 << 20, (1 << 20) + 1, 1 << 20, 40000, 32768,  900,     1};
    unsigned char *block = culet_malloc(1);
    size_t held = 1;

    write_pattern(block, 1, 9);
    for (unsigned round = 0; round < 20; round++)
        for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            block = culet_realloc(block, sizes[s]);
            CHECK(block, "no memory");
            check_pattern(block, held < sizes[s] ? held : sizes[s], 9);
            held = sizes[s];
            write_pattern(block, held, 9);
            CHECK(culet_malloc_usable_size(block) >= held, "too small");
        }
    culet_free(block);
    culet_heap_check();
}

TEST(a_block_is_freed_once)
{
    static const size_t sizes[] = {40000, 5 << 20};
    bool zeroed;

    for (unsigned i = 0; i < 2; i++) {
        unsigned char *block = get(sizes[i], CULET_ALIGNMENT, &zeroed);
        struct culet_span *span = span_of(block);
        CHECK(!culet_large_put(span, (uintptr_t)block + CULET_PAGE), "freed by an interior pointer");
        CHECK(!culet_large_put(span, (uintptr_t)block + 16), "freed by an interior pointer");
        CHECK(culet_large_put(span, (uintptr_t)block), "not freed");
        CHECK(!culet_large_put(span, (uintptr_t)block), "freed twice");
        CHECK(span_of(block) == NULL && culet_pagemap_freed((uintptr_t)block).present, "no freed record");
        CHECK_EQUAL(culet_pagemap_freed((uintptr_t)block).pages, (sizes[i] + 4095) / 4096);
    }
}

TEST(a_huge_block_is_found_by_any_address_in_it)
{
    bool zeroed;
    unsigned char *block[5];

    for (unsigned i = 0; i < 5; i++)
        block[i] = get((2 + i) << 20, CULET_ALIGNMENT, &zeroed);
    for (unsigned i = 0; i < 5; i++) {
        size_t bytes = culet_large_bytes(span_of(block[i]));
        for (size_t offset = 0; offset < bytes; offset += 9973)
            CHECK(culet_large_containing((uintptr_t)block[i] + offset) == (struct culet_large *)span_of(block[i]),
                  "offset %zu", offset);
        CHECK(culet_large_containing((uintptr_t)block[i] + bytes - 1) != NULL, "the last byte");
        CHECK(culet_large_containing((uintptr_t)block[i] + bytes) != (struct culet_large *)span_of(block[i]), "behind");
    }
    CHECK(!culet_large_containing((uintptr_t)&zeroed), "the stack is in a block");
}

TEST(zeroed_memory_is_zero_when_it_is_used_again)
{
    uint64_t seed = 5;

    for (unsigned i = 0; i < 400; i++) {
        size_t bytes = CULET_SMALL_MAX + 1 + check_random(&seed) % (CULET_LARGE_MAX * 5 / 4);
        unsigned char *block = i % 2 ? culet_calloc(1, bytes) : culet_malloc(bytes);
        CHECK(block, "no memory");
        if (i % 2)
            check_zero(block, bytes);
        memset(block, 0xff, bytes);
        culet_free(block);
        if (i % 37 == 0)
            culet_malloc_trim(0);
    }
}

/* The k-th refusal while a huge block grows, for every k: its contents stay. */
static unsigned refuse_in;

static bool refuse_one(void)
{
    return refuse_in && --refuse_in == 0;
}

TEST(a_refused_growth_leaves_the_block_whole)
{
    static const size_t from[] = {40000, 900000, 3 << 20}, to[] = {900000, 3 << 20, 300 << 20};

    for (unsigned s = 0; s < 3; s++)
        for (unsigned k = 1; k <= 12; k++) {
            unsigned char *block = culet_malloc(from[s]);
            CHECK(block, "no memory");
            write_pattern(block, from[s], 4);
            refuse_in = k;
            culet_os_refuse = refuse_one;
            errno = 0;
            unsigned char *grown = culet_realloc(block, to[s]);
            culet_os_refuse = NULL;
            if (!grown)
                CHECK_EQUAL(errno, ENOMEM);
            check_pattern(grown ? grown : block, from[s], 4);
            CHECK(culet_malloc_usable_size(grown ? grown : block) >= (grown ? to[s] : from[s]), "too small");
            culet_free(grown ? grown : block);
            culet_heap_check();
        }
    CHECK_EQUAL(culet_large_stats().huge + culet_large_stats().large, 0);
}

/* Another thread unmaps everything spare between the kernel's refusal and the moment when this thread has the lock. */
static bool refuse_and_release(void)
{
    static bool refused;

    if (refused)
        return false;
    refused = true;
    culet_lock(&culet_pages_lock);
    culet_pages_release_spare();
    culet_unlock(&culet_pages_lock);
    return true;
}

TEST(a_huge_block_is_found_in_what_another_thread_released)
{
    bool zeroed;

    culet_os_refuse = refuse_and_release;
    void *block = culet_large_get(5 << 20, CULET_ALIGNMENT, &zeroed);
    culet_os_refuse = NULL;
    CHECK(block, "out of memory although memory was released meanwhile");
    culet_free(block);
    culet_heap_check();
}

/* Takes every block of that size that needs no request to the kernel; chains them. */
static void *exhaust(size_t bytes)
{
    void *first = NULL, **block;

    while ((block = culet_malloc(bytes < sizeof first ? sizeof first : bytes))) {
        *block = first;
        first = block;
    }
    return first;
}

static void free_chain(void *block)
{
    while (block) {
        void *next = *(void **)block;
        culet_free(block);
        block = next;
    }
}

TEST(a_shrinking_realloc_does_not_need_memory)
{
    static const size_t from[] = {30000, 900000, 3 << 20}, to[] = {3, 500, 31000, 40000, CULET_LARGE_MAX};

    culet_free(culet_malloc(1));
    for (unsigned f = 0; f < 3; f++)
        for (unsigned t = 0; t < 5 && to[t] < from[f]; t++) {
            unsigned char *block = culet_malloc(from[f]), *shrunk;
            CHECK(block, "no memory");
            write_pattern(block, from[f], 6);
            culet_os_refuse = resident_refuse_all;
            void *others = exhaust(to[t]);
            shrunk = culet_realloc(block, to[t]);
            culet_os_refuse = NULL;
            free_chain(others);
            CHECK(shrunk, "%zu bytes could not shrink to %zu", from[f], to[t]);
            check_pattern(shrunk, to[t], 6);
            culet_free(shrunk);
            culet_heap_check();
        }
    CHECK_EQUAL(culet_large_stats().huge + culet_large_stats().large, 0);
}

/* The block's mapping is granted, the pagemap's leaf for its address is not. */
TEST(a_huge_block_without_a_pagemap_entry_is_unmapped)
{
    culet_free(culet_malloc(1));
    for (unsigned i = 0; i < 20; i++) {
        size_t before = address_space(), bytes = ((size_t)300 + 300 * i) << 20;
        refuse_in = 2;
        culet_os_refuse = refuse_one;
        void *block = culet_malloc(bytes);
        culet_os_refuse = NULL;
        if (!block)
            CHECK(address_space() <= before + (1 << 20), "%zu bytes of address space are lost",
                  address_space() - before);
        culet_free(block);
    }
    CHECK_EQUAL(culet_large_stats().huge, 0);
}

static size_t segments_at_first;
static unsigned requests, refusals;

/* Grants the mapping of a block, and refuses the next as long as the heap keeps its spare segment. */
static bool refuse_until_spare_is_released(void)
{
    if (requests++ % 2 == 0 || culet_pages_stats().segments < segments_at_first)
        return false;
    refusals++;
    return true;
}

TEST(a_spare_segment_makes_room_for_a_pagemap_entry)
{
    void *block[CULET_SEGMENT_PAGES / 16];
    const unsigned count = sizeof block / sizeof *block;

    culet_free(culet_malloc(1));
    for (unsigned i = 0; i < 20; i++) {
        for (unsigned n = 0; n < count; n++)
            CHECK((block[n] = culet_malloc(16 * CULET_PAGE)), "no memory");
        for (unsigned n = 0; n < count; n++)
            culet_free(block[n]);
        segments_at_first = culet_pages_stats().segments;
        requests = 0;
        culet_os_refuse = refuse_until_spare_is_released;
        void *huge = culet_malloc(((size_t)300 + 300 * i) << 20);
        culet_os_refuse = NULL;
        CHECK(huge, "out of memory beside a spare segment");
        culet_free(huge);
    }
    CHECK(refusals > 0, "no block needed a leaf of the pagemap");
    culet_heap_check();
}

CHECK_MAIN
