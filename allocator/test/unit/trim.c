/* Trims: every wholly free page is returned, live blocks keep their contents, and the result is right. */
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "heap_counts.h"
#include "pagemap.h"
#include "resident.h"
#include "size_class.h"

#define BLOCKS 40000

static unsigned char *block[BLOCKS];
static size_t bytes_of[BLOCKS];

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i % 255 + 1);
}

static void fill(uint64_t *seed, size_t largest)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        bytes_of[i] = 1 + check_random(seed) % (i % 500 == 0 ? largest : 600);
        block[i] = culet_malloc(bytes_of[i]);
        CHECK(block[i], "no memory");
        memset(block[i], pattern(i), bytes_of[i]);
    }
}

static void release(size_t i)
{
    culet_free(block[i]);
    block[i] = NULL;
}

static void check_contents(void)
{
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t at = 0; block[i] && at < bytes_of[i]; at++)
            if (block[i][at] != pattern(i))
                CHECK(false, "byte %zu of a block of %zu was changed", at, bytes_of[i]);
}

/* Kernel pages of the segments that are resident and that no block in use overlaps. The map of used pages is built from
 * this test's own list of blocks. */
static size_t idle_resident(void)
{
    size_t page = culet_os_page_bytes(), idle = 0;

    for (uint32_t index = 0;; index++) {
        uintptr_t base = culet_pages_segment(index);
        if (base == CULET_PAGES_END)
            return idle;
        if (!base)
            continue;
        static bool used[CULET_SEGMENT_PAGES];
        memset(used, 0, sizeof used);
        for (size_t i = 0; i < BLOCKS; i++) {
            uintptr_t start = (uintptr_t)block[i];
            if (!start || start < base || start >= base + CULET_SEGMENT_BYTES)
                continue;
            size_t usable = culet_malloc_usable_size(block[i]);
            for (uintptr_t p = start & ~(page - 1); p < start + usable; p += page)
                if (p >= base)
                    used[(p - base) / CULET_PAGE] = true;
        }
        for (size_t at = 0; at + page <= CULET_SEGMENT_BYTES; at += page)
            if (!used[at / CULET_PAGE])
                idle += resident_bytes(base + at, page);
    }
}

static void trim_and_look(void)
{
    size_t before = idle_resident();
    int result = culet_malloc_trim(0);
    size_t after = idle_resident();

    CHECK(result == (before > 0), "%zu bytes were resident before and %zu after, malloc_trim returned %d", before,
          after, result);
    CHECK_EQUAL(after, 0);
    CHECK_EQUAL(culet_malloc_trim(0), 0);
    check_contents();
    culet_heap_check();
}

TEST(every_wholly_free_page_is_returned)
{
    uint64_t seed = 1;

    for (unsigned keep_one_in = 2; keep_one_in <= 2000; keep_one_in *= 10) {
        fill(&seed, 2 * CULET_LARGE_MAX);
        for (size_t i = 0; i < BLOCKS; i++)
            if (check_random(&seed) % keep_one_in)
                release(i);
        if (culet_os_page_bytes() == CULET_PAGE)
            trim_and_look();
        for (size_t i = 0; i < BLOCKS; i++)
            if (block[i])
                release(i);
        if (culet_os_page_bytes() == CULET_PAGE)
            trim_and_look();
    }
}

TEST(returned_pages_serve_again)
{
    uint64_t seed = 2;

    for (unsigned round = 0, rounds = check_rounds(2, 4); round < rounds; round++) {
        fill(&seed, CULET_LARGE_MAX);
        check_contents();
        for (size_t i = 0; i < BLOCKS; i++)
            if (i % 3)
                release(i);
        /* With a third of the blocks left hardly a large kernel page is free. */
        CHECK(culet_malloc_trim(0) || culet_os_page_bytes() > CULET_PAGE, "nothing was returned");
        for (size_t i = 0; i < BLOCKS; i++)
            if (!block[i]) {
                bytes_of[i] = 1 + check_random(&seed) % 600;
                block[i] = culet_calloc(1, bytes_of[i]);
                CHECK(block[i], "no memory");
                for (size_t at = 0; at < bytes_of[i]; at++)
                    CHECK(!block[i][at], "calloc's byte %zu is %u", at, block[i][at]);
                memset(block[i], pattern(i), bytes_of[i]);
            }
        check_contents();
        for (size_t i = 0; i < BLOCKS; i++)
            release(i);
    }
    culet_heap_check();
}

/* malloc_trim returns 1 if it returned memory in any way: also pages that the page heap returned when a slab ended. */
TEST(the_result_is_right_for_any_number_of_idle_slabs)
{
    culet_free(culet_malloc(1));
    for (unsigned last = 1; last < CULET_CLASSES; last += check_rounds(3, 1)) {
        for (unsigned klass = 1; klass <= last; klass++) {
            size_t count = culet_classes[klass].count + 1u;
            for (size_t i = 0; i < count; i++) {
                bytes_of[i] = culet_classes[klass].size;
                block[i] = culet_malloc(bytes_of[i]);
                CHECK(block[i], "no memory");
                memset(block[i], 1, bytes_of[i]);
            }
            for (size_t i = 0; i < count; i++)
                release(i);
        }
        size_t before = idle_resident();
        int result = culet_malloc_trim(0);
        size_t after = idle_resident();
        if (culet_os_page_bytes() == CULET_PAGE)
            CHECK_EQUAL(after, 0);
        CHECK(result || before <= after,
              "%zu bytes were resident before and %zu after, classes up to %u: malloc_trim returned %d", before, after,
              last, result);
    }
}

TEST(a_pad_is_kept)
{
    unsigned char *run[16];

    for (unsigned i = 0; i < 16; i++) {
        run[i] = culet_malloc(40000);
        memset(run[i], 1, 40000);
    }
    for (unsigned i = 0; i < 2; i++)
        culet_free(run[i]);
    size_t before = idle_resident();
    CHECK_EQUAL(culet_malloc_trim((size_t)1 << 40), 0);
    struct heap_counts counts;
    count_heap(&counts);
    CHECK(counts.pages.dirty > 0 && before > 0, "all of it is the pad");
    CHECK_EQUAL(culet_malloc_trim(0), 1);
    count_heap(&counts);
    CHECK(counts.pages.dirty < culet_os_page_bytes() / CULET_PAGE * 2, "%zu pages stay", counts.pages.dirty);
}

TEST(a_trim_without_free_pages_returns_0)
{
    CHECK_EQUAL(culet_malloc_trim(0), 0);
    culet_free(culet_malloc(10));
    culet_malloc_trim(0);
    CHECK_EQUAL(culet_malloc_trim(0), 0);
    CHECK_EQUAL(culet_malloc_trim(SIZE_MAX), 0);
}

CHECK_MAIN
