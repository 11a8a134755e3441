/* glibc_arenas.h - the arenas and their heaps. All functions need a pause. */
#pragma once

#include "glibc/glibc_heap.h"

/* Finds main_arena in libc's data, of which `data` is a copy: `bytes` from address `base` on. */
bool culet_glibc_arenas_find_main(struct culet_reading *reading, struct culet_glibc *heap, const unsigned char *data,
                                  uint64_t base, size_t bytes);

/* Reads the circular list of arenas. Returns false if it is not circular. */
bool culet_glibc_arenas_read(struct culet_reading *reading, struct culet_glibc *heap);

/* Updates top and system_bytes of an arena. */
bool culet_glibc_arena_refresh(struct culet_reading *reading, const struct culet_glibc *heap,
                               struct culet_glibc_arena *arena);

/* Stores the end of the arena's top in *end, if everything from `start` to there is mapped; else returns false. */
bool culet_glibc_arena_top_end(struct culet_reading *reading, const struct culet_glibc_arena *arena, uint64_t start,
                               uint64_t *end);

/* The addresses of the heaps of an arena other than main, the newest first, at most `room`. Returns their number. */
size_t culet_glibc_arena_heaps(struct culet_reading *reading, struct culet_glibc *heap, struct culet_glibc_arena *arena,
                               uint64_t *heaps, size_t room);

/* The first chunk of a heap of an arena other than main. */
uint64_t culet_glibc_heap_first_chunk(const struct culet_glibc *heap, const struct culet_glibc_arena *arena,
                                      uint64_t start);

/* The current size of a heap; 0 if it does not belong to the arena any more, or cannot have that size. */
uint64_t culet_glibc_heap_bytes(struct culet_reading *reading, const struct culet_glibc *heap,
                                const struct culet_glibc_arena *arena, uint64_t start);
