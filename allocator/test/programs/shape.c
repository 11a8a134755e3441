/* shape.c - resident and shared memory: after a fork and frees in the child, after a burst, after a trim. These are
 * counts of pages, equal in every run, so they have exact bounds. */
#define _GNU_SOURCE
#include "programs.h"
#include "scavenger.h"

#include <unistd.h>

#include <fcntl.h>

#define MEBIBYTE ((size_t)1 << 20)
#define TOTAL (64 * MEBIBYTE)

static void **blocks;
static size_t count;

/* Fills the heap with `bytes`-byte blocks up to TOTAL. The list is a mapping, not a block. */
static void allocate_all(size_t bytes)
{
    count = TOTAL / bytes;
    blocks = mmap(NULL, count * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(blocks != MAP_FAILED, "mmap");
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(bytes);
        if (!blocks[i])
            CHECK(false, "malloc(%zu)", bytes);
        memset(blocks[i], (int)(i % 251) + 1, bytes);
    }
}

static void check_all(size_t bytes, size_t first, size_t step)
{
    for (size_t i = first; i < count; i += step)
        if (!filled(blocks[i], (int)(i % 251) + 1, bytes))
            CHECK(false, "block %zu changed", i);
}

/* In a forked child: frees one block in each 4 KiB page, and checks what that made private. */
static void free_in_child(size_t bytes)
{
    allocate_all(bytes);
    pid_t child = fork();
    if (child == 0) {
        size_t step = 4096 / bytes, freed = 0, before;
        smaps_bytes("Private_Dirty:"); /* the first read touches pages of its own */
        before = smaps_bytes("Private_Dirty:");
        for (size_t i = 0; i < count; i += step, freed++)
            free(blocks[i]);
        size_t after = smaps_bytes("Private_Dirty:");
        CHECK(freed >= TOTAL / 4096, "only %zu blocks were freed", freed);
        CHECK(after <= before + MEBIBYTE / 2, "freeing %zu blocks of %zu bytes dirtied %zu KiB", freed, bytes,
              (after - before) / 1024);
        _exit(0);
    }
    check_child(child);
    check_all(bytes, 0, 1);
}

TEST(frees_in_a_child_keep_pages_shared_64)
{
    free_in_child(64);
}

TEST(frees_in_a_child_keep_pages_shared_256)
{
    free_in_child(256);
}

TEST(frees_in_a_child_keep_pages_shared_1024)
{
    free_in_child(1024);
}

/* The blocks of each `step` are freed and requested again, a second time as zeros. */
static void use_again(size_t bytes, size_t step)
{
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < count; i += step)
            free(blocks[i]);
        for (size_t i = 0; i < count; i += step) {
            blocks[i] = round ? calloc(1, bytes) : malloc(bytes);
            if (round && !filled(blocks[i], 0, bytes))
                CHECK(false, "block %zu of calloc is not zero", i);
            memset(blocks[i], (int)(i % 251) + 1, bytes);
        }
    }
    check_all(bytes, 0, 1);
}

/* Blocks of pages that a child has freed without writing to them, and of those that its own child has. */
TEST(blocks_after_frees_in_a_child)
{
    const size_t bytes = 1024;

    allocate_all(bytes);
    for (size_t i = 0; i < count; i += 5) {
        free(blocks[i]);
        blocks[i] = malloc(bytes);
        memset(blocks[i], (int)(i % 251) + 1, bytes);
    }
    pid_t child = fork();
    if (child == 0) {
        use_again(bytes, 3);
        for (size_t i = 1; i < count; i += 3)
            free(blocks[i]);
        pid_t grandchild = fork();
        for (size_t i = 1; i < count; i += 3) {
            blocks[i] = malloc(bytes);
            memset(blocks[i], (int)(i % 251) + 1, bytes);
        }
        use_again(bytes, 2);
        malloc_trim(0);
        use_again(bytes, 3);
        if (grandchild)
            check_child(grandchild);
        _exit(0);
    }
    check_child(child);
    check_all(bytes, 0, 1);
}

