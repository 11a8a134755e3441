/* cycle.h - detects cycles while a linked list in the process is followed.
 *
 * Algorithm: R. P. Brent, An improved Monte Carlo factorization algorithm, BIT 20 (1980), 176-184. Each element is
 * compared with one saved element, which is replaced after 1, 2, 4, 8 ... steps. A cycle is found after at most
 * three times as many steps as the list has different elements. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Initialize to zero. */
struct culet_cycle {
    uint64_t saved;
    uint64_t steps, limit;
};

/* The next element of the list is `at`. Returns whether the list has come back to an element seen before. */
static inline bool culet_cycle_closes(struct culet_cycle *cycle, uint64_t at)
{
    if (cycle->limit && at == cycle->saved)
        return true;
    if (cycle->steps == cycle->limit) {
        cycle->saved = at;
        cycle->limit = cycle->limit ? 2 * cycle->limit : 1;
        cycle->steps = 0;
    }
    cycle->steps++;
    return false;
}
