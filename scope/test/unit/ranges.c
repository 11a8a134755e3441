/* Ranges that do not overlap. */
#include "ranges.h"

#include "check.h"

TEST(overlapping_ranges_are_refused)
{
    struct culet_ranges ranges = {0};

    CHECK(culet_ranges_add(&ranges, 100, 200), "the first");
    CHECK(!culet_ranges_add(&ranges, 100, 200), "the same");
    CHECK(!culet_ranges_add(&ranges, 150, 160), "within");
    CHECK(!culet_ranges_add(&ranges, 50, 101), "its start");
    CHECK(!culet_ranges_add(&ranges, 199, 300), "its end");
    CHECK(!culet_ranges_add(&ranges, 0, 1000), "around");
    CHECK(!culet_ranges_add(&ranges, 300, 300), "an empty one");
    CHECK(!culet_ranges_add(&ranges, 300, 250), "one that ends before it starts");
    CHECK(culet_ranges_add(&ranges, 200, 300), "right behind");
    CHECK(culet_ranges_add(&ranges, 50, 100), "right before");
    CHECK_EQUAL(ranges.count, 3);
}

TEST(random_ranges_like_a_table)
{
    static bool taken[4096];
    struct culet_ranges ranges = {0};
    uint64_t state = 3;

    for (unsigned i = 0; i < 3000; i++) {
        uint64_t from = check_random(&state) % 4000, to = from + 1 + check_random(&state) % 90;
        bool free_so_far = true;
        for (uint64_t at = from; at < to; at++)
            free_so_far = free_so_far && !taken[at];
        CHECK(culet_ranges_add(&ranges, from, to) == free_so_far, "%lu to %lu", (unsigned long)from, (unsigned long)to);
        for (uint64_t at = from; at < to && free_so_far; at++)
            taken[at] = true;
    }
    for (size_t i = 1; i < ranges.count; i++)
        CHECK(ranges.all[i - 1].end <= ranges.all[i].start, "not in order");
}

CHECK_MAIN
