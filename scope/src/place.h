/* place.h - a region of a heap and what its pages hold: used bytes per kernel page, and the pages' states as they were
 * when the region was walked. */
#ifndef CULET_PLACE_H
#define CULET_PLACE_H

#include "../format.h"
#include "buffer.h"

#include <stdbool.h>
#include <stdint.h>

struct culet_range {
    uint64_t start, end;
};

/* Pages of a leaf of a region's table. */
#define CULET_PLACE_LEAF 512u

struct culet_place {
    uint32_t id;      /* its index */
    uint32_t arena;   /* CULET_NO_ARENA: none */
    const char *kind; /* of format.h's list: what a region holds */
    bool malloc;      /* its bytes are in the totals of malloc (Ruby's pages by mmap are not) */
    uint64_t start, end;
    uint64_t pages;   /* that it touches */
    unsigned char **leaves; /* what is known of CULET_PLACE_LEAF pages each; NULL: nothing there is used or in memory */
    bool whole;       /* every byte is used */
    struct culet_range *other; /* metadata and gaps, by address */
    size_t others, other_room;
    struct culet_buffer chunks; /* uint32_t each: units of 16 bytes << 2 | enum culet_block_state */
    uint64_t first_chunk;       /* address */
    uint64_t noted;             /* chunks, whether kept or not */
    struct culet_buffer slabs;  /* of the record 'S', but for the stretch that is not over */
    uint64_t slab_bytes, slab_block; /* that stretch: its bytes, its blocks' */
};

/* Neighbouring pages of a region, by their indices. */
struct culet_place_run {
    uint64_t first, count;
    const uint8_t *states; /* CULET_PAGE_* of each; NULL: 0 of all */
    const uint16_t *used;  /* used units of 8 bytes of each; NULL: all alike, as `full` tells */
    bool full;             /* used wholly; else not at all */
};

/* What a stretch of slabs is instead of blocks of one size (format.h, 'S'). */
#define CULET_SLAB_NONE 0u
#define CULET_SLAB_LARGE 1u

#define CULET_NO_ARENA UINT32_MAX

/* What a region's pages amount to, in bytes. */
struct culet_place_sum {
    uint64_t used, used_resident;
    uint64_t free, free_resident, free_swapped;
    uint64_t other, other_resident;
};

struct culet_places {
    struct culet_place **all; /* by address; they do not overlap */
    size_t count, room;
    unsigned shift;      /* log2 of the page size */
    uint64_t chunks;     /* noted */
    uint64_t max_chunks; /* beyond this many none are told */
};

/* A new region. start and end are multiples of 8. Nothing of it is used, until it is said so; with `whole` all of it
 * is. Its pages' states are 0 until they are set. NULL when it is empty, or overlaps one that is there. */
struct culet_place *culet_place_new(struct culet_places *places, const char *kind, uint32_t arena, uint64_t start,
                                    uint64_t end, bool whole);

/* Another end: the region is found to be longer or shorter. False, and nothing changes, when it would be empty or overlap
 * the next one. */
bool culet_place_resize(const struct culet_places *places, struct culet_place *place, uint64_t end);

/* The bytes from..to (multiples of 8) of the region are used; they were not. */
void culet_place_use(const struct culet_places *places, struct culet_place *place, uint64_t from, uint64_t to);

/* They are free again: what looked used is not. */
void culet_place_unuse(const struct culet_places *places, struct culet_place *place, uint64_t from, uint64_t to);

/* From `address` on nothing is used any more, but `units` (of 8 bytes) of the page that it is in. */
void culet_place_rewind(const struct culet_places *places, struct culet_place *place, uint64_t address, uint16_t units);

/* Used units (of 8 bytes) of the page with this address. */
uint16_t culet_place_units(const struct culet_places *places, const struct culet_place *place, uint64_t address);

/* They are metadata of the allocator, or not its own. Given in order of addresses. */
void culet_place_other(struct culet_place *place, uint64_t from, uint64_t to);

/* The next stretch of slabs: `bytes` divided into blocks of `block` each, or CULET_SLAB_NONE, CULET_SLAB_LARGE. */
void culet_place_slab(struct culet_place *place, uint64_t bytes, uint64_t block);

/* The rest of culet_place_chunk: a chunk that is kept, but for which there is no room, or larger than 16 GiB. */
void culet_place_keep(struct culet_place *place, uint64_t bytes, unsigned state);

/* The next chunk: `bytes` a multiple of 16, one after the other from first_chunk on (which the caller sets). */
static inline void culet_place_chunk(struct culet_places *places, struct culet_place *place, uint64_t bytes,
                                     unsigned state)
{
    uint64_t units = bytes / CULET_BLOCK_UNIT;
    struct culet_buffer *chunks = &place->chunks;

    place->noted++;
    if (places->chunks++ >= places->max_chunks)
        return;
    if (units >> 30 || chunks->room - chunks->length < sizeof(uint32_t)) {
        culet_place_keep(place, bytes, state);
        return;
    }
    *(uint32_t *)(void *)(chunks->bytes + chunks->length) = (uint32_t)units << 2 | state;
    chunks->length += sizeof(uint32_t);
}

/* `count` chunks of `bytes` each. */
void culet_place_chunks(struct culet_places *places, struct culet_place *place, uint64_t bytes, uint64_t count,
                        unsigned state);

/* The longest run from page `index` on whose pages are all told in the same way: see struct culet_place_run. The region has
 * that page. */
struct culet_place_run culet_place_run(const struct culet_place *place, uint64_t index);

/* State of the page with this address; 0 where the region has none. */
uint8_t culet_place_state(const struct culet_places *places, const struct culet_place *place, uint64_t address);

/* Bytes of from..to, of the region, on pages with any of these bits. */
uint64_t culet_place_in_state(const struct culet_places *places, const struct culet_place *place, uint64_t from,
                              uint64_t to, uint8_t state);

/* Bytes of its pages that are in memory. */
uint64_t culet_place_resident(const struct culet_places *places, const struct culet_place *place);

/* States of the pages from number `first` on. */
void culet_place_set_states(const struct culet_places *places, struct culet_place *place, uint64_t first,
                            size_t count, const uint8_t *states);

/* The region that has this address, or NULL. */
struct culet_place *culet_places_at(const struct culet_places *places, uint64_t address);

/* The first region that ends behind this address, or NULL. */
struct culet_place *culet_places_next(const struct culet_places *places, uint64_t address);

struct culet_place_sum culet_place_sum(const struct culet_places *places, const struct culet_place *place);

/* Writes the records 'F', 'C' and 'S' of a region. */
void culet_place_tell(const struct culet_places *places, const struct culet_place *place);

#endif
