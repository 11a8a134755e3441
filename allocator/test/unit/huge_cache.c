/* The huge-block cache: extents are found, cut, joined, bounded and returned; their pages serve the next huge block and
 * the next segment, and the scavenger returns them. */
#include "huge_cache.h"
#include "wakeup.h"
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "large.h"
#include "lock.h"
#include "os.h"
#include "pagemap.h"
#include "pages.h"
#include "resident.h"

#define MIB ((size_t)1 << 20)

static struct culet_extent extent(size_t bytes)
{
    struct culet_extent extent = {
        .start = (uintptr_t)culet_os_map(bytes), .bytes = bytes, .mapping = culet_huge_cache_new_mapping()};

    CHECK(extent.start, "no memory");
    memset((void *)extent.start, 1, bytes);
    return extent;
}

static bool mapped(uintptr_t start)
{
    unsigned char vector;

    return mincore((void *)start, 1, &vector) == 0;
}

TEST(the_smallest_extent_that_fits_is_taken_from_its_start)
{
    struct culet_extent small = extent(2 * MIB), large = extent(5 * MIB), taken;

    culet_huge_cache_put(large);
    culet_huge_cache_put(small);
    CHECK(culet_huge_cache_has(5 * MIB) && !culet_huge_cache_has(6 * MIB), "what it holds");
    CHECK(!culet_huge_cache_take(6 * MIB, &taken), "more than there is");
    CHECK(culet_huge_cache_take(MIB, &taken), "not taken");
    CHECK(taken.start == small.start && taken.bytes == MIB && taken.mapping == small.mapping, "not the smallest one");
    CHECK_EQUAL(culet_huge_cache_bytes(), 6 * MIB);
    CHECK(culet_huge_cache_take(3 * MIB, &taken) && taken.start == large.start, "not the only one that fits");
    CHECK(culet_huge_cache_take_largest(&taken) && taken.start == large.start + 3 * MIB, "the rest");
    CHECK_EQUAL(taken.bytes, 2 * MIB);
    CHECK(culet_huge_cache_take_largest(&taken) && taken.start == small.start + MIB, "the other rest");
    CHECK(!culet_huge_cache_take_largest(&taken), "out of nothing");
    CHECK_EQUAL(culet_huge_cache_bytes(), 0);
    culet_huge_cache_check();
}

TEST(extents_of_one_mapping_are_joined_and_extend_the_block_before)
{
    struct culet_extent whole = extent(8 * MIB), first = whole, second = whole, third = whole, taken;

    first.bytes = second.bytes = 2 * MIB;
    second.start += 2 * MIB;
    third.start += 4 * MIB;
    third.bytes = 4 * MIB;
    culet_huge_cache_put(third);
    CHECK(!culet_huge_cache_extend(&first, MIB), "the range behind is not cached");
    CHECK(culet_huge_cache_extend(&second, MIB), "not lengthened");
    CHECK(!culet_huge_cache_extend(&second, MIB), "it is not there any more");
    second.bytes += MIB;
    CHECK(!culet_huge_cache_extend(&second, 4 * MIB), "more than is cached");
    culet_huge_cache_put(second);
    culet_huge_cache_put(first);
    culet_huge_cache_check();
    CHECK(culet_huge_cache_take(8 * MIB, &taken) && taken.start == whole.start, "not joined");
    /* Adjacent extents of different mappings are not joined: mremap would refuse them. */
    second = taken;
    first = taken;
    first.bytes = 2 * MIB;
    second.start += 2 * MIB;
    second.bytes = 6 * MIB;
    second.mapping = culet_huge_cache_new_mapping();
    culet_huge_cache_put(second);
    CHECK(!culet_huge_cache_extend(&first, MIB), "lengthened by another mapping");
    culet_huge_cache_put(first);
    CHECK(!culet_huge_cache_has(7 * MIB), "joined with another mapping");
    culet_huge_cache_check();
}

