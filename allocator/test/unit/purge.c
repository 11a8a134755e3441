/* Purges: what they return, and that other threads, forks and refusals meet no block that a purge has taken. */
#include "purge.h"

#include "arena.h"
#include "bin.h"
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "heap_counts.h"
#include "pagemap.h"
#include "reclaim_policy.h"
#include "resident.h"
#include "slab.h"
#include "threads.h"
#include "wakeup.h"

#include <sched.h>

#define BLOCKS 60000

static unsigned char *block[BLOCKS];

static struct culet_slab *slab_of(void *of)
{
    return (struct culet_slab *)culet_pagemap_span((uintptr_t)of);
}

static unsigned char *get(size_t bytes, unsigned char mark)
{
    unsigned char *got = culet_malloc(bytes);

    CHECK(got, "no memory");
    memset(got, mark, bytes);
    return got;
}

static void check_filled(const unsigned char *at, size_t bytes, unsigned char mark)
{
    if (at[0] != mark || memcmp(at, at + 1, bytes - 1) != 0)
        CHECK(false, "a block of %zu bytes was changed", bytes);
}

/* Blocks of a size, of which one in `keep` is left. */
static void burst(size_t bytes, unsigned keep)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        block[i] = get(bytes, (unsigned char)(i % 251 + 1));
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % keep) {
            culet_free(block[i]);
            block[i] = NULL;
        }
}

static void check_burst(size_t bytes)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (block[i])
            check_filled(block[i], bytes, (unsigned char)(i % 251 + 1));
}

static void free_burst(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        culet_free(block[i]);
        block[i] = NULL;
    }
}

/* A heap that only the test purges. */
static void begin_without_scavenger(void)
{
    culet_free(culet_malloc(1));
    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_UNAVAILABLE);
}

/* A slab of 512-byte blocks, all live, of which the last unit is current. */
static const struct culet_class *fill_current_slab(void)
{
    const struct culet_class *c = &culet_classes[culet_size_class(512)];

    for (unsigned i = 0; i < c->count; i++)
        block[i] = get(512, 1);
    return c;
}

static size_t purge_all(void)
{
    struct culet_purged done = culet_purge(false);

    CHECK(!done.left, "a purge of all pages left some");
    return done.bytes;
}

/* Resident pages of slabs that no block overlaps. A purge destroys the slabs without a live block, and returns the pages of
 * the others. */
struct idle {
    size_t bytes;
    size_t to_return;        /* by a purge of all pages */
    size_t to_return_unused; /* by one of the pages that were not used since the previous one */
};

static void add_idle(struct culet_slab *slab, void *data)
{
    struct idle *idle = data;
    size_t page = culet_os_page_bytes(), bytes = 0;
    uint64_t dirty = slab->dirty;

    slab->dirty = ~UINT64_C(0) >> (64 - culet_slab_class(slab)->pages);
    uint64_t free = culet_slab_free_pages(slab);
    slab->dirty = dirty;
    for (unsigned i = 0; i < culet_slab_class(slab)->pages; i += (unsigned)(page / CULET_PAGE))
        if (free >> i & 1)
            bytes += resident_bytes(culet_slab_pages(slab) + i * CULET_PAGE, page);
    idle->bytes += bytes;
    if (culet_slab_is_free(slab))
        return;
    idle->to_return += bytes;
    if (slab->span.purge_epoch != culet_arena(slab->span.arena)->purge_epoch)
        idle->to_return_unused += bytes;
}

static struct idle idle_now(void)
{
    struct idle idle = {0};
    struct culet_arena *arena = culet_arena_enter();

    culet_bin_finish_frees(arena);
    culet_arena_leave(arena);
    culet_lock(&culet_pages_lock);
    culet_slab_each(add_idle, &idle);
    culet_unlock(&culet_pages_lock);
    return idle;
}

static size_t idle_in_slabs(void)
{
    return idle_now().bytes;
}

