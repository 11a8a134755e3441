/* The page table of a region, compared with a plain array; regions of terabytes. */
#include "regions/regions.h"

#include "check.h"

#include <string.h>

#define SHIFT 12
#define PAGE (UINT64_C(1) << SHIFT)
#define UNITS (PAGE / 8)
#define PAGES 3000u
#define START (UINT64_C(0x7f0000000000) + 40)

static struct culet_regions regions = {.shift = SHIFT, .max_blocks = UINT64_MAX};

/* What the region should have, page by page. */
static struct {
    uint16_t used[PAGES];
    uint8_t states[PAGES];
} plain;

static void use(uint64_t from, uint64_t to, bool add)
{
    for (uint64_t at = from; at < to;) {
        uint64_t page = (at >> SHIFT) - (START >> SHIFT), end = ((at >> SHIFT) + 1) << SHIFT;
        end = end < to ? end : to;
        int64_t units = plain.used[page] + (add ? 1 : -1) * (int64_t)((end - at) / 8);
        plain.used[page] = (uint16_t)(units < 0 ? 0 : units > (int64_t)UNITS ? (int64_t)UNITS : units);
        at = end;
    }
}

static uint8_t state_at(const struct culet_region *region, uint64_t address)
{
    uint64_t index = (address >> SHIFT) - (region->start >> SHIFT);
    struct culet_page_run run = {0};

    if (index < region->pages)
        run = culet_region_page_run(region, index);
    return run.states ? run.states[0] : 0;
}

static void check_alike(const struct culet_region *region)
{
    struct culet_page_run run;

    CHECK_EQUAL(region->pages, ((region->end - 1) >> SHIFT) - (START >> SHIFT) + 1);
    for (uint64_t i = 0; i < region->pages; i += run.count) {
        run = culet_region_page_run(region, i);
        CHECK(run.count > 0 && i + run.count <= region->pages, "a run of %lu pages from %lu on",
              (unsigned long)run.count, (unsigned long)i);
        for (uint64_t n = i; n < i + run.count; n++) {
            uint64_t at = ((START >> SHIFT) + n) << SHIFT;
            CHECK_EQUAL(run.states ? run.states[n - i] : 0, plain.states[n]);
            CHECK_EQUAL(state_at(region, at), plain.states[n]);
            CHECK_EQUAL(run.used ? run.used[n - i] : run.full ? UNITS : 0, plain.used[n]);
            CHECK_EQUAL(culet_region_units(region, at), plain.used[n]);
        }
    }
}

/* A random range: within a page, or over many leaves. */
static struct culet_range random_range(uint64_t *random, const struct culet_region *region)
{
    uint64_t length = region->end - region->start, from = check_random(random) % length & ~UINT64_C(7),
             most = length - from;

    if (check_random(random) % 2 && most > PAGE)
        most = PAGE;
    return (struct culet_range){START + from, START + from + (check_random(random) % (most + 1) & ~UINT64_C(7))};
}

static void set_states(uint64_t *random, struct culet_region *region)
{
    static uint8_t states[PAGES];
    uint64_t first = check_random(random) % region->pages, count = check_random(random) % (region->pages - first + 1);

    for (uint64_t i = 0; i < count; i++)
        states[i] = check_random(random) % 3 ? 0 : CULET_PAGE_PRESENT;
    culet_region_set_states(region, (START >> SHIFT) + first, count, states);
    memcpy(plain.states + first, states, count);
}

static void rewind_to(uint64_t *random, struct culet_region *region)
{
    uint64_t at = START + check_random(random) % (region->end - region->start), page = (at >> SHIFT) - (START >> SHIFT);
    uint16_t units = (uint16_t)(check_random(random) % UNITS);

    culet_region_rewind(region, at, units);
    memset(plain.used + page, 0, (PAGES - page) * sizeof *plain.used);
    plain.used[page] = units;
}

static void resize(uint64_t *random, struct culet_region *region)
{
    uint64_t end = (START + PAGE + check_random(random) % ((PAGES - 2) * PAGE)) & ~UINT64_C(7), pages;

    CHECK(culet_region_resize(&regions, region, end), "it cannot be resized");
    pages = region->pages;
    memset(plain.used + pages, 0, (PAGES - pages) * sizeof *plain.used);
    memset(plain.states + pages, 0, PAGES - pages);
}

