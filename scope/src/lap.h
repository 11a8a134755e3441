/* lap.h - whether a list that is followed in a process comes back to where it was.
 *
 * Algorithm: R. P. Brent, An improved Monte Carlo factorization algorithm, BIT 20 (1980), 176-184: one element is kept to
 * compare the next ones with, and exchanged after 1, 2, 4, 8 ... steps. So a ring is noticed after at most three times as
 * many steps as the list has different elements. */
#ifndef CULET_LAP_H
#define CULET_LAP_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroes to begin with. */
struct culet_lap {
    uint64_t kept;
    uint64_t steps, until;
};

/* The list's next element is `at`: true when it was there before. */
static inline bool culet_lap_closes(struct culet_lap *lap, uint64_t at)
{
    if (lap->until && at == lap->kept)
        return true;
    if (lap->steps == lap->until) {
        lap->kept = at;
        lap->until = lap->until ? 2 * lap->until : 1;
        lap->steps = 0;
    }
    lap->steps++;
    return false;
}

#endif