/* What a forked child has made private at its start. */
static size_t private_at_birth(void)
{
    size_t *bytes = mmap(NULL, sizeof *bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(bytes != MAP_FAILED, "mmap");
    pid_t child = fork();
    if (child == 0) {
        *bytes = smaps_bytes("Private_Dirty:");
        _exit(0);
    }
    check_child(child);
    size_t found = *bytes;
    munmap(bytes, sizeof *bytes);
    return found;
}

/* Beside other threads the child updates all slabs, but writes to none. */
TEST(a_fork_leaves_the_descriptors_shared)
{
    begin_scavenger();
    size_t small = private_at_birth();
    allocate_all(64);
    size_t large = private_at_birth();
    CHECK(large <= small + MEBIBYTE / 8, "%zu KiB are private to the child of a large heap, %zu to that of a small one",
          large / 1024, small / 1024);
}

/* A trim in the child returns pages and writes into none: the rest stays shared. */
TEST(trim_in_a_child_keeps_pages_shared)
{
    const size_t bytes = 256, run = 4096 / bytes * 8;

    allocate_all(bytes);
    pid_t child = fork();
    if (child == 0) {
        smaps_bytes("Private_Dirty:");
        size_t before = smaps_bytes("Private_Dirty:");
        /* Every other 32 KiB, so that whole pages are free in slabs that are in use. */
        for (size_t i = 0; i < count; i++)
            if (i / run % 2 == 0)
                free(blocks[i]);
        CHECK_EQUAL(malloc_trim(0), 1);
        size_t after = smaps_bytes("Private_Dirty:");
        CHECK(after <= before + MEBIBYTE, "a trim dirtied %zu KiB", (after - before) / 1024);
        for (size_t i = 0; i < count; i++)
            if (i / run % 2 == 1 && !filled(blocks[i], (int)(i % 251) + 1, bytes))
                CHECK(false, "block %zu changed", i);
        _exit(0);
    }
    check_child(child);
    check_all(bytes, 0, 1);
}

TEST(trim_returns_whole_free_pages)
{
    const size_t bytes = 256, run = 4096 / bytes * 8;

    allocate_all(bytes);
    size_t full = smaps_bytes("Rss:");
    for (size_t i = 0; i < count; i++)
        if (i / run % 2 == 0)
            free(blocks[i]);
    CHECK_EQUAL(malloc_trim(0), 1);
    CHECK_EQUAL(malloc_trim(0), 0);
    size_t trimmed = smaps_bytes("Rss:");
    /* Half of the blocks, less the pages at the edges that a live block overlaps: more of them with larger kernel
     * pages. */
    size_t page = (size_t)sysconf(_SC_PAGESIZE), edges = TOTAL / (2 * 32768) * 2 * page;
    size_t least = TOTAL / 2 > edges ? TOTAL / 2 - edges : 0;
    CHECK(trimmed + least <= full, "%zu KiB resident, %zu after the trim", full / 1024, trimmed / 1024);
    for (size_t i = 0; i < count; i++)
        if (i / run % 2 == 1 && !filled(blocks[i], (int)(i % 251) + 1, bytes))
            CHECK(false, "block %zu changed", i);
}

static void burst(size_t bytes)
{
    size_t start = smaps_bytes("Rss:");

    allocate_all(bytes);
    size_t full = smaps_bytes("Rss:");
    CHECK(full >= start + count * bytes, "%zu KiB resident at first, %zu with the blocks", start / 1024, full / 1024);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    munmap(blocks, count * sizeof *blocks);
    malloc_trim(0);
    size_t end = smaps_bytes("Rss:");
    /* Descriptors and the pagemap stay: less than 2 % of the burst. */
    CHECK(end <= start + TOTAL / 50, "%zu KiB resident at first, %zu at the end", start / 1024, end / 1024);
}

TEST(burst_of_48)
{
    burst(48);
}

TEST(burst_of_1000)
{
    burst(1000);
}

TEST(burst_of_20000)
{
    burst(20000);
}

TEST(burst_of_100000)
{
    burst(100000);
}

TEST(burst_of_5000000)
{
    burst(5000000);
}

static void *burst_in_thread(void *unused)
{
    allocate_all(500);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    munmap(blocks, count * sizeof *blocks);
    return unused;
}

/* After the allocating thread has ended its memory is available to all. */
TEST(burst_of_an_ended_thread)
{
    pthread_t thread;
    size_t start = smaps_bytes("Anonymous:");

    start_thread(&thread, burst_in_thread, NULL);
    join_thread(thread);
    malloc_trim(0);
    CHECK(smaps_bytes("Anonymous:") <= start + MEBIBYTE, "%zu KiB of its own at first, %zu at the end", start / 1024,
          smaps_bytes("Anonymous:") / 1024);
}

/* Without a trim most of a burst goes back too, within a second or two (a minute on a busy machine). */
TEST(burst_without_a_trim)
{
    size_t start = smaps_bytes("Rss:");

    allocate_all(300);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    munmap(blocks, count * sizeof *blocks);
    for (unsigned i = 0; i < 600 && smaps_bytes("Rss:") > start + 4 * MEBIBYTE; i++)
        usleep(100000);
    CHECK(smaps_bytes("Rss:") <= start + 4 * MEBIBYTE, "%zu KiB resident at first, %zu at the end", start / 1024,
          smaps_bytes("Rss:") / 1024);
}

#define DONTNEED_LOCKED 24 /* MADV_DONTNEED_LOCKED */

/* Locks all memory, present and future. False: the kernel does not let it, or takes back no locked page (before 5.18). */
static bool lock_all(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(page != MAP_FAILED, "mmap");
    return madvise(page, 4096, DONTNEED_LOCKED) == 0 && mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
}

/* The bytes of a new leaf of the page map, if the blocks have one: it is for 4 GiB of addresses, and locked as a whole. */
static size_t new_leaf_bytes(const void *earlier)
{
    for (size_t i = 0; i < count; i++)
        if ((uintptr_t)blocks[i] >> 32 != (uintptr_t)earlier >> 32)
            return 8 * MEBIBYTE;
    return 0;
}

/* A burst of locked memory, of which one block in 2,000 survives, goes back as well, without a trim. What was mapped and
 * never used stays: less than a segment. */
TEST(locked_burst)
{
    static const size_t sizes[] = {300, 5000, 100000};
    void *earlier = malloc(1);

    for (size_t s = 0; s < sizeof sizes / sizeof *sizes && lock_all(); s++) {
        size_t start = smaps_bytes("Rss:");
        allocate_all(sizes[s]);
        size_t most = start + 6 * MEBIBYTE + new_leaf_bytes(earlier);
        CHECK(smaps_bytes("Rss:") >= TOTAL, "%zu KiB resident", smaps_bytes("Rss:") / 1024);
        for (size_t i = 0; i < count; i++)
            if (i % 2000)
                free(blocks[i]);
        for (unsigned i = 0; i < 600 && smaps_bytes("Rss:") > most; i++)
            usleep(100000);
        CHECK(smaps_bytes("Rss:") <= most, "blocks of %zu bytes: %zu KiB resident at first, %zu at the end", sizes[s],
              start / 1024, smaps_bytes("Rss:") / 1024);
        check_all(sizes[s], 0, 2000);
    }
    free(earlier);
}

/* The memory of a huge block that shrinks or moves goes back at once. */
TEST(huge_block_that_shrinks)
{
    size_t start = smaps_bytes("Rss:");
    char *block = malloc(TOTAL);

    CHECK(block != NULL, "malloc");
    fill(block, 1, TOTAL);
    CHECK(smaps_bytes("Rss:") >= start + TOTAL, "%zu KiB resident", smaps_bytes("Rss:") / 1024);
    block = realloc(block, 2 * MEBIBYTE);
    CHECK(block && filled(block, 1, 2 * MEBIBYTE), "realloc");
    CHECK(smaps_bytes("Rss:") <= start + 4 * MEBIBYTE, "%zu KiB resident after shrinking", smaps_bytes("Rss:") / 1024);
    /* Growing moves pages, it does not copy them: both copies are never resident. */
    block = realloc(block, TOTAL);
    CHECK(block && filled(block, 1, 2 * MEBIBYTE), "realloc");
    CHECK(smaps_bytes("Rss:") <= start + 4 * MEBIBYTE, "%zu KiB resident after growing", smaps_bytes("Rss:") / 1024);
    free(block);
    CHECK(smaps_bytes("Rss:") <= start + MEBIBYTE, "%zu KiB resident at the end", smaps_bytes("Rss:") / 1024);
}

CHECK_MAIN
