/* The page heap against a model: runs do not overlap, what is said to be zero is, figures add up, segments go. */
#include "pages.h"
#include "check.h"
#include "lock.h"
#include "meta.h"
#include "resident.h"

#define RUNS 600

struct run {
    uintptr_t start;
    size_t granules;
    uint32_t segment;
    uint64_t mark;
};

static struct run runs[RUNS];
static size_t used;
static uint64_t marks;

/* Marks the first and the last word of every granule from the `from`-th on. */
static void mark(struct run *run, size_t from)
{
    for (size_t i = from; i < run->granules; i++) {
        uint64_t *granule = (uint64_t *)(run->start + i * CULET_GRANULE);
        granule[0] = granule[CULET_GRANULE / 8 - 1] = run->mark + i;
    }
}

static void check_marks(const struct run *run)
{
    for (size_t i = 0; i < run->granules; i++) {
        const uint64_t *granule = (const uint64_t *)(run->start + i * CULET_GRANULE);
        CHECK(granule[0] == run->mark + i && granule[CULET_GRANULE / 8 - 1] == run->mark + i,
              "granule %zu of a run of %zu was changed", i, run->granules);
    }
}

static void check_zero(uintptr_t start, size_t bytes)
{
    const uint64_t *words = (const uint64_t *)start;

    for (size_t i = 0; i < bytes / 8; i++)
        if (words[i])
            CHECK(false, "%zu bytes into a run said to be zero", i * 8);
}

static void check_figures(void)
{
    struct culet_pages_figures figures = culet_pages_figures();

    culet_pages_check();
    CHECK_EQUAL(figures.used, used);
    CHECK_EQUAL(figures.used + figures.free, figures.segments * CULET_SEGMENT_GRANULES);
    CHECK(figures.dirty <= figures.free, "%zu of %zu free granules are dirty", figures.dirty, figures.free);
}

static bool get(struct run *run, size_t granules, size_t alignment)
{
    bool zeroed;

    run->start = culet_pages_get(granules, alignment, &run->segment, &zeroed);
    if (!run->start)
        return false;
    run->granules = granules;
    run->mark = ++marks << 32;
    used += granules;
    CHECK(run->start % alignment == 0, "%p is not aligned to %zu", (void *)run->start, alignment);
    uintptr_t segment = culet_pages_segment(run->segment);
    CHECK(run->start >= segment && run->start + granules * CULET_GRANULE <= segment + CULET_SEGMENT_BYTES,
          "a run lies outside its segment");
    if (zeroed)
        check_zero(run->start, granules * CULET_GRANULE);
    mark(run, 0);
    return true;
}

static void put(struct run *run)
{
    check_marks(run);
    culet_pages_put(run->segment, run->start, run->granules, ~UINT64_C(0));
    used -= run->granules;
    run->start = 0;
}

static void extend(struct run *run, size_t more)
{
    if (!culet_pages_extend(run->segment, run->start, run->granules, more))
        return;
    run->granules += more;
    used += more;
    mark(run, run->granules - more);
}

/* Gives back the upper half. */
static void shorten(struct run *run)
{
    size_t less = run->granules / 2;

    if (!less)
        return;
    check_marks(run);
    run->granules -= less;
    used -= less;
    culet_pages_put(run->segment, run->start + run->granules * CULET_GRANULE, less, ~UINT64_C(0));
}

static void purge(uint64_t *seed)
{
    size_t keep = check_random(seed) % 400, before = culet_pages_figures().purged_bytes;
    size_t dirty = culet_pages_figures().dirty, returned = culet_pages_purge(keep, SIZE_MAX);
    struct culet_pages_figures figures = culet_pages_figures();

    CHECK_EQUAL(figures.purged_bytes - before, returned);
    CHECK_EQUAL((dirty - figures.dirty) * CULET_GRANULE, returned);
    if (culet_os_page() == CULET_GRANULE)
        CHECK(figures.dirty <= keep, "%zu granules are dirty, %zu may be", figures.dirty, keep);
}

static void step(uint64_t *seed)
{
    struct run *run = &runs[check_random(seed) % RUNS];
    unsigned what = check_random(seed) % 100;

    if (!run->start) {
        size_t granules = what < 60 ? 1 + check_random(seed) % 16 : 1 + check_random(seed) % 256;
        size_t alignment = CULET_GRANULE << (what % 4 ? 0 : check_random(seed) % 9);
        CHECK(get(run, granules, alignment), "no memory");
    } else if (what < 70) {
        put(run);
    } else if (what < 85) {
        extend(run, 1 + check_random(seed) % 32);
    } else if (what < 99) {
        shorten(run);
    } else {
        purge(seed);
    }
}

TEST(random_operations_agree_with_a_model)
{
    culet_lock(&culet_pages_lock);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        uint64_t state = seed;
        for (unsigned i = 0; i < 4000; i++) {
            step(&state);
            if (i % 16 == 0)
                check_figures();
        }
        for (unsigned i = 0; i < RUNS; i++)
            if (runs[i].start)
                put(&runs[i]);
        check_figures();
        CHECK(culet_pages_figures().segments <= 1, "%zu segments are left of nothing", culet_pages_figures().segments);
    }
}

