/* Cycles are detected soon; finite lists are not reported. */
#include "base/cycle.h"

#include "check.h"

/* A list of elements 1, 2, ... `length`, the last linked to element `back`; 0: to none. */
static uint64_t steps_until_detected(uint64_t length, uint64_t back, uint64_t most)
{
    struct culet_cycle cycle = {0};
    uint64_t at = 1, steps = 0;

    while (at && steps < most && !culet_cycle_closes(&cycle, at)) {
        at = at < length ? at + 1 : back;
        steps++;
    }
    return at ? steps : most;
}

TEST(cycles)
{
    for (uint64_t length = 1; length < 200; length++)
        for (uint64_t back = 1; back <= length; back++) {
            uint64_t steps = steps_until_detected(length, back, 10 * length + 10);
            CHECK(steps >= length && steps <= 3 * length + 3, "a cycle of %lu was detected after %lu steps",
                  (unsigned long)length, (unsigned long)steps);
        }
}

TEST(lists)
{
    for (uint64_t length = 1; length < 2000; length++)
        CHECK_EQUAL(steps_until_detected(length, 0, UINT64_MAX), UINT64_MAX);
}

CHECK_MAIN
