/* The page heap against a model: ranges do not overlap, pages reported as zero are zero, counts add up, segments are
 * unmapped. */
#include "pages.h"
#include "check.h"
#include "lock.h"
#include "meta.h"
#include "resident.h"

#include <pthread.h>
#include <unistd.h>

#define RUNS 600

struct run {
    uintptr_t start;
    size_t pages;
    uint32_t segment;
    uint64_t mark;
};

static struct run runs[RUNS];
static size_t used;
static uint64_t marks;

/* Marks the first and the last word of every page from the `from`-th on. */
static void mark(struct run *run, size_t from)
{
    for (size_t i = from; i < run->pages; i++) {
        uint64_t *page = (uint64_t *)(run->start + i * CULET_PAGE);
        page[0] = page[CULET_PAGE / 8 - 1] = run->mark + i;
    }
}

static void check_marks(const struct run *run)
{
    for (size_t i = 0; i < run->pages; i++) {
        const uint64_t *page = (const uint64_t *)(run->start + i * CULET_PAGE);
        CHECK(page[0] == run->mark + i && page[CULET_PAGE / 8 - 1] == run->mark + i,
              "page %zu of a run of %zu was changed", i, run->pages);
    }
}

static void check_zero(uintptr_t start, size_t bytes)
{
    const uint64_t *words = (const uint64_t *)start;

    for (size_t i = 0; i < bytes / 8; i++)
        if (words[i])
            CHECK(false, "%zu bytes into a range reported as zero", i * 8);
}

static void check_counts(void)
{
    struct culet_pages_stats counts = culet_pages_stats();

    culet_pages_check();
    CHECK_EQUAL(counts.used, used);
    CHECK_EQUAL(counts.used + counts.free, counts.segments * CULET_SEGMENT_PAGES);
    CHECK(counts.dirty <= counts.free, "%zu of %zu free pages are dirty", counts.dirty, counts.free);
}

static bool get(struct run *run, size_t pages, size_t alignment)
{
    bool zeroed;

    run->start = culet_pages_get(pages, alignment, &run->segment, &zeroed);
    if (!run->start)
        return false;
    run->pages = pages;
    run->mark = ++marks << 32;
    used += pages;
    CHECK(run->start % alignment == 0, "%p is not aligned to %zu", (void *)run->start, alignment);
    uintptr_t segment = culet_pages_segment(run->segment);
    CHECK(run->start >= segment && run->start + pages * CULET_PAGE <= segment + CULET_SEGMENT_BYTES,
          "a run lies outside its segment");
    if (zeroed)
        check_zero(run->start, pages * CULET_PAGE);
    mark(run, 0);
    return true;
}

static void put(struct run *run)
{
    check_marks(run);
    culet_pages_put(run->segment, run->start, run->pages, ~UINT64_C(0));
    used -= run->pages;
    run->start = 0;
}

static void extend(struct run *run, size_t more)
{
    if (!culet_pages_extend(run->segment, run->start, run->pages, more))
        return;
    run->pages += more;
    used += more;
    mark(run, run->pages - more);
}

/* Frees the upper half. */
static void shorten(struct run *run)
{
    size_t less = run->pages / 2;

    if (!less)
        return;
    check_marks(run);
    run->pages -= less;
    used -= less;
    culet_pages_put(run->segment, run->start + run->pages * CULET_PAGE, less, ~UINT64_C(0));
}

static void purge(uint64_t *seed)
{
    size_t keep = check_random(seed) % 400, before = culet_pages_stats().purged_bytes;
    size_t dirty = culet_pages_stats().dirty, returned = culet_pages_reclaim(keep);
    struct culet_pages_stats counts = culet_pages_stats();

    CHECK_EQUAL(counts.purged_bytes - before, returned);
    CHECK_EQUAL((dirty - counts.dirty) * CULET_PAGE, returned);
    if (culet_os_page_bytes() == CULET_PAGE)
        CHECK(counts.dirty <= keep, "%zu pages are dirty, %zu may be", counts.dirty, keep);
}

