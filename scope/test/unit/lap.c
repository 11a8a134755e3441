/* Rings are noticed, soon; lists that end are not. */
#include "lap.h"

#include "check.h"

/* Elements 1, 2, ... `length`, and from there back to element `back`; 0: to none. */
static uint64_t steps_until_noticed(uint64_t length, uint64_t back, uint64_t most)
{
    struct culet_lap lap = {0};
    uint64_t at = 1, steps = 0;

    while (at && steps < most && !culet_lap_closes(&lap, at)) {
        at = at < length ? at + 1 : back;
        steps++;
    }
    return at ? steps : most;
}

TEST(rings)
{
    for (uint64_t length = 1; length < 200; length++)
        for (uint64_t back = 1; back <= length; back++) {
            uint64_t steps = steps_until_noticed(length, back, 10 * length + 10);
            CHECK(steps >= length && steps <= 3 * length + 3, "a ring of %lu was noticed after %lu steps", (unsigned long)length,
                  (unsigned long)steps);
        }
}

TEST(lists)
{
    for (uint64_t length = 1; length < 2000; length++)
        CHECK_EQUAL(steps_until_noticed(length, 0, UINT64_MAX), UINT64_MAX);
}

CHECK_MAIN