TEST(the_oldest_extent_goes_back_first)
{
    struct culet_extent kept[8];

    for (unsigned i = 0; i < 8; i++)
        culet_huge_cache_put(kept[i] = extent(2 * MIB));
    CHECK_EQUAL(culet_huge_cache_excess(), 0);
    culet_huge_cache_put(extent(3 * MIB));
    CHECK_EQUAL(culet_huge_cache_excess(), 3 * MIB);
    CHECK_EQUAL(culet_huge_cache_purge(3 * MIB), 3 * MIB);
    CHECK_EQUAL(culet_huge_cache_excess(), 0);
    CHECK(!mapped(kept[0].start), "not the oldest");
    CHECK(mapped(kept[1].start) && !mapped(kept[1].start + MIB), "not the next, from its end");
    CHECK_EQUAL(culet_huge_cache_purge(MIB + 1), MIB + culet_os_page_bytes());
    CHECK(!mapped(kept[1].start) && mapped(kept[2].start), "not the next");
    culet_huge_cache_begin_interval();
    culet_huge_cache_put(extent(MIB));
    CHECK_EQUAL(culet_huge_cache_low_water(), culet_huge_cache_bytes() - MIB);
    size_t left = culet_huge_cache_bytes();
    CHECK_EQUAL(culet_huge_cache_purge(SIZE_MAX), left);
    CHECK_EQUAL(culet_huge_cache_bytes() + culet_huge_cache_low_water(), 0);
    /* Many small extents: only a few fit. */
    for (unsigned i = 0; i < 100; i++)
        culet_huge_cache_put(extent(culet_os_page_bytes()));
    CHECK(culet_huge_cache_bytes() <= 32 * culet_os_page_bytes() && culet_huge_cache_bytes() > 0, "%zu bytes",
          culet_huge_cache_bytes());
    culet_huge_cache_check();
}

static unsigned refuse_from;

static bool refuse_later(void)
{
    return refuse_from && --refuse_from == 0;
}

TEST(pages_are_moved_to_a_segment)
{
    struct culet_extent first = extent(MIB), second = extent(5 * MIB);
    uint32_t segment;
    bool zeroed;

    culet_lock(&culet_pages_lock);
    culet_huge_cache_put(first);
    culet_huge_cache_put(second);
    memset((void *)second.start, 2, MIB);
    uintptr_t start = culet_pages_get(512, CULET_PAGE, &segment, &zeroed);
    CHECK(start && !zeroed, "the segment got no pages, or they are reported as zero");
    CHECK(*(char *)start == 1 && *(char *)(start + MIB) == 2, "not the cached pages");
    CHECK_EQUAL(culet_huge_cache_bytes(), 2 * MIB);
    CHECK_EQUAL(culet_pages_stats().dirty, 512);
    CHECK_EQUAL(culet_pages_stats().huge_cached, 2 * MIB / CULET_PAGE);
    CHECK(!mapped(first.start) && !mapped(second.start), "their old places are still there");
    culet_pages_check();
    /* A refused move loses the cached pages, no more; if the hole cannot be filled there is no segment. */
    for (unsigned k = 2; k <= 3; k++) {
        size_t segments = culet_pages_stats().segments;
        while (culet_pages_stats().segments == segments && culet_pages_stats().free >= 256)
            CHECK(culet_pages_get(256, CULET_PAGE, &segment, &zeroed), "no memory");
        culet_huge_cache_put(extent(MIB));
        refuse_from = k;
        culet_os_refuse = refuse_later;
        start = culet_pages_get(CULET_SEGMENT_PAGES / 2, CULET_PAGE, &segment, &zeroed);
        culet_os_refuse = NULL;
        if (start)
            memset((void *)start, 3, 4096);
        culet_pages_check();
    }
}

/* ---- with the heap above it ---- */

/* A heap so large that it has a scavenger, which leaves the cache alone for this long. */
static void begin_scavenger(void)
{
    void *block[20];

    for (unsigned i = 0; i < 20; i++)
        block[i] = culet_malloc(900000);
    for (unsigned i = 0; i < 20; i++)
        culet_free(block[i]);
    CHECK(culet_wakeup_scavenger_runs(), "no scavenger");
}

static size_t huge_cached_bytes(void)
{
    culet_lock(&culet_pages_lock);
    size_t bytes = culet_huge_cache_bytes();
    culet_unlock(&culet_pages_lock);
    return bytes;
}

/* Frees a written block, whose pages are cached then. Returns where it was. */
static char *cache_written(size_t bytes)
{
    char *block = culet_malloc(bytes);

    CHECK(block, "no memory");
    memset(block, 7, bytes);
    culet_free(block);
    return block;
}

TEST(without_a_scavenger_nothing_is_cached)
{
    culet_free(culet_malloc(1));
    culet_free(culet_malloc(3 * MIB));
    CHECK_EQUAL(huge_cached_bytes(), 0);
}

