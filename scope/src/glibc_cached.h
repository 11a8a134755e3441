/* glibc_cached.h - freed chunks that look used: a thread keeps them at hand (tcache), or an arena does (fastbins).
 *
 * They hang in singly linked lists. Following these in the process would be a read for each, all over the heap. So the
 * walk notes every chunk whose first word can be such a link ("maybe"), and every structure that can be a thread's
 * tcache. Afterwards the lists are followed among the notes, from their heads on: what is reached is cached. */
#ifndef CULET_GLIBC_CACHED_H
#define CULET_GLIBC_CACHED_H

#include "place.h"

enum culet_glibc_cache { CULET_GLIBC_USED, CULET_GLIBC_TCACHE, CULET_GLIBC_FASTBIN };

/* There can be millions. */
struct culet_glibc_maybe {
    uint64_t chunk : 44; /* address / 16 */
    uint64_t units : 18; /* of 16 bytes */
    uint64_t kind : 2;   /* enum culet_glibc_cache, once it is known */
    uint64_t link : 48;  /* as it is in memory */
    uint64_t : 16;
};

/* Larger chunks are in no cache. (None is beyond 1 KiB, unless the program asks for it: glibc.malloc.tcache_max.) */
#define CULET_GLIBC_MOST_CACHED (UINT64_C(1) << 22)

static inline uint64_t culet_glibc_maybe_chunk(const struct culet_glibc_maybe *note)
{
    return (uint64_t)note->chunk << 4;
}

static inline uint64_t culet_glibc_maybe_bytes(const struct culet_glibc_maybe *note)
{
    return (uint64_t)note->units << 4;
}

/* The notes of one region: by address. */
struct culet_glibc_stretch {
    uint64_t start, end; /* of the region */
    size_t first, past;  /* indices */
};

#define CULET_GLIBC_MOST_BINS 76u

struct culet_glibc_tcache {
    bool counts; /* how many chunks there are in a bin; else how many there is room for */
    unsigned bins;
    uint16_t count[CULET_GLIBC_MOST_BINS];
    uint64_t entry[CULET_GLIBC_MOST_BINS];
};

/* What follows a run of free chunks. Its top belongs to the run. */
enum culet_glibc_end { CULET_GLIBC_CHUNK, CULET_GLIBC_MAIN_TOP, CULET_GLIBC_TOP };

/* Free chunks side by side, with such among them that may be in a fastbin: malloc_trim would merge those. */
struct culet_glibc_doubt {
    struct culet_place *place;
    uint64_t from, to;
    enum culet_glibc_end end;
};

/* How links are written: from glibc 2.32 on xor-ed with their own address / 4096. */
enum culet_glibc_links { CULET_GLIBC_UNKNOWN, CULET_GLIBC_MASKED, CULET_GLIBC_PLAIN };

struct culet_glibc_cached {
    enum culet_glibc_links links;
    unsigned lessons; /* tcaches that were asked for them */
    int votes;        /* of lists: for masked links, less those for plain ones */
    bool old_tcaches, new_tcaches; /* none but such with counts, or without; neither: not known */
    struct culet_range low, high; /* addresses that malloc may have: by brk, and of mappings */
    struct culet_glibc_maybe *maybe;
    size_t maybe_count, maybe_room;
    struct culet_glibc_stretch *stretches;
    size_t stretch_count, stretch_room;
    struct culet_glibc_tcache *tcaches;
    size_t tcache_count, tcache_room;
    struct culet_glibc_doubt *doubts;
    size_t doubt_count, doubt_room;
};

/* Fastbins have chunks up to this size (MAX_FAST_SIZE, and its header). */
#define CULET_GLIBC_FAST_BYTES 0xb0u

/* Whether a link can lead there: to nothing, or to a chunk or block where malloc may have one. */
static inline bool culet_glibc_leads(const struct culet_glibc_cached *cached, uint64_t to)
{
    return !(to & 15) && (!to || to - cached->low.start < cached->low.end - cached->low.start ||
                          to - cached->high.start < cached->high.end - cached->high.start);
}

/* Whether the first word of a block can be a link of a list. */
static inline bool culet_glibc_may_link(const struct culet_glibc_cached *cached, uint64_t chunk, uint64_t link)
{
    return (cached->links != CULET_GLIBC_PLAIN && culet_glibc_leads(cached, link ^ ((chunk + 16) >> 12))) ||
           (cached->links != CULET_GLIBC_MASKED && culet_glibc_leads(cached, link));
}

#endif