TEST(the_lowest_fitting_run_of_a_segment_is_taken)
{
    struct run run[64], again;

    culet_lock(&culet_pages_lock);
    for (unsigned i = 0; i < 64; i++)
        CHECK(get(&run[i], 8, CULET_GRANULE), "no memory");
    for (unsigned i = 1; i < 64; i++)
        CHECK_EQUAL(run[i].start, run[i - 1].start + 8 * CULET_GRANULE);
    uintptr_t ten = run[10].start, twenty = run[20].start;
    put(&run[20]);
    put(&run[21]);
    put(&run[10]);
    CHECK(get(&again, 9, CULET_GRANULE) && again.start == twenty, "nine granules fit where twenty was");
    CHECK(get(&again, 8, CULET_GRANULE) && again.start == ten, "eight granules fit where ten was");
    check_figures();
}

TEST(clean_granules_stay_clean)
{
    uint32_t segment;
    bool zeroed;

    culet_lock(&culet_pages_lock);
    uintptr_t start = culet_pages_get(16, CULET_GRANULE, &segment, &zeroed);
    CHECK(start && zeroed, "fresh memory is zero");
    memset((void *)(start + 5 * CULET_GRANULE), 1, CULET_GRANULE);
    culet_pages_put(segment, start, 16, UINT64_C(1) << 5);
    CHECK_EQUAL(culet_pages_figures().dirty, 1);
    CHECK(culet_pages_get(5, CULET_GRANULE, &segment, &zeroed) == start && zeroed, "the granules before are clean");
    CHECK(culet_pages_get(11, CULET_GRANULE, &segment, &zeroed) == start + 5 * CULET_GRANULE, "not the lowest");
    CHECK(!zeroed, "a run with a dirty granule was said to be zero");
    CHECK_EQUAL(culet_pages_figures().dirty, 0);
    culet_pages_check();
}

TEST(purged_granules_are_not_resident_and_read_as_zeros)
{
    struct run run, beside[16];
    size_t page = culet_os_page();

    culet_lock(&culet_pages_lock);
    CHECK(get(&run, 96, CULET_GRANULE), "no memory");
    /* So much in use that 96 granules may be kept. */
    for (unsigned i = 0; i < 16; i++)
        CHECK(get(&beside[i], 256, CULET_GRANULE), "no memory");
    uintptr_t start = run.start;
    put(&run);
    size_t before = resident_bytes(start, 96 * CULET_GRANULE);
    CHECK(before > 0, "nothing was resident");
    CHECK(culet_pages_purge(0, SIZE_MAX) >= 96 * CULET_GRANULE - 2 * page, "too little came back");
    CHECK_EQUAL(resident_bytes(start, 96 * CULET_GRANULE), 0);
    for (unsigned i = 0; i < 16; i++)
        check_marks(&beside[i]);
    check_zero((start + page - 1) & ~(page - 1), 95 * CULET_GRANULE & ~(page - 1));
    check_figures();
}

TEST(freed_memory_is_kept_within_bounds)
{
    struct run run[40];

    culet_lock(&culet_pages_lock);
    for (unsigned i = 0; i < 40; i++)
        CHECK(get(&run[i], 256, CULET_GRANULE), "no memory");
    for (unsigned i = 0; i < 40; i++) {
        put(&run[i]);
        struct culet_pages_figures figures = culet_pages_figures();
        CHECK(figures.dirty <= 32 + figures.used / 32 + culet_os_page() / CULET_GRANULE,
              "%zu granules stay resident while %zu are used", figures.dirty, figures.used);
    }
    CHECK(culet_pages_figures().segments <= 1, "%zu segments are left", culet_pages_figures().segments);
}

TEST(a_run_is_lengthened_only_into_free_granules)
{
    struct run first, second;

    culet_lock(&culet_pages_lock);
    CHECK(get(&first, 4, CULET_GRANULE) && get(&second, 4, CULET_GRANULE), "no memory");
    CHECK(!culet_pages_extend(first.segment, first.start, 4, 1), "lengthened into another run");
    put(&second);
    CHECK(culet_pages_extend(first.segment, first.start, 4, 4), "not lengthened into free granules");
    used += 4;
    CHECK(!culet_pages_extend(first.segment, first.start, 8, CULET_SEGMENT_GRANULES - 7), "beyond the segment");
    CHECK(culet_pages_extend(first.segment, first.start, 8, CULET_SEGMENT_GRANULES - 8), "up to the segment's end");
    used += CULET_SEGMENT_GRANULES - 8;
    CHECK(!culet_pages_extend(first.segment, first.start, CULET_SEGMENT_GRANULES, 1), "behind the last granule");
    check_figures();
}

TEST(refused_memory_changes_nothing)
{
    struct run run[5];
    unsigned got = 0;

    culet_lock(&culet_pages_lock);
    CHECK(get(&run[got++], 256, CULET_GRANULE), "no memory");
    culet_os_refuse = resident_refuse_all;
    while (got < 5 && get(&run[got], 256, CULET_GRANULE))
        got++;
    CHECK_EQUAL(got, 4); /* the rest of the first segment */
    check_figures();
    /* The descriptor of a segment that could not be had is not lost, however often it is tried. */
    for (unsigned i = 0; i < 2000; i++)
        CHECK(!get(&run[4], 256, CULET_GRANULE), "a segment out of nothing");
    CHECK(culet_meta_get(CULET_META_SEGMENT), "the descriptors are used up");
    check_figures();
    culet_os_refuse = NULL;
    CHECK(get(&run[4], 256, CULET_GRANULE), "no memory");
    CHECK_EQUAL(culet_pages_figures().segments, 2);
    for (unsigned i = 0; i < 5; i++)
        put(&run[i]);
    check_figures();
}

CHECK_MAIN