TEST(a_purge_returns_all_free_pages_of_slabs)
{
    static const size_t sizes[] = {16, 48, 112, 500, 1000, 1500, 3000, 5000, 9400};

    culet_free(culet_malloc(1));
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        atomic_store(&culet_scavenger_state, CULET_SCAVENGER_UNAVAILABLE);
        burst(sizes[s], 1000);
        size_t before = idle_now().to_return;
        CHECK(before > (size_t)5 * CULET_SLAB_PAGES * CULET_PAGE, "only %zu bytes to return", before);
        CHECK_EQUAL(purge_all(), before);
        CHECK_EQUAL(idle_in_slabs(), 0);
        CHECK_EQUAL(purge_all(), 0);
        check_burst(sizes[s]);
        culet_heap_check();
        /* The returned pages serve again, and go back again. */
        for (unsigned i = 0; i < BLOCKS; i++)
            if (!block[i])
                block[i] = get(sizes[s], (unsigned char)(i % 251 + 1));
        check_burst(sizes[s]);
        free_burst();
        purge_all();
        CHECK_EQUAL(idle_in_slabs(), 0);
        culet_heap_check();
    }
}

/* The holder takes blocks of its current unit after the purge; their pages are dirty again. */
TEST(pages_of_the_current_unit_are_returned_again)
{
    enum { EACH = 8 };
    unsigned char *kept = get(4000, 1), *more[EACH];

    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < EACH; i++)
            more[i] = get(4000, 2);
        for (unsigned i = 0; i < EACH; i++)
            culet_free(more[i]);
        size_t before = idle_in_slabs(), returned = purge_all();
        /* Pages of the unit that no block has touched may be resident, too. */
        CHECK(before > 0 && returned >= before, "%zu of %zu bytes went back", returned, before);
        CHECK_EQUAL(idle_in_slabs(), 0);
    }
    check_filled(kept, 4000, 1);
}

/* The current slabs of many classes are not listed, as they have no other unit. */
TEST(many_current_slabs_are_purged_in_several_slices)
{
    static unsigned char *kept[CULET_CLASSES];
    unsigned unlisted = 0;

    begin_without_scavenger();
    atomic_store(&culet_wakeup_large, true);
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        const struct culet_class *c = &culet_classes[klass];
        if (klass <= CULET_SIZES)
            for (unsigned i = 0; i < c->count; i++)
                block[i] = get(c->size, 7);
        else
            for (unsigned i = 0; i < c->count; i++)
                memset(block[i] = culet_calloc(1, c->size), 7, c->size);
        /* The last unit is current; it keeps its first block. */
        unsigned first = (culet_class_units(c) - 1u) * CULET_UNIT;
        kept[klass] = block[first];
        for (unsigned i = first + 1; i < c->count; i++)
            culet_free(block[i]);
        struct culet_slab *slab = culet_arena(0)->current[klass].slab;
        CHECK(slab == slab_of(kept[klass]), "class %u: another slab is current", klass);
        unlisted += !slab->available && culet_slab_free_pages(slab);
    }
    CHECK(unlisted > CULET_PURGE_SLICE_SLABS || culet_os_page_bytes() > CULET_PAGE, "only %u slabs", unlisted);
    size_t before = idle_in_slabs();
    CHECK_EQUAL(purge_all(), before);
    CHECK_EQUAL(idle_in_slabs(), 0);
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        check_filled(kept[klass], culet_classes[klass].size, 7);
    culet_heap_check();
}

/* Between two slices: blocks of the slabs at the front of the list, which have one free block each. */
static bool use_up_the_front(void)
{
    static bool done;

    for (unsigned i = 0; i < 20 && !done; i++)
        get(512, 1);
    done = true;
    return false;
}

