/* selfmap.h - where everything of the heap is, for readers in another process.
 *
 * libculet.so holds one culet_selfmap, constant once it is relocated: magic bytes to find it by, the addresses of
 * the heap's tables, and the sizes and offsets of what they hold. A reader scans the library's writable mappings for
 * the magic, checks `self` against the place where it found it, and walks from there, without symbols and whatever
 * version the library has. It costs nothing at run time.
 *
 * New members are only ever added at the end; `version` changes when a member's meaning does. Nothing of culet's but
 * this file is needed to read the heap, and it includes nothing of culet's. */
#ifndef CULET_SELFMAP_H
#define CULET_SELFMAP_H

#include <stdint.h>

#define CULET_SELFMAP_MAGIC "culet selfmap\n\1" /* 16 bytes with the one at its end */
#define CULET_SELFMAP_VERSION 2

struct culet_selfmap {
    char magic[16];
    uint32_t version;
    uint32_t bytes; /* of this structure, as the library knows it */

    /* Addresses in the process. */
    uint64_t self;       /* of this structure */
    uint64_t state;      /* uint8_t; 0 not begun, 1 and 2 at work, 3 dormant: libc's allocator serves */
    uint64_t pages_lock; /* uint32_t; not 0: some thread is changing the page heap */
    uint64_t segments;   /* pointer[], to a segment or NULL */
    uint64_t ceiling;    /* uint32_t; entries of `segments` that may be in use */
    uint64_t huge;       /* pointer to the first huge block */
    uint64_t extents;    /* extent[], freed huge blocks that are kept */
    uint64_t extent_count; /* uint32_t; of `extents`, those in use */
    uint64_t chunks;     /* pointer to the chunk of descriptors that was mapped last */
    uint64_t threads;    /* uint64_t; threads that have a cache */
    uint64_t root;       /* pointer[root_entries], to a leaf of the pagemap or NULL */
    uint64_t classes;    /* class[class_entries]; the first is not used */
    uint64_t bss;        /* the library's zero-initialised data, where these tables are: its start, */
    uint64_t bss_end;    /* and the first byte behind it */

    /* Numbers. */
    uint32_t granule_bytes;
    uint32_t segment_granules;
    uint32_t segment_entries;
    uint32_t class_entries;
    uint32_t sizes; /* class k and class k + sizes have blocks of the same size */
    uint32_t extent_entries;
    uint32_t chunk_bytes;
    uint32_t root_entries;
    uint32_t leaf_entries;  /* granules that a leaf has an entry for, of 8 bytes */
    uint32_t address_bits;  /* of an entry, the owner's address, unless bit 0 is set: then nothing is there */
    uint32_t class_shift;   /* where in an entry the class is; 0 if its owner is no slab */
    uint32_t kind_slab, kind_run, kind_huge;

    /* Bytes of each structure and offsets in it. Pointers have 8 bytes; other sizes are given here. */
    struct {
        uint16_t bytes;
        uint16_t base; /* uint64_t */
        uint16_t used, dirty; /* uint64_t[segment_granules / 64]: in use; free, and maybe resident */
    } segment;
    struct {
        uint16_t bytes;
        uint16_t size;       /* uint32_t, of a block */
        uint16_t count;      /* uint16_t, blocks of a slab */
        uint16_t unit_shift; /* uint8_t, log2 of the blocks of a unit */
        uint16_t granules;   /* uint8_t, of a slab */
    } klass;
    struct {
        uint16_t start; /* uint64_t */
        uint16_t kind;  /* uint8_t */
        uint16_t klass; /* uint8_t, of a slab */
    } owner;            /* at the start of a slab and of a large */
    struct {
        uint16_t bytes;
        uint16_t units; /* unit[] */
        uint16_t unit_bytes;
        uint16_t live, claimed; /* uint64_t, in a unit: used is live & ~claimed */
    } slab;
    struct {
        uint16_t bytes;
        uint16_t length; /* uint64_t, usable bytes */
        uint16_t ending; /* uint8_t; freed, and about to be unmapped */
        uint16_t next;   /* pointer, of huge blocks */
    } large;             /* a run or a huge block */
    struct {
        uint16_t bytes;
        uint16_t start, length; /* uint64_t */
    } extent;
    struct {
        uint16_t next; /* pointer to the chunk that was mapped before */
    } chunk;
};

#endif
