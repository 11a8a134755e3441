/* limit/backoff.h - decides when a step may be repeated: after a step that freed next to nothing, pauses double, unless
 * clearly more memory is in use. Arithmetic only. One thread records steps, any thread may query. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* FUTILE: a step that frees less doubles the pause. MORE: a rise that ends the pause. LESS: a fall that resets it. In
 * percent of the limit. */
#define CULET_BACKOFF_FUTILE 1
#define CULET_BACKOFF_MORE 2
#define CULET_BACKOFF_LESS 5

/* The shortest pause that is doubled, and the longest, in seconds. */
#define CULET_BACKOFF_SHORTEST 0.02
#define CULET_BACKOFF_LONGEST 240.0

/* Percent of a number of bytes. */
static inline uint64_t culet_limit_part(uint64_t bytes, unsigned percent)
{
    return bytes / 100 * percent;
}

struct culet_backoff {
    _Atomic double soonest;  /* the step had its part of the time until then */
    _Atomic double next;     /* after futile steps; later than `soonest` */
    _Atomic unsigned futile; /* steps in a row that freed next to nothing */
    _Atomic uint64_t used;   /* bytes in use after the last of them */
};

/* Whether the step may be taken. time: seconds; used: bytes in use now. */
int culet_backoff_due(struct culet_backoff *backoff, double time, uint64_t used, uint64_t limit);

/* Records a step: the time of its end, the minimum pause in seconds, the bytes freed, and the bytes in use after it. */
void culet_backoff_note(struct culet_backoff *backoff, double ended, double pause, uint64_t freed, uint64_t used,
                        uint64_t limit);