TEST(slabs_that_are_used_up_during_a_purge_hide_no_others)
{
    begin_without_scavenger();
    culet_thread.refills = UINT32_MAX; /* no check of a small heap */
    unsigned count = culet_classes[culet_size_class(512)].count, freed;
    for (unsigned i = 0; i < BLOCKS; i++)
        block[i] = get(512, 1);
    for (unsigned first = 0; first + count <= BLOCKS; first += count) {
        freed = first / count % 2 ? count / 2 : 1;
        for (unsigned i = 0; i < freed; i++)
            culet_free(block[first + i]);
    }
    CHECK(idle_in_slabs() > 0, "no pages to return");
    culet_os_refuse_purge = use_up_the_front;
    purge_all();
    culet_os_refuse_purge = NULL;
    CHECK_EQUAL(idle_in_slabs(), 0);
    culet_heap_check();
}

/* Of a slab that a purge has taken the last page of, on which no block lies: its blocks. Another slab gets its descriptor
 * if it is destroyed. */
static const struct culet_class *tailed, *other;

static bool free_the_slab(void)
{
    static bool done;

    for (unsigned i = 1; i < tailed->count && !done; i++)
        culet_free(block[i]);
    for (unsigned i = 0; i < other->count && !done; i++)
        block[i] = get(other->size, 3);
    done = true;
    return false;
}

static size_t tail_pages(const struct culet_class *c)
{
    return c->pages - ((size_t)c->count * c->size + CULET_PAGE - 1) / CULET_PAGE;
}

TEST(a_slab_whose_tail_is_purged_is_not_destroyed)
{
    begin_without_scavenger();
    culet_thread.refills = UINT32_MAX; /* no check of a small heap */
    for (unsigned klass = culet_size_class(CULET_SMALL_MAX); klass; klass--)
        if (tail_pages(&culet_classes[klass]))
            tailed = &culet_classes[klass];
        else if (culet_classes[klass].pages == CULET_SLAB_PAGES)
            other = &culet_classes[klass];
    CHECK(tailed && other, "there are no such classes");
    for (unsigned i = 0; i <= tailed->count; i++)
        block[i] = get(tailed->size, 1);
    struct culet_slab *slab = slab_of(block[1]);
    CHECK(slab != slab_of(block[tailed->count]), "the slab is current");
    culet_free(block[0]);
    size_t tail = tail_pages(tailed);
    slab->dirty = (uint32_t)(((UINT64_C(1) << tail) - 1) << (tailed->pages - tail));
    CHECK(culet_slab_free_pages(slab) || culet_os_page_bytes() > CULET_PAGE, "nothing to return");
    culet_os_refuse_purge = free_the_slab;
    purge_all();
    culet_os_refuse_purge = NULL;
    for (unsigned i = 0; i < other->count && culet_os_page_bytes() == CULET_PAGE; i++) {
        struct culet_slab *in = slab_of(block[i]);
        CHECK(culet_slab_is_live(in, culet_slab_index(in, (uintptr_t)block[i]).block), "block %u is free", i);
        check_filled(block[i], other->size, 3);
    }
    culet_heap_check();
}

TEST(an_idle_purge_leaves_pages_that_were_used_lately)
{
    begin_without_scavenger();
    culet_thread.refills = UINT32_MAX; /* no check of a small heap */
    burst(100, 1000);
    size_t idle = idle_in_slabs(), unused = idle_now().to_return;

    struct culet_purged done = culet_purge(true);
    CHECK(done.left && done.bytes == 0, "%zu bytes that were used lately were returned", done.bytes);
    CHECK_EQUAL(idle_in_slabs(), idle);
    done = culet_purge(true);
    CHECK(!done.left, "idle pages were left");
    CHECK_EQUAL(done.bytes, unused);
    CHECK_EQUAL(idle_in_slabs(), 0);
    done = culet_purge(true);
    CHECK(!done.left && !done.bytes, "there is something to return again");

    /* A slab that was used in between is left out, no other one. */
    burst(200, 1000);
    culet_purge(true);
    unsigned char *used = NULL;
    for (unsigned i = 0; i <= CULET_UNIT; i++) /* the current unit is used up, and the next one current */
        used = get(200, 1);
    CHECK_EQUAL(slab_of(used)->span.purge_epoch, culet_arena(0)->purge_epoch);
    idle = idle_now().to_return;
    unused = idle_now().to_return_unused;
    CHECK(unused > 0 && unused < idle, "%zu of %zu bytes are unused", unused, idle);
    done = culet_purge(true);
    CHECK(done.left, "the pages of a slab that was used were returned");
    CHECK_EQUAL(done.bytes, unused);
    CHECK_EQUAL(idle_in_slabs(), idle - unused);
    check_burst(200);
}

