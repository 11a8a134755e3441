/* glibc_candidates.h - chunks that look used and may be cached: freed, and kept by a thread (tcache) or an arena
 * (fastbins).
 *
 * Cached chunks are in singly linked lists. Following a list in the process would take a read per chunk, all over
 * the heap. Instead the walk notes every chunk whose first word can be such a link; the lists are followed among the
 * notes later. */
#pragma once

#include "process/maps.h"
#include "regions/region.h"

enum culet_glibc_cache { CULET_GLIBC_USED, CULET_GLIBC_TCACHE, CULET_GLIBC_FASTBIN };

/* How links are written: from glibc 2.32 on xor-ed with their own address / 4096 (PROTECT_PTR). */
enum culet_glibc_links { CULET_GLIBC_LINKS_UNKNOWN, CULET_GLIBC_LINKS_PROTECTED, CULET_GLIBC_LINKS_PLAIN };

/* Compact, since there can be millions. */
struct culet_glibc_candidate {
    uint64_t chunk : 44; /* address / 16 */
    uint64_t units : 18; /* of 16 bytes */
    uint64_t cache : 2;  /* enum culet_glibc_cache, once known */
    uint64_t link : 48;  /* as in memory */
    uint64_t : 16;
};

/* The candidates of one region, by address. */
struct culet_glibc_candidate_range {
    uint64_t start, end; /* of the region; `start` first, for culet_by_word */
    size_t first, past;  /* indices */
};

struct culet_glibc_candidates {
    enum culet_glibc_links links;
    struct culet_range low, high; /* where malloc may have memory: around brk, and around mappings */
    struct culet_glibc_candidate *all;
    size_t count, room;
    struct culet_glibc_candidate_range *ranges;
    size_t range_count, range_room;
};

/* Larger chunks are in no cache. (The default limit is 1 KiB; the tunable glibc.malloc.tcache_max raises it, from 2.42
 * on to 4 MiB.) */
#define CULET_GLIBC_MOST_CACHED (UINT64_C(1) << 22)

/* The largest chunk of a fastbin: MAX_FAST_SIZE and its header. */
#define CULET_GLIBC_FAST_BYTES 0xb0u

static inline uint64_t culet_glibc_candidate_chunk(const struct culet_glibc_candidate *candidate)
{
    return (uint64_t)candidate->chunk << 4;
}

static inline uint64_t culet_glibc_candidate_bytes(const struct culet_glibc_candidate *candidate)
{
    return (uint64_t)candidate->units << 4;
}

/* Whether a link can lead there: NULL, or an aligned address where malloc may have memory. */
static inline bool culet_glibc_can_point_to(const struct culet_glibc_candidates *candidates, uint64_t to)
{
    return !(to & 15) && (!to || to - candidates->low.start < candidates->low.end - candidates->low.start ||
                          to - candidates->high.start < candidates->high.end - candidates->high.start);
}

/* Whether the first word of a chunk's user data can be a link. */
static inline bool culet_glibc_can_be_link(const struct culet_glibc_candidates *candidates, uint64_t chunk,
                                           uint64_t link)
{
    return (candidates->links != CULET_GLIBC_LINKS_PLAIN &&
            culet_glibc_can_point_to(candidates, link ^ ((chunk + 16) >> 12))) ||
           (candidates->links != CULET_GLIBC_LINKS_PROTECTED && culet_glibc_can_point_to(candidates, link));
}

/* The next chunk in the list. */
static inline uint64_t culet_glibc_candidate_next(const struct culet_glibc_candidate *candidate, bool is_protected)
{
    return is_protected ? candidate->link ^ ((culet_glibc_candidate_chunk(candidate) + 16) >> 12) : candidate->link;
}

/* Finds out where malloc may have memory. */
void culet_glibc_candidates_set_bounds(struct culet_glibc_candidates *candidates, const struct culet_maps *maps);

void culet_glibc_candidates_add(struct culet_glibc_candidates *candidates, uint64_t chunk, uint64_t bytes,
                                uint64_t link);

/* The candidates from number `first` on are those of this region. */
void culet_glibc_candidates_end_region(struct culet_glibc_candidates *candidates, const struct culet_region *region,
                                       size_t first);

/* All regions are done: look-ups may begin. */
void culet_glibc_candidates_sort(struct culet_glibc_candidates *candidates);

/* The candidates of the region that contains this address; an empty range if there are none. */
struct culet_glibc_candidate_range culet_glibc_candidates_of(const struct culet_glibc_candidates *candidates,
                                                             uint64_t address);

/* Index of the first candidate in the range at or after an address. */
size_t culet_glibc_candidates_from(const struct culet_glibc_candidates *candidates,
                                   const struct culet_glibc_candidate_range *range, uint64_t address);

/* The candidate of the chunk at this address, or NULL. */
struct culet_glibc_candidate *culet_glibc_candidates_at(const struct culet_glibc_candidates *candidates,
                                                        uint64_t chunk);