static void step(uint64_t *seed, bool may_purge)
{
    struct run *run = &runs[check_random(seed) % RUNS];
    unsigned what = check_random(seed) % 100;

    if (!run->start) {
        size_t pages = what < 60 ? 1 + check_random(seed) % 16 : 1 + check_random(seed) % 256;
        size_t alignment = CULET_PAGE << (what % 4 ? 0 : check_random(seed) % 9);
        CHECK(get(run, pages, alignment), "no memory");
    } else if (what < 70) {
        put(run);
    } else if (what < 85) {
        extend(run, 1 + check_random(seed) % 32);
    } else if (what < 99) {
        shorten(run);
    } else if (may_purge) {
        purge(seed);
    }
}

TEST(random_operations_agree_with_a_model)
{
    culet_lock(&culet_pages_lock);
    for (uint64_t seed = 1, seeds = check_rounds(1, 3); seed <= seeds; seed++) {
        uint64_t state = seed;
        for (unsigned i = 0; i < 4000; i++) {
            step(&state, true);
            if (i % 16 == 0)
                check_counts();
        }
        for (unsigned i = 0; i < RUNS; i++)
            if (runs[i].start)
                put(&runs[i]);
        check_counts();
        CHECK(culet_pages_stats().segments <= 1, "%zu segments are left of nothing", culet_pages_stats().segments);
    }
}

TEST(the_lowest_fitting_range_of_a_segment_is_taken)
{
    struct run run[64], again;

    culet_lock(&culet_pages_lock);
    for (unsigned i = 0; i < 64; i++)
        CHECK(get(&run[i], 8, CULET_PAGE), "no memory");
    for (unsigned i = 1; i < 64; i++)
        CHECK_EQUAL(run[i].start, run[i - 1].start + 8 * CULET_PAGE);
    uintptr_t ten = run[10].start, twenty = run[20].start;
    put(&run[20]);
    put(&run[21]);
    put(&run[10]);
    CHECK(get(&again, 9, CULET_PAGE) && again.start == twenty, "nine pages fit where twenty was");
    CHECK(get(&again, 8, CULET_PAGE) && again.start == ten, "eight pages fit where ten was");
    check_counts();
}

TEST(clean_pages_stay_clean)
{
    uint32_t segment;
    bool zeroed;

    culet_lock(&culet_pages_lock);
    uintptr_t start = culet_pages_get(16, CULET_PAGE, &segment, &zeroed);
    CHECK(start && zeroed, "fresh memory is zero");
    memset((void *)(start + 5 * CULET_PAGE), 1, CULET_PAGE);
    culet_pages_put(segment, start, 16, UINT64_C(1) << 5);
    CHECK_EQUAL(culet_pages_stats().dirty, 1);
    CHECK(culet_pages_get(5, CULET_PAGE, &segment, &zeroed) == start && zeroed, "the pages before are clean");
    CHECK(culet_pages_get(11, CULET_PAGE, &segment, &zeroed) == start + 5 * CULET_PAGE, "not the lowest");
    CHECK(!zeroed, "a range with a dirty page was reported as zero");
    CHECK_EQUAL(culet_pages_stats().dirty, 0);
    culet_pages_check();
}

TEST(purged_pages_are_not_resident_and_read_as_zeros)
{
    struct run run, beside[16];
    size_t page = culet_os_page_bytes();

    culet_lock(&culet_pages_lock);
    CHECK(get(&run, 96, CULET_PAGE), "no memory");
    /* So much in use that 96 dirty pages may be kept. */
    for (unsigned i = 0; i < 16; i++)
        CHECK(get(&beside[i], 256, CULET_PAGE), "no memory");
    uintptr_t start = run.start;
    put(&run);
    size_t before = resident_bytes(start, 96 * CULET_PAGE);
    CHECK(before > 0, "nothing was resident");
    CHECK(culet_pages_reclaim(0) >= 96 * CULET_PAGE - 2 * page, "too little came back");
    CHECK_EQUAL(resident_bytes(start, 96 * CULET_PAGE), 0);
    for (unsigned i = 0; i < 16; i++)
        check_marks(&beside[i]);
    check_zero((start + page - 1) & ~(page - 1), 95 * CULET_PAGE & ~(page - 1));
    check_counts();
}

TEST(freed_memory_is_kept_within_bounds)
{
    struct run run[40];

    culet_lock(&culet_pages_lock);
    for (unsigned i = 0; i < 40; i++)
        CHECK(get(&run[i], 256, CULET_PAGE), "no memory");
    for (unsigned i = 0; i < 40; i++) {
        put(&run[i]);
        struct culet_pages_stats counts = culet_pages_stats();
        CHECK(counts.dirty <= 32 + counts.used / 32 + culet_os_page_bytes() / CULET_PAGE,
              "%zu pages stay resident while %zu are used", counts.dirty, counts.used);
    }
    CHECK(culet_pages_stats().segments <= 1, "%zu segments are left", culet_pages_stats().segments);
}