/* The current slab is not listed, as its other units are full. The scavenger sleeps unless something is left. */
TEST(an_idle_purge_comes_back_for_the_current_unit)
{
    begin_without_scavenger();
    const struct culet_class *c = fill_current_slab();
    for (unsigned i = (culet_class_units(c) - 1u) * CULET_UNIT + 1; i < c->count; i++)
        culet_free(block[i]);
    struct culet_slab *slab = slab_of(block[0]);
    CHECK(!slab->available && culet_arena(0)->current[slab->span.klass].slab == slab,
          "the slab is not the current one");
    size_t unused = idle_now().to_return;
    CHECK(unused > 0 || culet_os_page_bytes() > CULET_PAGE, "nothing to return");

    struct culet_purged done = culet_purge(true);
    CHECK(done.bytes == 0 && done.left == (unused > 0), "%zu bytes were returned, %s is left", done.bytes,
          done.left ? "something" : "nothing");
    done = culet_purge(true);
    CHECK_EQUAL(done.bytes, unused);
    CHECK_EQUAL(idle_in_slabs(), 0);
}

/* Otherwise the scavenger would never sleep again. */
TEST(a_listed_current_slab_without_a_free_page_leaves_nothing)
{
    begin_without_scavenger();
    const struct culet_class *c = fill_current_slab();
    culet_free(block[0]);
    culet_free(block[c->count - 1]);
    struct culet_slab *slab = slab_of(block[1]);
    CHECK(culet_arena(0)->current[slab->span.klass].slab == slab, "the slab is not the current one");
    culet_purge(true);
    CHECK(slab->available, "the slab is not listed");
    struct culet_purged done = culet_purge(true);
    CHECK(!done.left && !done.bytes, "%zu bytes were returned, %s is left", done.bytes,
          done.left ? "something" : "nothing");
}

TEST(purges_destroy_free_slabs)
{
    struct heap_counts counts;

    culet_free(culet_malloc(1));
    burst(300, 1);
    free_burst();
    count_heap(&counts);
    size_t before = counts.pages.used;
    purge_all();
    count_heap(&counts);
    CHECK_EQUAL(counts.pages.used, 0);
    CHECK(before > 0, "there were no slabs");
}

static void *free_all(void *unused)
{
    free_burst();
    return unused;
}

TEST(purges_collect_remote_frees)
{
    struct heap_counts counts;

    culet_free(culet_malloc(1));
    for (unsigned i = 0; i < BLOCKS; i++)
        block[i] = get(300, 1);
    run_elsewhere(free_all, NULL);
    count_heap(&counts);
    CHECK_EQUAL(counts.used_bytes, 0);
    CHECK(counts.pages.used > 0, "the slabs are gone before they were collected");
    purge_all();
    count_heap(&counts);
    CHECK_EQUAL(counts.pages.used, 0);
    culet_heap_check();
}

