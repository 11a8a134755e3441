/* musl_heap.h - what is known of musl's heap, and the steps of its walker.
 *
 *   musl_find     finds the context in the C library's data
 *   musl_groups   lists the groups of all metas
 *   musl_walk     divides one group into its blocks, and the groups in its slots
 *   musl_walker   runs them one after the other, and writes the records */
#pragma once

#include "reader/layouts/musl_heap.h"
#include "reading.h"
#include "regions/histogram.h"

/* The id of the only arena. */
#define CULET_MUSL_ARENA 0

struct culet_musl_group {
    uint64_t start, end;
    uint64_t meta;   /* address */
    uint64_t slot;   /* bytes */
    uint32_t unused; /* bit n: slot n is free */
    uint8_t slots;   /* number */
    uint8_t klass;   /* MUSL_CLASS_NONE: one block with a mapping of its own */
    bool mapped;     /* the group has a mapping of its own */
};

struct culet_musl {
    const char *library;
    uint64_t context; /* address */
    uint64_t shift;   /* of the context's members after the secret */
    uint64_t secret;
    bool lost;       /* no context was found: the heap is reported by pages */
    uint64_t *areas; /* addresses */
    size_t area_count, area_room;
    struct culet_musl_group *groups; /* by address; a group comes before those in its slots */
    size_t group_count, group_room;
    uint64_t heaps;        /* groups that are in no other group's slot */
    uint64_t system_bytes; /* of these, without large blocks */
    uint64_t used_bytes;   /* slots */
    uint64_t large_bytes, large_blocks;
    uint64_t inconsistent;        /* metas and groups that do not fit each other */
    uint64_t slots[MUSL_CLASSES]; /* of groups that musl counts */
    bool yielded;                 /* the process ran while the metas were read */
    uint64_t unreadable;          /* areas */
    struct culet_histogram sizes;
};

/* Searches the data of `file`, the C library or a static program, for the heap's context: a number that is also the
 * first word of the first and of the last area. False if there is none: nothing was allocated, or the library has
 * another malloc. */
bool culet_musl_find(struct culet_reading *reading, struct culet_musl *heap, const char *file);

/* Lists the areas, the metas in them, and their groups. A group whose memory does not lead back to its meta is left
 * out, and counted as inconsistent. */
void culet_musl_groups_read(struct culet_reading *reading, struct culet_musl *heap);

/* Makes regions of the areas, and of every group with the groups in its slots. */
void culet_musl_walk_areas(struct culet_reading *reading, struct culet_musl *heap);
void culet_musl_walk_groups(struct culet_reading *reading, struct culet_musl *heap);
