#define _GNU_SOURCE
#include "glibc.h"

#include <stdlib.h>
#include <string.h>

/* Thread-local storage is searched this far for a pointer to the thread's cache. */
#define TLS_BYTES 16384u

/* No list is longer: glibc's counts have 16 bits. */
#define MOST_LIST 65536u

/* Arenas' fastbins, between the flags and `top`; there are none from 2.43 on. */
#define FASTBINS_AT 16u
#define FASTBINS 10u

/* struct tcache_perthread_struct, by the size of the chunk that it is in. */
struct layout {
    uint64_t chunk_bytes;
    unsigned bins;
    bool counts; /* how many there are; else how many there is room for */
};
static const struct layout layouts[] = {
    {0x290, 64, true},  /* 2.30 to 2.41 */
    {0x300, 76, false}, /* 2.42 on; the last 12 bins are of no single size */
};
#define MOST_BINS 76u
#define SMALL_BINS 64u

struct tcache {
    const struct layout *layout;
    uint16_t counts[MOST_BINS];
    uint64_t entries[MOST_BINS];
};

static bool read_tcache(struct culet_scope *scope, uint64_t chunk, uint64_t bytes, struct tcache *tcache)
{
    tcache->layout = NULL;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].chunk_bytes == bytes)
            tcache->layout = &layouts[i];
    if (!tcache->layout)
        return false;
    size_t bins = tcache->layout->bins;
    const unsigned char *data = culet_memory_at(&scope->memory, chunk + 16, bins * 10);
    if (!data)
        return false;
    memcpy(tcache->counts, data, bins * 2);
    memcpy(tcache->entries, data + bins * 2, bins * 8);
    return true;
}

/* The size of the chunk whose block is at `block`, 0 when it cannot be one that is cached in bin `bin`. */
static uint64_t cached_bytes(struct culet_scope *scope, uint64_t block, unsigned bin)
{
    uint64_t size;

    if (!block || block & 15 || block >> 56 || !culet_memory_word(&scope->memory, block - 8, &size) ||
        size & CULET_GLIBC_MMAPPED)
        return 0;
    size &= ~CULET_GLIBC_FLAGS;
    if (size & 15 || size < CULET_GLIBC_LEAST || (bin < SMALL_BINS && size != CULET_GLIBC_LEAST + 16 * bin))
        return 0;
    return size;
}

/* What is in it makes sense. Returns how many lists have something. */
static unsigned check_tcache(struct culet_scope *scope, const struct tcache *tcache)
{
    unsigned lists = 0;

    for (unsigned bin = 0; bin < tcache->layout->bins; bin++) {
        uint64_t entry = tcache->entries[bin];
        if (tcache->layout->counts && !entry != !tcache->counts[bin])
            return 0;
        if (entry & 15 || entry >> 56)
            return 0;
    }
    for (unsigned bin = 0; bin < tcache->layout->bins; bin++) {
        if (!tcache->entries[bin])
            continue;
        if (!cached_bytes(scope, tcache->entries[bin], bin))
            return 0;
        lists++;
    }
    return lists;
}

bool culet_glibc_is_tcache(struct culet_scope *scope, uint64_t chunk, uint64_t bytes)
{
    struct tcache tcache;

    return read_tcache(scope, chunk, bytes, &tcache) && check_tcache(scope, &tcache);
}

static void note(struct culet_glibc *heap, uint64_t chunk, enum culet_glibc_cache kind)
{
    heap->cached = culet_grow(heap->cached, &heap->cached_room, heap->cached_count + 1, sizeof *heap->cached);
    heap->cached[heap->cached_count++] = chunk | kind;
}

/* Notes the blocks of one list, up to `most`. `mangled`: next pointers are xor-ed with their own address / 4096 (from
 * 2.32 on). Returns false, nothing noted, when the list does not hold. */
static bool follow(struct culet_scope *scope, struct culet_glibc *heap, uint64_t block, unsigned bin, size_t most,
                   bool exact, bool mangled)
{
    size_t before = heap->cached_count, count = 0;

    while (block && count < most) {
        uint64_t next;
        if (!cached_bytes(scope, block, bin) || !culet_memory_word(&scope->memory, block, &next))
            break;
        note(heap, block - 16, CULET_GLIBC_TCACHE);
        block = mangled ? next ^ (block >> 12) : next;
        count++;
    }
    if (!block && (!exact || count == most))
        return true;
    heap->cached_count = before;
    return false;
}

static void collect_tcache(struct culet_scope *scope, struct culet_glibc *heap, uint64_t chunk, uint64_t bytes)
{
    struct tcache tcache;

    if (!read_tcache(scope, chunk, bytes, &tcache))
        return;
    for (unsigned bin = 0; bin < tcache.layout->bins; bin++) {
        bool exact = tcache.layout->counts;
        size_t most = exact ? tcache.counts[bin] : MOST_LIST;
        if (tcache.entries[bin] && !follow(scope, heap, tcache.entries[bin], bin, most, exact, true))
            follow(scope, heap, tcache.entries[bin], bin, most, exact, false);
    }
}

