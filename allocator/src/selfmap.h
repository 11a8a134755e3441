/* selfmap.h - where the heap's tables are, for readers in another process.
 *
 * libculet.so holds one culet_selfmap, constant once it is relocated: magic bytes to find it by, the addresses of the
 * heap's tables, and the sizes and offsets of their entries. A reader scans the library's mappings for the magic,
 * checks `self` against the address where it found the record, and walks from there, without symbols and for any
 * version of the library. It costs nothing at run time.
 *
 * New members are added at the end only; `version` changes when a member's meaning does. A reader needs no other file
 * of the allocator. Pages are the allocator's (page_bytes); the extents are those of the huge-block cache. */
#pragma once

#include <stdint.h>

#define CULET_SELFMAP_MAGIC "culet selfmap\n\1" /* 16 bytes with its terminator */
#define CULET_SELFMAP_VERSION 4

struct culet_selfmap {
    char magic[16];
    uint32_t version;
    uint32_t bytes; /* of this structure, as the library knows it */

    /* Addresses in the process. */
    uint64_t self;         /* of this structure */
    uint64_t state;        /* uint8_t; 0 not set up, 1 and 2 active, 3 dormant: libc's allocator serves */
    uint64_t pages_lock;   /* uint32_t; not 0: a thread is changing the page heap */
    uint64_t segments;     /* pointer[], to a segment or NULL */
    uint64_t ceiling;      /* uint32_t; entries of `segments` that may be in use */
    uint64_t huge;         /* pointer to the first huge block */
    uint64_t extents;      /* extent[], the huge-block cache */
    uint64_t extent_count; /* uint32_t; entries of `extents` in use */
    uint64_t chunks;       /* pointer to the newest chunk of descriptors */
    uint64_t threads;      /* uint64_t; threads that have allocated and have not ended */
    uint64_t root;         /* pointer[root_entries], to a leaf of the pagemap or NULL */
    uint64_t classes;      /* class[class_entries]; the first is not used */
    uint64_t bss;          /* the library's zero-initialised data, which holds these tables: start */
    uint64_t bss_end;      /* and end */

    /* Numbers. */
    uint32_t page_bytes;
    uint32_t segment_pages;
    uint32_t segment_entries;
    uint32_t class_entries;
    uint32_t sizes; /* class k and class k + sizes have blocks of the same size */
    uint32_t extent_entries;
    uint32_t chunk_bytes;
    uint32_t root_entries;
    uint32_t leaf_entries; /* pages that a leaf has an entry for, of 8 bytes */
    uint32_t address_bits; /* of a span, in the highest bits of an entry (culet_selfmap_span) */
    uint32_t slab_bit;     /* set in an entry that leads to a slab, or in a hardened process checked_slab_bit */
    uint32_t unit_blocks;  /* blocks of a unit */
    uint32_t kind_slab, kind_large, kind_huge;

    /* Bytes of each structure and offsets in it. Pointers have 8 bytes; other sizes are given here. */
    struct {
        uint16_t bytes;
        uint16_t base;        /* uint64_t */
        uint16_t used, dirty; /* uint64_t[segment_pages / 64]: in use; free, and maybe resident */
    } segment;
    struct {
        uint16_t bytes;
        uint16_t size;  /* uint32_t, of a block */
        uint16_t count; /* uint16_t, blocks of a slab */
        uint16_t pages; /* uint8_t, of a slab */
    } klass;
    struct {
        uint16_t start; /* uint64_t */
        uint16_t kind;  /* uint8_t */
        uint16_t klass; /* uint8_t, of a slab */
    } span;             /* at the start of a slab and of a large block */
    struct {
        uint16_t bytes;
        uint16_t units; /* unit[] */
        uint16_t unit_bytes;
        uint16_t free, remote; /* uint64_t, in a unit: a block is in use unless its bit is set in one of them */
    } slab;
    struct {
        uint16_t bytes;
        uint16_t length; /* uint64_t, usable bytes */
        uint16_t ending; /* uint8_t; freed, and about to be unmapped */
        uint16_t next;   /* pointer, of huge blocks */
    } large;             /* a large or a huge block */
    struct {
        uint16_t bytes;
        uint16_t start, length; /* uint64_t */
    } extent;
    struct {
        uint16_t next; /* pointer to the next older chunk */
    } chunk;
    uint32_t checked_slab_bit;
    uint32_t span_alignment; /* bytes */
};

/* The address of the span that an entry leads to; 0 if it leads to none. All pages of a slab have the same entry. */
static inline uint64_t culet_selfmap_span(const struct culet_selfmap *self, uint64_t entry)
{
    return entry & 1 ? 0 : entry >> (64 - self->address_bits) & ~(uint64_t)(self->span_alignment - 1);
}

/* Whether it is a slab. */
static inline int culet_selfmap_is_slab(const struct culet_selfmap *self, uint64_t entry)
{
    return !(entry & 1) && entry & (self->slab_bit | self->checked_slab_bit);
}
