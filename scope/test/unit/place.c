/* A region's table of pages against a plain array, and regions of terabytes. */
#include "place.h"

#include "check.h"

#include <string.h>

#define SHIFT 12
#define PAGE (UINT64_C(1) << SHIFT)
#define UNITS (PAGE / 8)
#define PAGES 3000u
#define START (UINT64_C(0x7f0000000000) + 40)

static struct culet_places places = {.shift = SHIFT, .max_chunks = UINT64_MAX};

/* The same, page by page. */
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

static void check_alike(const struct culet_place *place)
{
    struct culet_place_run run;

    CHECK_EQUAL(place->pages, ((place->end - 1) >> SHIFT) - (START >> SHIFT) + 1);
    for (uint64_t i = 0; i < place->pages; i += run.count) {
        run = culet_place_run(place, i);
        CHECK(run.count > 0 && i + run.count <= place->pages, "a run of %lu pages from %lu on", (unsigned long)run.count, (unsigned long)i);
        for (uint64_t n = i; n < i + run.count; n++) {
            uint64_t at = ((START >> SHIFT) + n) << SHIFT;
            CHECK_EQUAL(run.states ? run.states[n - i] : 0, plain.states[n]);
            CHECK_EQUAL(culet_place_state(&places, place, at), plain.states[n]);
            CHECK_EQUAL(run.used ? run.used[n - i] : run.full ? UNITS : 0, plain.used[n]);
            CHECK_EQUAL(culet_place_units(&places, place, at), plain.used[n]);
        }
    }
}

/* Some bytes of the first `pages` pages: now few, now many leaves. */
static struct culet_range stretch(uint64_t *random, const struct culet_place *place)
{
    uint64_t length = place->end - place->start, from = check_random(random) % length & ~UINT64_C(7), most = length - from;

    if (check_random(random) % 2 && most > PAGE)
        most = PAGE;
    return (struct culet_range){START + from, START + from + (check_random(random) % (most + 1) & ~UINT64_C(7))};
}

static void set_states(uint64_t *random, struct culet_place *place)
{
    static uint8_t states[PAGES];
    uint64_t first = check_random(random) % place->pages, count = check_random(random) % (place->pages - first + 1);

    for (uint64_t i = 0; i < count; i++)
        states[i] = check_random(random) % 3 ? 0 : CULET_PAGE_PRESENT;
    culet_place_set_states(&places, place, (START >> SHIFT) + first, count, states);
    memcpy(plain.states + first, states, count);
}

static void rewind_to(uint64_t *random, struct culet_place *place)
{
    uint64_t at = START + check_random(random) % (place->end - place->start), page = (at >> SHIFT) - (START >> SHIFT);
    uint16_t units = (uint16_t)(check_random(random) % UNITS);

    culet_place_rewind(&places, place, at, units);
    memset(plain.used + page, 0, (PAGES - page) * sizeof *plain.used);
    plain.used[page] = units;
}

static void resize(uint64_t *random, struct culet_place *place)
{
    uint64_t end = (START + PAGE + check_random(random) % ((PAGES - 2) * PAGE)) & ~UINT64_C(7), pages;

    CHECK(culet_place_resize(&places, place, end), "it cannot be resized");
    pages = place->pages;
    memset(plain.used + pages, 0, (PAGES - pages) * sizeof *plain.used);
    memset(plain.states + pages, 0, PAGES - pages);
}

TEST(pages_like_a_plain_array)
{
    uint64_t random = 5;
    struct culet_place *place = culet_place_new(&places, "main", 0, START, START + 1000 * PAGE, false);

    for (unsigned i = 0; i < 3000; i++) {
        struct culet_range range = stretch(&random, place);
        switch (check_random(&random) % 12) {
        case 0: resize(&random, place); break;
        case 1: rewind_to(&random, place); break;
        case 2: case 3: set_states(&random, place); break;
        case 4: case 5: case 6:
            culet_place_unuse(&places, place, range.start, range.end);
            use(range.start, range.end, false);
            break;
        default:
            culet_place_use(&places, place, range.start, range.end);
            use(range.start, range.end, true);
        }
        if (i % 20 == 0)
            check_alike(place);
    }
}

/* Neither a region of terabytes nor what is used of it takes memory, but for the pages that are there. */
TEST(terabytes_of_nothing)
{
    uint64_t start = UINT64_C(1) << 44, end = start + (UINT64_C(8) << 40);
    uint8_t state = CULET_PAGE_PRESENT;

    for (unsigned whole = 0; whole < 2; whole++) {
        struct culet_places own = {.shift = SHIFT};
        struct culet_place *place = culet_place_new(&own, "large", 0, start, end, whole);
        if (!whole)
            culet_place_use(&own, place, start, end);
        culet_place_set_states(&own, place, (end - 1) >> SHIFT, 1, &state);
        struct culet_place_sum sum = culet_place_sum(&own, place);
        CHECK_EQUAL(place->pages, UINT64_C(1) << 31);
        CHECK_EQUAL(sum.used, end - start);
        CHECK_EQUAL(sum.used_resident, PAGE);
        CHECK_EQUAL(sum.free + sum.free_resident, 0);
        CHECK_EQUAL(culet_place_resident(&own, place), PAGE);
    }
}

/* One more page than can be counted in 32 bits. */
TEST(more_pages_than_fit_32_bits)
{
    struct culet_places own = {.shift = SHIFT};
    struct culet_place *place = culet_place_new(&own, "large", 0, 4096, 4096 + (UINT64_C(1) << 44) + 4096, true);
    uint8_t state = CULET_PAGE_PRESENT;

    CHECK_EQUAL(place->pages, (UINT64_C(1) << 32) + 1);
    culet_place_set_states(&own, place, (place->end - 1) >> SHIFT, 1, &state);
    CHECK_EQUAL(culet_place_state(&own, place, place->end - 8), CULET_PAGE_PRESENT);
    CHECK_EQUAL(culet_place_state(&own, place, place->start), 0);
    CHECK_EQUAL(culet_place_state(&own, place, place->end + 4096), 0);
}

TEST(regions_do_not_overlap)
{
    struct culet_places own = {.shift = SHIFT};
    uint64_t random = 3;

    for (unsigned i = 0; i < 3000; i++) {
        uint64_t start = check_random(&random) % 100000 * 8, end = start + check_random(&random) % 100 * 8;
        bool taken = start == end;
        for (size_t n = 0; n < own.count; n++)
            taken |= own.all[n]->start < end && start < own.all[n]->end;
        CHECK_EQUAL(culet_place_new(&own, "main", 0, start, end, true) == NULL, taken);
    }
    for (size_t i = 1; i < own.count; i++)
        CHECK(own.all[i - 1]->end <= own.all[i]->start, "regions are out of order");
    struct culet_place *place = own.all[7];
    CHECK(!culet_place_resize(&own, place, own.all[8]->start + 8), "it grew over the next one");
    CHECK(!culet_place_resize(&own, place, place->start), "it is empty");
    CHECK(culet_place_resize(&own, place, own.all[8]->start), "it cannot grow to the next one");
    CHECK(culet_places_at(&own, own.all[8]->start - 8) == place, "it is not found");
}

CHECK_MAIN
