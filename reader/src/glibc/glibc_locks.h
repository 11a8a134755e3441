/* glibc_locks.h - whether threads are inside malloc, which leaves arenas inconsistent. */
#pragma once

#include "glibc/glibc_heap.h"

/* Whether a thread is changing this arena (NULL: any arena). */
bool culet_glibc_is_busy(struct culet_reading *reading, const struct culet_glibc *heap,
                         const struct culet_glibc_arena *arena);

/* Paused: releases and pauses the process until no thread is changing this arena (NULL: any arena), for a limited
 * time. */
void culet_glibc_wait_until_idle(struct culet_reading *reading, struct culet_glibc *heap,
                                 const struct culet_glibc_arena *arena);