/* Its blocks have to come back nevertheless, and its pages count as not zero. */
TEST(a_purge_that_the_kernel_refuses_loses_no_block)
{
    struct heap_counts before, after;
    static unsigned char *got[CULET_UNIT * CULET_UNITS];
    unsigned char *kept = get(64, 1);
    struct culet_slab *slab = slab_of(kept);
    unsigned count = culet_slab_class(slab)->count;

    for (unsigned i = 1; i < count; i++)
        got[i] = get(64, 2);
    for (unsigned i = 1; i < count; i++)
        culet_free(got[i]);
    uint32_t dirty = slab->dirty;
    count_heap(&before);
    culet_os_refuse_purge = resident_refuse_all;
    CHECK_EQUAL(purge_all(), 0);
    culet_os_refuse_purge = NULL;
    count_heap(&after);
    CHECK_EQUAL(after.used_bytes, before.used_bytes);
    CHECK_EQUAL(slab->dirty, dirty);
    culet_heap_check();
    for (unsigned i = 1; i < count; i++) {
        CHECK(slab_of(got[i] = culet_malloc(64)) == slab, "block %u was lost", i);
        check_filled(got[i], 64, 2);
    }
    for (unsigned i = 1; i < count; i++)
        culet_free(got[i]);
    CHECK(purge_all() > 0 && idle_in_slabs() == 0, "pages stay");
    check_filled(kept, 64, 1);
}

/* ---- when memory is out ---- */

#define FEW 3000
#define SMALL 1000

/* Descriptors of large blocks take memory, and there is none once it is used up: so some are made here. The pages serve
 * the small blocks. */
static void get_few(void)
{
    for (unsigned i = 0; i < FEW / 50; i++)
        block[i] = get(CULET_SMALL_MAX + 1, 1);
    for (unsigned i = 0; i < FEW / 50; i++)
        culet_free(block[i]);
    for (unsigned i = 0; i < FEW; i++)
        block[i] = get(SMALL, 1);
}

static void free_few(unsigned keep)
{
    for (unsigned i = 0; i < FEW; i++)
        if (block[i] && (!keep || i % keep)) {
            culet_free(block[i]);
            block[i] = NULL;
        }
}

static void *free_few_in_thread(void *unused)
{
    free_few(0);
    return unused;
}

/* Large blocks, which no slab's free block can serve, until a request fails. */
static void use_memory_up(void)
{
    struct heap_counts counts;
    size_t taken = 0;

    culet_os_refuse = resident_refuse_all;
    for (void *got; (got = culet_malloc(100000)); taken += 100000)
        memset(got, 2, 100000);
    culet_os_refuse = NULL;
    count_heap(&counts);
    CHECK_EQUAL(counts.bins[culet_size_class(SMALL)].slabs, 0);
    CHECK(taken >= FEW * SMALL / 4 * 3, "out of memory after %zu of %u freed bytes", taken, FEW * SMALL);
    culet_heap_check();
}

TEST(blocks_that_other_threads_freed_are_used_when_memory_is_out)
{
    struct heap_counts counts;

    get_few();
    run_elsewhere(free_few_in_thread, NULL);
    count_heap(&counts);
    CHECK_EQUAL(counts.bins[culet_size_class(SMALL)].remote, FEW);
    use_memory_up();
}

static _Atomic bool purge_begun, given_up;
static _Thread_local bool purges;

/* The purge of that thread ends once a request waits for it. */
static bool wait_for_request(void)
{
    if (purges)
        atomic_store(&purge_begun, true);
    while (purges && !(atomic_load(&culet_purge_lock.state) & CULET_LOCK_WAITERS) && !atomic_load(&given_up))
        sched_yield();
    return false;
}

static void *purge_once(void *unused)
{
    purges = true;
    culet_purge(false);
    return unused;
}

TEST(a_purge_in_progress_is_waited_for_when_memory_is_out)
{
    pthread_t purger;

    get_few();
    free_few(60);
    culet_os_refuse_purge = wait_for_request;
    CHECK(pthread_create(&purger, NULL, purge_once, NULL) == 0, "no thread");
    while (!atomic_load(&purge_begun))
        sched_yield();
    free_few(0);
    use_memory_up();
    atomic_store(&given_up, true);
    pthread_join(purger, NULL);
}

/* ---- forks; rings.c and fuzz.c purge while other threads use the heap ---- */

#ifndef __SANITIZE_THREAD__ /* it does not support forks of a process with threads */
static _Atomic bool stop;