/* The chunk whose block the pointer at `field` points to, if that can be a thread's cache. */
static bool tcache_chunk(struct culet_scope *scope, uint64_t field, uint64_t *chunk, uint64_t *bytes)
{
    uint64_t block, size;

    if (!culet_memory_word(&scope->memory, field, &block) || !block || block & 15 || block >> 56 ||
        !culet_memory_word(&scope->memory, block - 8, &size))
        return false;
    *chunk = block - 16;
    *bytes = size & ~CULET_GLIBC_FLAGS;
    return *bytes == layouts[0].chunk_bytes || *bytes == layouts[1].chunk_bytes;
}

/* Where in a thread's storage the pointer to its cache is: the same place for all threads. */
static bool find_offset(struct culet_scope *scope, struct culet_glibc *heap, uint64_t pointer)
{
    uint64_t words[TLS_BYTES / 8], chunk, bytes;
#ifdef __x86_64__
    uint64_t start = pointer - TLS_BYTES;
#else
    uint64_t start = pointer;
#endif

    culet_memory_copy(&scope->memory, start, words, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i] && !(words[i] & 15) && tcache_chunk(scope, start + 8 * i, &chunk, &bytes) &&
            culet_glibc_is_tcache(scope, chunk, bytes)) {
            heap->tcache_offset = (int64_t)(start + 8 * i - pointer);
            return true;
        }
    return false;
}

static void collect_threads(struct culet_scope *scope, struct culet_glibc *heap)
{
    uint64_t pointer, chunk, bytes;

    for (size_t i = 0; i < scope->target.count; i++) {
        if (!culet_target_pointer(&scope->target, i, &pointer) ||
            (!heap->tcache_offset && !find_offset(scope, heap, pointer)))
            continue;
        if (tcache_chunk(scope, pointer + (uint64_t)heap->tcache_offset, &chunk, &bytes))
            collect_tcache(scope, heap, chunk, bytes);
    }
}

static void collect_scouted(struct culet_scope *scope, struct culet_glibc *heap)
{
    uint64_t size;

    for (size_t i = 0; i < heap->scouted_count; i++)
        if (culet_memory_word(&scope->memory, heap->scouted[i] + 8, &size))
            collect_tcache(scope, heap, heap->scouted[i], size & ~CULET_GLIBC_FLAGS);
}

/* A fastbin's list of chunks, whose link is at chunk + 16. */
static bool follow_fastbin(struct culet_scope *scope, struct culet_glibc *heap, uint64_t chunk, unsigned bin,
                           bool mangled)
{
    size_t before = heap->cached_count;

    while (chunk && chunk + 16 > chunk && heap->cached_count - before < (size_t)1 << 26) {
        uint64_t next;
        if (!cached_bytes(scope, chunk + 16, bin) || !culet_memory_word(&scope->memory, chunk + 16, &next))
            break;
        note(heap, chunk, CULET_GLIBC_FASTBIN);
        chunk = mangled ? next ^ ((chunk + 16) >> 12) : next;
    }
    if (!chunk)
        return true;
    heap->cached_count = before;
    return false;
}

static void collect_fastbins(struct culet_scope *scope, struct culet_glibc *heap)
{
    if (heap->top_at < FASTBINS_AT + 8 * (FASTBINS - 1))
        return;
    /* 2.26 had no word of its own for have_fastchunks. */
    uint64_t at = heap->top_at - 8 * FASTBINS;
    for (size_t i = 0; i < heap->arena_count; i++)
        for (unsigned bin = 0; bin < FASTBINS; bin++) {
            uint64_t chunk;
            if (!culet_memory_word(&scope->memory, heap->arenas[i].address + at + 8 * bin, &chunk) || !chunk)
                continue;
            if (!follow_fastbin(scope, heap, chunk, bin, true) && !follow_fastbin(scope, heap, chunk, bin, false))
                culet_glibc_break(&heap->arenas[i], "its fastbin of %u bytes does not hold together",
                                  CULET_GLIBC_LEAST + 16 * bin);
        }
}

static int by_address(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return (one > other) - (one < other);
}

void culet_glibc_collect(struct culet_scope *scope, struct culet_glibc *heap)
{
    heap->cached_count = 0;
    if (scope->target.mode == CULET_LIVE)
        collect_scouted(scope, heap);
    else
        collect_threads(scope, heap);
    collect_fastbins(scope, heap);
    qsort(heap->cached, heap->cached_count, sizeof *heap->cached, by_address);
}
