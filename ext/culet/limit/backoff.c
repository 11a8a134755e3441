#include "limit/backoff.h"

int culet_backoff_due(struct culet_backoff *backoff, double time, uint64_t used, uint64_t limit)
{
    uint64_t then = atomic_load(&backoff->used);

    if (time < atomic_load(&backoff->soonest))
        return 0;
    if (atomic_load(&backoff->futile) == 0 || time >= atomic_load(&backoff->next))
        return 1;
    if (used + culet_limit_part(limit, CULET_BACKOFF_LESS) < then)
        atomic_store(&backoff->futile, 0);
    return used >= then + culet_limit_part(limit, CULET_BACKOFF_MORE) || atomic_load(&backoff->futile) == 0;
}

void culet_backoff_note(struct culet_backoff *backoff, double ended, double pause, uint64_t freed, uint64_t used,
                        uint64_t limit)
{
    double longer = pause > CULET_BACKOFF_SHORTEST ? pause : CULET_BACKOFF_SHORTEST;
    unsigned futile = freed < culet_limit_part(limit, CULET_BACKOFF_FUTILE) ? atomic_load(&backoff->futile) + 1 : 0;

    for (unsigned i = 0; i < futile && longer < CULET_BACKOFF_LONGEST; i++)
        longer *= 2;
    atomic_store(&backoff->soonest, ended + pause);
    atomic_store(&backoff->next, ended + (longer < CULET_BACKOFF_LONGEST ? longer : CULET_BACKOFF_LONGEST));
    atomic_store(&backoff->used, used);
    atomic_store(&backoff->futile, futile);
}