static void *purge_on(void *unused)
{
    while (!atomic_load(&stop)) {
        culet_purge(false);
        sched_yield();
    }
    return unused;
}

/* No child misses the blocks of a purge in progress, and each can purge. */
TEST(forks_wait_for_a_purge)
{
    pthread_t purger;
    struct heap_counts counts;

    culet_free(culet_malloc(1));
    CHECK(pthread_create(&purger, NULL, purge_on, NULL) == 0, "no thread");
    for (unsigned round = 0; round < 60; round++) {
        for (unsigned i = 0; i < 4000; i++)
            block[i] = get(100 + round, 5);
        for (unsigned i = 0; i < 4000; i++)
            if (i % 500) {
                culet_free(block[i]);
                block[i] = NULL;
            }
        pid_t child = fork();
        if (child == 0) {
            alarm(200);
            culet_heap_check();
            free_burst();
            count_heap(&counts);
            CHECK_EQUAL(counts.used_bytes, 0);
            culet_malloc_trim(0);
            count_heap(&counts);
            CHECK_EQUAL(counts.pages.used, 0);
            _exit(0);
        }
        check_child(child);
        free_burst();
    }
    atomic_store(&stop, true);
    pthread_join(purger, NULL);
}
#endif

/* ---- growth ---- */

TEST(a_growing_heap_returns_as_many_free_pages_of_slabs)
{
    static unsigned char *grown[5000];
    const size_t bytes = 7000, growth = sizeof grown / sizeof *grown * bytes;

    /* As if a scavenger ran, which would purge as well. */
    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_AWAKE);
    burst(1500, 40);
    size_t before = idle_in_slabs();
    CHECK(before > 2 * growth, "only %zu bytes are idle", before);
    for (unsigned i = 0; i < 5000; i++)
        grown[i] = get(bytes, 2);
    size_t returned = before - idle_in_slabs();
    /* The first purge comes later, because there was nothing to return in the burst. */
    CHECK(returned > growth / 2, "%zu bytes went back while the heap grew by %zu", returned, growth);
    CHECK(returned < growth + (growth / 4), "%zu bytes went back while the heap grew by %zu", returned, growth);
    for (unsigned i = 0; i < 5000; i++) {
        check_filled(grown[i], bytes, 2);
        culet_free(grown[i]);
    }
    check_burst(1500);
    free_burst();
    culet_heap_check();
}

/* ---- small heaps ---- */

TEST(a_small_heap_purges_itself)
{
    size_t kept;

    CHECK_EQUAL(atomic_load(&culet_scavenger_state), CULET_SCAVENGER_NONE);
    for (unsigned i = 0; i < 2000; i++)
        block[i] = get(1000, 1);
    for (unsigned i = 0; i < 2000; i++)
        if (i % 200)
            culet_free(block[i]);
    kept = idle_in_slabs();
    CHECK(kept > 4 * CULET_SMALL_HEAP_KEEP_BYTES, "only %zu bytes are idle", kept);
    /* One of so many slow-path requests does it; the page heap keeps what was freed since. */
    for (unsigned i = 0; i < CULET_SMALL_HEAP_CHECK_REFILLS; i++)
        culet_free(get(40000, 1));
    CHECK_EQUAL(idle_in_slabs(), 0);
    culet_lock(&culet_pages_lock);
    size_t dirty = culet_pages_stats().dirty;
    culet_unlock(&culet_pages_lock);
    CHECK(dirty <= CULET_SMALL_HEAP_KEEP_PAGES + 40000 / CULET_PAGE + 1, "%zu pages are dirty", dirty);
    CHECK_EQUAL(atomic_load(&culet_scavenger_state), CULET_SCAVENGER_NONE);
    for (unsigned i = 0; i < 2000; i += 200)
        check_filled(block[i], 1000, 1);
    culet_heap_check();
}