TEST(a_page_range_is_extended_only_into_free_pages)
{
    struct run first, second;

    culet_lock(&culet_pages_lock);
    CHECK(get(&first, 4, CULET_PAGE) && get(&second, 4, CULET_PAGE), "no memory");
    CHECK(!culet_pages_extend(first.segment, first.start, 4, 1), "lengthened into another run");
    put(&second);
    CHECK(culet_pages_extend(first.segment, first.start, 4, 4), "not lengthened into free pages");
    used += 4;
    CHECK(!culet_pages_extend(first.segment, first.start, 8, CULET_SEGMENT_PAGES - 7), "beyond the segment");
    CHECK(culet_pages_extend(first.segment, first.start, 8, CULET_SEGMENT_PAGES - 8), "up to the segment's end");
    used += CULET_SEGMENT_PAGES - 8;
    CHECK(!culet_pages_extend(first.segment, first.start, CULET_SEGMENT_PAGES, 1), "behind the last page");
    check_counts();
}

TEST(refused_memory_changes_nothing)
{
    struct run run[5];
    unsigned got = 0;

    culet_lock(&culet_pages_lock);
    CHECK(get(&run[got++], 256, CULET_PAGE), "no memory");
    culet_os_refuse = resident_refuse_all;
    while (got < 5 && get(&run[got], 256, CULET_PAGE))
        got++;
    CHECK_EQUAL(got, 4); /* the rest of the first segment */
    check_counts();
    /* The descriptor of a refused segment is not lost, however often it is attempted. */
    for (unsigned i = 0; i < 2000; i++)
        CHECK(!get(&run[4], 256, CULET_PAGE), "a segment out of nothing");
    CHECK(culet_meta_get(CULET_META_SEGMENT), "the descriptors are used up");
    check_counts();
    culet_os_refuse = NULL;
    CHECK(get(&run[4], 256, CULET_PAGE), "no memory");
    CHECK_EQUAL(culet_pages_stats().segments, 2);
    for (unsigned i = 0; i < 5; i++)
        put(&run[i]);
    check_counts();
}

/* ---- purges without the lock ---- */

static uintptr_t purged_range;
static unsigned purges;

/* One segment, all in use but `pages` pages near its end, which are dirty. */
static struct run leave_dirty(size_t pages)
{
    struct run before, run, after;
    size_t left = CULET_SEGMENT_PAGES - pages - 16;

    for (; left > 256; left -= 256)
        CHECK(get(&before, 256, CULET_PAGE), "no memory");
    CHECK(get(&before, left, CULET_PAGE) && get(&run, pages, CULET_PAGE) && get(&after, 16, CULET_PAGE), "no memory");
    purged_range = run.start;
    struct run copy = run;
    put(&run);
    CHECK_EQUAL(culet_pages_stats().dirty, pages);
    CHECK_EQUAL(culet_pages_stats().segments, 1);
    return copy;
}

/* While the kernel works, the lock is open, and the pages are neither lost nor handed out. */
static bool use_while_purging(void)
{
    struct run run;

    CHECK(culet_lock_try(&culet_pages_lock), "the lock is held");
    check_counts();
    CHECK_EQUAL(culet_pages_stats().free, 32);
    CHECK_EQUAL(culet_pages_stats().dirty, 32);
    CHECK(get(&run, 8, CULET_PAGE), "no memory");
    CHECK(run.start < purged_range || run.start >= purged_range + 32 * CULET_PAGE, "pages that are purged were given");
    put(&run);
    CHECK_EQUAL(culet_pages_stats().segments, 2);
    check_counts();
    culet_unlock(&culet_pages_lock);
    purges++;
    return false;
}