TEST(pages_like_a_plain_array)
{
    uint64_t random = 5;
    struct culet_region *region = culet_region_new(&regions, "main", 0, START, START + 1000 * PAGE, false);

    for (unsigned i = 0; i < 3000; i++) {
        struct culet_range range = random_range(&random, region);
        switch (check_random(&random) % 12) {
        case 0:
            resize(&random, region);
            break;
        case 1:
            rewind_to(&random, region);
            break;
        case 2:
        case 3:
            set_states(&random, region);
            break;
        case 4:
        case 5:
        case 6:
            culet_region_unuse(region, range.start, range.end);
            use(range.start, range.end, false);
            break;
        default:
            culet_region_use(region, range.start, range.end);
            use(range.start, range.end, true);
        }
        if (i % 20 == 0)
            check_alike(region);
    }
}

/* A region of terabytes takes memory only for the pages that are present. */
TEST(terabytes_of_nothing)
{
    uint64_t start = UINT64_C(1) << 44, end = start + (UINT64_C(8) << 40);
    uint8_t state = CULET_PAGE_PRESENT;

    for (unsigned full = 0; full < 2; full++) {
        struct culet_regions own = {.shift = SHIFT};
        struct culet_region *region = culet_region_new(&own, "large", 0, start, end, full);
        if (!full)
            culet_region_use(region, start, end);
        culet_region_set_states(region, (end - 1) >> SHIFT, 1, &state);
        struct culet_region_sum sum = culet_region_sum(region);
        CHECK_EQUAL(region->pages, UINT64_C(1) << 31);
        CHECK_EQUAL(sum.used, end - start);
        CHECK_EQUAL(sum.used_resident, PAGE);
        CHECK_EQUAL(sum.free + sum.free_resident, 0);
        CHECK_EQUAL(culet_region_bytes_in_state(region, region->start, region->end, CULET_PAGE_PRESENT), PAGE);
    }
}

/* A block with a mapping of its own that turns out to be free. */
TEST(a_full_region_becomes_empty)
{
    struct culet_regions own = {.shift = SHIFT};
    struct culet_region *region = culet_region_new(&own, "mmapped", 0, PAGE, 1300 * PAGE, true);
    uint8_t states[700];

    memset(states, CULET_PAGE_PRESENT, sizeof states);
    culet_region_set_states(region, 1, sizeof states, states);
    culet_region_empty(region);
    struct culet_region_sum sum = culet_region_sum(region);
    CHECK_EQUAL(sum.used + sum.used_resident, 0);
    CHECK_EQUAL(sum.free, 1299 * PAGE);
    CHECK_EQUAL(sum.free_resident, sizeof states * PAGE);
    culet_region_use(region, 2 * PAGE, 3 * PAGE);
    culet_region_empty(region); /* of a region that is not full nothing changes */
    CHECK_EQUAL(culet_region_sum(region).used, PAGE);
}

/* One page more than 32 bits can count. */
TEST(more_pages_than_fit_32_bits)
{
    struct culet_regions own = {.shift = SHIFT};
    struct culet_region *region = culet_region_new(&own, "large", 0, 4096, 4096 + (UINT64_C(1) << 44) + 4096, true);
    uint8_t state = CULET_PAGE_PRESENT;

    CHECK_EQUAL(region->pages, (UINT64_C(1) << 32) + 1);
    culet_region_set_states(region, (region->end - 1) >> SHIFT, 1, &state);
    CHECK_EQUAL(state_at(region, region->end - 8), CULET_PAGE_PRESENT);
    CHECK_EQUAL(state_at(region, region->start), 0);
    CHECK_EQUAL(state_at(region, region->end + 4096), 0);
}

TEST(regions_do_not_overlap)
{
    struct culet_regions own = {.shift = SHIFT};
    uint64_t random = 3;

    for (unsigned i = 0; i < 3000; i++) {
        uint64_t start = check_random(&random) % 100000 * 8, end = start + check_random(&random) % 100 * 8;
        bool taken = start == end;
        for (size_t n = 0; n < own.count; n++)
            taken |= own.all[n]->start < end && start < own.all[n]->end;
        CHECK_EQUAL(culet_region_new(&own, "main", 0, start, end, true) == NULL, taken);
    }
    for (size_t i = 1; i < own.count; i++)
        CHECK(own.all[i - 1]->end <= own.all[i]->start, "regions are out of order");
    struct culet_region *region = own.all[7];
    CHECK(!culet_region_resize(&own, region, own.all[8]->start + 8), "it grew over the next one");
    CHECK(!culet_region_resize(&own, region, region->start), "it is empty");
    CHECK(culet_region_resize(&own, region, own.all[8]->start), "it cannot grow to the next one");
    CHECK(culet_regions_at(&own, own.all[8]->start - 8) == region, "it is not found");
}

CHECK_MAIN