TEST(a_freed_huge_block_serves_the_next_and_leaves_a_freed_record)
{
    begin_scavenger();
    char *block = cache_written(8 * MIB);
    CHECK(!culet_pagemap_span((uintptr_t)block) && culet_pagemap_freed((uintptr_t)block).present, "no freed record");
    CHECK(!culet_large_containing((uintptr_t)block + MIB), "a cached extent is a block");
    char *again = culet_malloc(2 * MIB);
    CHECK(again, "no memory");
    CHECK_EQUAL(culet_malloc_usable_size(again), 2 * MIB);
    CHECK_EQUAL(culet_large_stats().huge_bytes, 2 * MIB);
    char *grown = culet_realloc(again, 5 * MIB);
    CHECK(grown, "no memory");
    CHECK_EQUAL(culet_malloc_usable_size(grown), 5 * MIB);
    char *shrunk = culet_realloc(grown, 3 * MIB);
    CHECK(shrunk == grown, "it shrinks where it is");
    CHECK_EQUAL(culet_malloc_usable_size(shrunk), 3 * MIB);
    culet_free(shrunk);
    char *zeroed = culet_calloc(1, 4 * MIB);
    CHECK(zeroed, "no memory");
    for (size_t i = 0; i < 4 * MIB; i += 512)
        CHECK(!zeroed[i], "byte %zu is not zero", i);
    culet_free(zeroed);
    CHECK_EQUAL(culet_large_stats().huge, 0);
    culet_heap_check();
}

TEST(a_long_block_of_callocs_takes_no_memory_from_the_cache)
{
    begin_scavenger();
    cache_written(40 * MIB);
    char *block = culet_calloc(1, 40 * MIB - 100);
    CHECK(block, "no memory");
    CHECK(resident_bytes((uintptr_t)block, 40 * MIB) <= MIB, "the block is resident");
    for (size_t i = 0; i < 40 * MIB - 100; i++)
        CHECK(!block[i], "byte %zu is not zero", i);
}

static unsigned purges_with_open_lock;

static bool lock_is_open(void)
{
    CHECK(culet_lock_try(&culet_pages_lock), "the pages lock is held");
    culet_unlock(&culet_pages_lock);
    purges_with_open_lock++;
    return false;
}

TEST(a_trim_returns_the_cache)
{
    begin_scavenger();
    for (unsigned i = 0; i < 50 && !huge_cached_bytes(); i++)
        culet_free(culet_malloc(4 * MIB));
    CHECK(huge_cached_bytes() > 0, "nothing was cached");
    CHECK(culet_malloc_trim(0) == 1, "nothing went back");
    CHECK_EQUAL(huge_cached_bytes(), 0);
}

TEST(the_scavenger_returns_the_cache)
{
    begin_scavenger();
    cache_written(10 * MIB);
    for (unsigned i = 0; i < 600 && huge_cached_bytes(); i++)
        usleep(100000);
    CHECK(huge_cached_bytes() <= 64 * CULET_PAGE, "%zu bytes stay cached", huge_cached_bytes());
}

TEST(a_forked_child_and_its_parent_each_keep_the_cache)
{
    begin_scavenger();
    char *block = culet_malloc(6 * MIB), *kept = culet_malloc(2 * MIB);
    CHECK(block && kept, "no memory");
    memset(kept, 5, 2 * MIB);
    culet_free(block);
    pid_t child = fork();
    CHECK(child >= 0, "no child");
    for (unsigned i = 0; i < 20; i++) {
        block = culet_calloc(1, (1 + i % 7) * MIB + 1);
        CHECK(block, "no memory");
        for (size_t at = 0; at < MIB; at += 256)
            CHECK(!block[at], "byte %zu is not zero", at);
        memset(block, child ? 3 : 4, MIB);
        culet_free(block);
        culet_heap_check();
    }
    for (size_t at = 0; at < 2 * MIB; at += 64)
        CHECK(kept[at] == 5, "byte %zu of another block was changed", at);
    if (!child)
        _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child, "no child");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %#x", status);
}

