/* turn.h - makes several threads run one at a time, each passing the turn to a chosen next one. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* One per thread. */
struct culet_turn {
    _Atomic uint32_t granted;
    _Atomic uint32_t asleep;
};

/* Waits until this turn is granted, and takes it. */
void culet_turn_wait(struct culet_turn *turn);

void culet_turn_grant(struct culet_turn *turn);
