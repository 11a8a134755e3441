/* blackbox/holders.h - looks at what keeps the memory, when the limit comes near: a forked copy finds the largest holders,
 * and what they have grown by since the look before. */
#pragma once

#include <stdint.h>

#include "reading/reading.h"

/* Before the first check, in a Ruby thread. May raise. seconds: between two looks, at least; 0: none are taken. */
void culet_holders_prepare(uint64_t seconds);

/* In the thread of the readings: writes the look that has ended, or asks for one that is due. */
void culet_holders_check(const struct culet_reading *reading);

/* In a forked child: the looks are the parent's. */
void culet_holders_reset(void);