TEST(extents_leave_the_cache_before_they_are_unmapped)
{
    struct culet_extent kept[9], leaving[9];

    for (unsigned i = 0; i < 9; i++)
        culet_huge_cache_put(kept[i] = extent(MIB));
    CHECK(culet_huge_cache_begin_purge(MIB / 4, &leaving[0]), "nothing is taken");
    CHECK_EQUAL(leaving[0].bytes, MIB / 4);
    CHECK_EQUAL(leaving[0].start, kept[0].start + 3 * MIB / 4);
    for (unsigned i = 1; i < 8; i++)
        CHECK(culet_huge_cache_begin_purge(MIB, &leaving[i]), "nothing is taken");
    CHECK(!culet_huge_cache_begin_purge(MIB, &leaving[8]), "too many at the same time");
    CHECK_EQUAL(culet_huge_cache_bytes(), 9 * MIB - MIB / 4 - 3 * MIB / 4 - 6 * MIB);
    CHECK(mapped(leaving[0].start) && mapped(leaving[7].start), "they are unmapped already");
    culet_huge_cache_end_purge(&leaving[5]);
    CHECK(!mapped(leaving[5].start) && mapped(leaving[4].start), "not the one that is meant");
    pid_t child = fork();
    if (!child) {
        culet_huge_cache_finish_purges();
        for (unsigned i = 0; i < 8; i++)
            CHECK(!mapped(leaving[i].start), "the child keeps extent %u", i);
        CHECK(culet_huge_cache_begin_purge(MIB, &leaving[8]), "the purges are not over");
        _exit(0);
    }
    check_child(child);
    culet_huge_cache_check();
}

/* What exceeds the cache's bound goes back when the lock is open. */
TEST(the_excess_goes_back_without_the_lock)
{
    begin_scavenger();
    char *block[6];
    for (unsigned i = 0; i < 6; i++) {
        block[i] = culet_malloc(4 * MIB);
        CHECK(block[i], "no memory");
        memset(block[i], 1, 4 * MIB);
    }
    for (unsigned i = 1; i < 6; i++)
        culet_free(block[i]);
    culet_lock(&culet_pages_lock);
    culet_huge_cache_begin_interval();
    culet_unlock(&culet_pages_lock);
    culet_os_refuse_purge = lock_is_open;
    culet_free(block[0]);
    culet_os_refuse_purge = NULL;
    CHECK(purges_with_open_lock > 0, "nothing went back");
    CHECK(huge_cached_bytes() <= 20 * MIB, "%zu bytes are cached", huge_cached_bytes());
    culet_heap_check();
}

/* Freed blocks are cached beside others that need no more than there were, for no longer than the interval. */
TEST(the_bound_follows_the_huge_blocks_of_the_interval)
{
    culet_huge_cache_set_live(64 * MIB);
    culet_huge_cache_set_live(44 * MIB);
    culet_huge_cache_put(extent(20 * MIB));
    culet_huge_cache_put(extent(16 * MIB));
    CHECK_EQUAL(culet_huge_cache_excess(), 0);
    culet_huge_cache_set_live(45 * MIB);
    CHECK_EQUAL(culet_huge_cache_excess(), MIB);
    culet_huge_cache_begin_interval();
    CHECK_EQUAL(culet_huge_cache_excess(), 20 * MIB);
    culet_huge_cache_set_live(0);
    CHECK_EQUAL(culet_huge_cache_excess(), 0);
    culet_huge_cache_purge(SIZE_MAX);
}

/* Replacing a block that is larger than the bound without it takes no new pages, but where the scavenger came between. */
TEST(replaced_huge_blocks_keep_their_pages)
{
    begin_scavenger();
    culet_free(culet_malloc(20 * MIB));
    char *block = culet_malloc(20 * MIB);
    CHECK(block, "no memory");
    memset(block, 1, 20 * MIB);
    unsigned kept = 0;
    for (unsigned i = 0; i < 20; i++) {
        culet_free(block);
        block = culet_malloc(20 * MIB);
        CHECK(block, "no memory");
        kept += block[19 * MIB] == 1;
        memset(block, 1, 20 * MIB);
    }
    CHECK(kept > 0, "other pages each time");
    culet_free(block);
}

/* The cache adds nothing to a peak: cached pages go back for new ones. */
TEST(new_pages_replace_cached_ones)
{
    begin_scavenger();
    culet_malloc_trim(0);
    char *block = culet_malloc(12 * MIB);
    CHECK(block, "no memory");
    culet_free(block);
    size_t kept = huge_cached_bytes();
    char *large = culet_malloc(40 * MIB);
    CHECK(large, "no memory");
    CHECK_EQUAL(huge_cached_bytes(), 0);
    culet_free(large);
    culet_malloc_trim(0);
    block = culet_malloc(12 * MIB);
    culet_free(block);
    CHECK(kept, "nothing was cached");
    for (unsigned i = 0; i < 40; i++)
        CHECK(culet_malloc(500000), "no memory");
    CHECK(huge_cached_bytes() <= MIB, "%zu bytes stay cached beside a heap that grew", huge_cached_bytes());
    culet_heap_check();
}

CHECK_MAIN