TEST(the_lock_is_open_while_pages_are_purged)
{
    culet_lock(&culet_pages_lock);
    leave_dirty(32);
    culet_unlock(&culet_pages_lock);
    culet_os_refuse_purge = use_while_purging;
    CHECK_EQUAL(culet_pages_purge_unlocked(0), 32 * CULET_PAGE);
    culet_os_refuse_purge = NULL;
    CHECK_EQUAL(purges, 1);
    CHECK_EQUAL(resident_bytes(purged_range, 32 * CULET_PAGE), 0);
    culet_lock(&culet_pages_lock);
    check_counts();
    struct run run;
    CHECK(get(&run, 32, CULET_PAGE) && run.start == purged_range, "the purged pages are not free");
}

static bool fork_while_purging(void)
{
    culet_lock(&culet_pages_lock);
    pid_t child = fork();
    if (!child) {
        struct run run;
        culet_pages_reset_after_fork();
        check_counts();
        CHECK_EQUAL(culet_pages_stats().dirty, 32);
        CHECK(get(&run, 32, CULET_PAGE) && run.start == purged_range, "the pages are not free in the child");
        culet_os_refuse_purge = NULL;
        put(&run);
        culet_unlock(&culet_pages_lock);
        CHECK_EQUAL(culet_pages_purge_unlocked(0), 32 * CULET_PAGE);
        _exit(0);
    }
    check_child(child);
    culet_unlock(&culet_pages_lock);
    return true;
}

TEST(a_forked_child_has_the_pages_that_were_being_purged)
{
    culet_lock(&culet_pages_lock);
    leave_dirty(32);
    culet_unlock(&culet_pages_lock);
    culet_os_refuse_purge = fork_while_purging;
    /* The kernel has refused: everything stays as it was, and is not worth another attempt. */
    CHECK_EQUAL(culet_pages_purge_unlocked(0), 0);
    CHECK_EQUAL(culet_pages_stats().dirty, 32);
    CHECK_EQUAL(culet_pages_idle(false), 0);
    check_counts();
}

static _Atomic int waiting;

static void *get_all_free(void *unused)
{
    struct run run;

    culet_lock(&culet_pages_lock);
    atomic_store(&waiting, 1);
    CHECK(get(&run, 32, CULET_PAGE), "a request fails because of a purge");
    CHECK_EQUAL(run.start, purged_range);
    CHECK_EQUAL(culet_pages_stats().segments, 1);
    culet_unlock(&culet_pages_lock);
    return unused;
}

static pthread_t requester;

/* Long enough for the other thread to wait, and for its bounded wait to end. */
static bool start_requester(void)
{
    CHECK(pthread_create(&requester, NULL, get_all_free, NULL) == 0, "no thread");
    while (!atomic_load(&waiting))
        usleep(100);
    usleep(50000);
    return false;
}

TEST(a_request_waits_for_purged_pages_where_there_is_no_other_memory)
{
    culet_lock(&culet_pages_lock);
    leave_dirty(32);
    culet_unlock(&culet_pages_lock);
    culet_os_refuse = resident_refuse_all;
    culet_os_refuse_purge = start_requester;
    CHECK_EQUAL(culet_pages_purge_unlocked(0), 32 * CULET_PAGE);
    CHECK(pthread_join(requester, NULL) == 0, "no thread");
    check_counts();
}

static _Atomic bool ended;

static void *purge_always(void *unused)
{
    uint64_t seed = 7;

    while (!atomic_load(&ended))
        culet_pages_purge_unlocked(check_random(&seed) % 300);
    return unused;
}

TEST(random_operations_beside_purging_threads_agree_with_a_model)
{
    pthread_t thread[2];
    uint64_t seed = 11;

    for (unsigned t = 0; t < 2; t++)
        CHECK(pthread_create(&thread[t], NULL, purge_always, NULL) == 0, "no thread");
    for (unsigned i = 0; i < 6000; i++) {
        culet_lock(&culet_pages_lock);
        step(&seed, false);
        if (i % 16 == 0)
            check_counts();
        culet_unlock(&culet_pages_lock);
    }
    atomic_store(&ended, true);
    for (unsigned t = 0; t < 2; t++)
        CHECK(pthread_join(thread[t], NULL) == 0, "no thread");
    culet_lock(&culet_pages_lock);
    for (unsigned i = 0; i < RUNS; i++)
        if (runs[i].start)
            put(&runs[i]);
    culet_unlock(&culet_pages_lock);
    culet_pages_purge_unlocked(0);
    check_counts();
    CHECK_EQUAL(culet_pages_stats().segments, 1);
    CHECK_EQUAL(culet_pages_stats().dirty, 0);
}

CHECK_MAIN
