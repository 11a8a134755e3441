/* baton.h - one of several threads works at a time, and hands over to the next one. */
#ifndef CULET_BATON_H
#define CULET_BATON_H

#include <stdatomic.h>
#include <stdint.h>

/* One per thread; 1 while it is this thread's turn. */
struct culet_baton {
    _Atomic uint32_t turn;
    _Atomic uint32_t asleep;
};

/* Waits for the turn, and takes it. */
void culet_baton_wait(struct culet_baton *baton);

/* Gives the turn to the thread that has this baton. */
void culet_baton_pass(struct culet_baton *baton);

#endif
