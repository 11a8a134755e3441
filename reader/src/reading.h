/* reading.h - one reading of one process: the state that all walkers share. */
#pragma once

#include "process/memory.h"
#include "process/target.h"
#include "regions/regions.h"

struct culet_reading {
    struct culet_target target;
    struct culet_maps maps;       /* read once, before the walkers run */
    struct culet_maps fresh_maps; /* read again, without sizes, where the process may have mapped more since */
    uint64_t fresh_ns;            /* when; 0: not in this pause */
    unsigned fresh_reads;
    struct culet_pages pages;
    struct culet_memory memory;
    struct culet_regions regions;
    size_t page_bytes;
    size_t mapping_count;         /* when the reading began */
    unsigned bits;                /* of the program: 32 or 64 */
    bool readable;                /* its memory can be read; else only page states are reported */
    char program[4096];           /* path of the executable; "": unknown */
    const char *active_malloc;    /* name of the allocator that serves malloc; NULL: unknown so far */
    const char *malloc_by_pages;  /* name of the allocator that gets all unexplained anonymous memory; NULL: none */
    const char *libc;             /* path of the C library, if it serves malloc; else NULL */
    bool libc_is_musl;            /* that library is musl */
    uint64_t malloc_walk_ns;      /* how long the walk of the heap of malloc took */
    struct culet_buffer problems; /* sentences, each with its NUL */
};

/* Begins a pause, and forgets what was read before. */
void culet_reading_pause(struct culet_reading *reading);

/* Ends the pause, in sliced mode. */
void culet_reading_resume(struct culet_reading *reading);

/* If the slice is over: lets the process run, rests, pauses again and returns true. What was read before may have
 * changed. */
bool culet_reading_yield(struct culet_reading *reading);

/* The end of the memory that is mapped now from `address` on: of adjacent mappings that can be a heap, if the first
 * can; else of one mapping. 0 if nothing is mapped, or not up to `wanted`. */
uint64_t culet_reading_mapped_end(struct culet_reading *reading, uint64_t address, uint64_t wanted);

/* Adds a region with bounds from the process. Returns NULL unless it is wholly mapped and overlaps no other region. */
struct culet_region *culet_reading_new_region(struct culet_reading *reading, const char *kind, uint32_t arena,
                                              uint64_t start, uint64_t end, bool full);

/* Stores the current states of a region's pages from..to (addresses). */
void culet_reading_note_states(struct culet_reading *reading, struct culet_region *region, uint64_t from, uint64_t to);

/* Stores the current states of a region's pages from..to (addresses), of a long range, and lets the process run when
 * the slice is over. Returns whether it did: what was read before may have changed. */
bool culet_reading_note_states_yielding(struct culet_reading *reading, struct culet_region *region, uint64_t from,
                                        uint64_t to);

/* Reports a problem to the user (printf's arguments). A sentence is reported once. */
void culet_reading_problem(struct culet_reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