/* The check after so many requests as the last one has visited slabs: 8 MiB of slabs, each listed for one free block. */
TEST(checks_of_a_small_heap_cost_a_constant_per_request)
{
    unsigned slabs = 0;

    for (unsigned i = 0; i < 8000; i++)
        block[i] = get(1000, 1);
    for (unsigned i = 1; i < 8000; i++)
        if (slab_of(block[i]) != slab_of(block[i - 1]))
            culet_free(block[i - 1]), slabs++;
    CHECK(slabs > 2 * CULET_SMALL_HEAP_CHECK_REFILLS, "only %u slabs", slabs);
    culet_thread.refills = 0;
    culet_free(get(40000, 1));
    CHECK(culet_thread.refills >= slabs, "%u requests up to the next check, of %u slabs", culet_thread.refills, slabs);
}

TEST(only_arenas_that_were_used_count_as_used)
{
    CHECK(!culet_purge_anything_used(), "nobody has used an arena");
    culet_free(culet_malloc(100));
    CHECK(culet_purge_anything_used(), "an allocation does not count as a use");
    culet_purge(true);
    CHECK(!culet_purge_anything_used(), "nothing was used since the purge");
    burst(100, 1000);
    CHECK(culet_purge_anything_used(), "frees do not count as a use");
}

/* A slab of 512-byte blocks, all live; another one has the current unit. Returns the blocks in a slab. */
static unsigned fill_slab(void)
{
    culet_heap_setup();
    unsigned count = culet_classes[culet_size_class(512)].count;

    /* No page of a unit in use is left untouched. */
    for (unsigned i = 0; i < count + CULET_UNIT; i++)
        block[i] = get(512, 1);
    CHECK(slab_of(block[0]) == slab_of(block[count - 1]) && slab_of(block[0]) != slab_of(block[count]), "other slabs");
    return count;
}

/* As another thread does. */
static void free_remotely(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        struct culet_slab *slab = slab_of(block[i]);
        CHECK(culet_bin_free_remote(slab, culet_slab_index(slab, (uintptr_t)block[i]).block), "it is not live");
        block[i] = NULL;
    }
}

TEST(frees_wake_the_scavenger)
{
    fill_slab();
    culet_purge(true);
    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_ASLEEP);
    for (unsigned i = 1; i < CULET_UNIT; i++)
        culet_free(block[i]);
    CHECK_EQUAL(culet_scavenger_state, CULET_SCAVENGER_ASLEEP);
    culet_free(block[0]);
    CHECK_EQUAL(culet_scavenger_state, CULET_SCAVENGER_AWAKE);
    CHECK(culet_purge_anything_used(), "a unit without a live block does not count as a use");
}

TEST(remote_frees_wake_the_scavenger)
{
    fill_slab();
    culet_purge(true);
    CHECK(!culet_purge_anything_used(), "nothing was used since the purge");
    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_ASLEEP);
    free_remotely(0, 1);
    CHECK_EQUAL(culet_scavenger_state, CULET_SCAVENGER_AWAKE);
    CHECK(culet_purge_anything_used(), "a remote free does not count as a use");
}

TEST(an_idle_purge_leaves_what_it_collects)
{
    unsigned count = fill_slab();

    /* Each unit has a free block, so the collection makes none available. */
    for (unsigned first = 0; first < count; first += CULET_UNIT)
        culet_free(block[first + 1]);
    culet_purge(true);
    for (unsigned first = 0; first < count; first += CULET_UNIT)
        free_remotely(first + 2, first + CULET_UNIT < count ? first + CULET_UNIT : count);
    struct culet_purged done = culet_purge(true);
    size_t unused = idle_now().to_return;
    CHECK(done.bytes == 0 && done.left == (unused > 0), "%zu bytes that were freed lately were returned", done.bytes);
    done = culet_purge(true);
    CHECK_EQUAL(done.bytes, unused);
    CHECK_EQUAL(idle_in_slabs(), 0);
    check_filled(block[0], 512, 1);
}

CHECK_MAIN
