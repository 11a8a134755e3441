/* frees.c - pointers that free or realloc should not get: blocks that are free already, and addresses that are no
 * block. */
#include "attack.h"

enum { AROUND = 32, NEXT = 64 };

static void own_if_given(void *block, size_t bytes)
{
    if (block)
        own(block, bytes);
}

/* ---- double frees ---- */

/* `others`: blocks of the size that are freed in between. */
static void twice(size_t bytes, size_t others)
{
    unsigned char *block = surrounded(bytes);
    static unsigned char *between[2000];

    for (size_t i = 0; i < others; i++)
        between[i] = need(bytes);
    release(block);
    for (size_t i = 0; i < others; i++)
        release(between[i]);
    release(block);
    own_and_use(NEXT + others, bytes);
}

/* The program has got the block again before the second free, which takes it from under the new owner. */
static void twice_reused(size_t bytes, size_t distance)
{
    unsigned char *block = surrounded(bytes);

    (void)distance;
    release(block);
    own_blocks(16, bytes);
    release(block);
    own_and_use(NEXT, bytes);
}

static void twice_by_threads(size_t bytes, size_t distance)
{
    unsigned char *block = surrounded(bytes);

    (void)distance;
    release(block);
    join_thread(start_thread(release_body, block));
    own_and_use(NEXT, bytes);
}

/* Two neighbours are freed, a block of both sizes together may take their place, and the second is freed again. */
static void twice_merged(size_t bytes, size_t distance)
{
    static unsigned char *block[AROUND];

    (void)distance;
    for (int i = 0; i < AROUND; i++)
        block[i] = need(bytes);
    for (int i = 0; i < AROUND; i++)
        release(block[i]);
    own_blocks(AROUND / 2, 2 * bytes);
    for (int i = 1; i < AROUND; i += 2)
        release(block[i]);
    own_more(AROUND, bytes);
    own_and_use(AROUND, 2 * bytes);
}

static void realloc_zero_then_free(size_t bytes, size_t distance)
{
    unsigned char *block = surrounded(bytes);

    (void)distance;
    if (realloc(hide(block), 0) != NULL)
        return;
    release(block);
    own_and_use(NEXT, bytes);
}

static void realloc_freed(size_t bytes, size_t distance)
{
    unsigned char *block = surrounded(bytes);

    (void)distance;
    release(block);
    own_if_given(realloc(hide(block), 2 * bytes), 2 * bytes);
    own_and_use(NEXT, bytes);
    own_and_use(NEXT, 2 * bytes);
}

/* ---- addresses that are no block ---- */

/* Blocks of many sizes; succeeds if one overlaps memory in use. */
static void allocate_all_sizes(size_t bytes)
{
    for (size_t size = 16; size <= 1040; size += 16)
        own_more(4, size);
    for (size_t size = 2 * KIB; size <= 128 * KIB; size *= 2)
        own_more(4, size);
    own_and_use(NEXT, bytes);
}

static void free_stack(size_t bytes, size_t offset)
{
    _Alignas(64) unsigned char object[512];

    surrounded(bytes);
    own(object, sizeof object);
    release(object + offset);
    allocate_all_sizes(bytes);
}

static void free_static(size_t bytes, size_t offset)
{
    _Alignas(64) static unsigned char object[512];

    surrounded(bytes);
    own(object, sizeof object);
    release(object + offset);
    allocate_all_sizes(bytes);
}

static void free_inside(size_t bytes, size_t offset)
{
    surrounded(bytes);
    own_blocks(1, bytes);
    release(owners[owner_count - 1].start + offset);
    allocate_all_sizes(bytes);
}

static void free_mapping(size_t bytes, size_t offset)
{
    unsigned char *mapping = own_memory(64 * KIB);

    surrounded(bytes);
    own(mapping, 64 * KIB);
    release(mapping + offset);
    allocate_all_sizes(bytes);
}

/* Nothing is mapped there. */
static void free_unmapped(size_t bytes, size_t address)
{
    surrounded(bytes);
    release((void *)address);
    allocate_all_sizes(bytes);
}

static void realloc_stack(size_t bytes, size_t distance)
{
    _Alignas(64) unsigned char object[512];

    (void)distance;
    surrounded(bytes);
    own(object, sizeof object);
    own_if_given(realloc(hide(object + 64), 4 * bytes), 4 * bytes);
    allocate_all_sizes(bytes);
}

static void realloc_inside(size_t bytes, size_t offset)
{
    surrounded(bytes);
    own_blocks(1, bytes);
    own_if_given(realloc(hide(owners[owner_count - 1].start + offset), 4 * bytes), 4 * bytes);
    allocate_all_sizes(bytes);
}

#define DOUBLE "Double free"
#define INVALID "Invalid free"
#define OVERLAP "two blocks in use overlap"
#define TAKEN "memory in use has changed, or a new block overlaps it"

int main(int argc, char **argv)
{
    static const struct attack table[] = {
        {"double-40", DOUBLE, OVERLAP, twice, 40, 0},
        {"double-4000", DOUBLE, OVERLAP, twice, 4000, 0},
        {"double-100k", DOUBLE, OVERLAP, twice, 100000, 0},
        {"double-4M", DOUBLE, OVERLAP, twice, 4 * MIB, 0},
        {"double-40-interleaved", DOUBLE, OVERLAP, twice, 40, 1},
        {"double-4000-interleaved", DOUBLE, OVERLAP, twice, 4000, 1},
        {"double-40-after-10", DOUBLE, OVERLAP, twice, 40, 10},
        {"double-4000-after-10", DOUBLE, OVERLAP, twice, 4000, 10},
        {"double-40-after-1000", DOUBLE, OVERLAP, twice, 40, 1000},
        {"double-40-reused", DOUBLE, OVERLAP, twice_reused, 40, 0},
        {"double-4000-reused", DOUBLE, OVERLAP, twice_reused, 4000, 0},
        {"double-100k-reused", DOUBLE, OVERLAP, twice_reused, 100000, 0},
        {"double-40-threads", DOUBLE, OVERLAP, twice_by_threads, 40, 0},
        {"double-2000-merged", DOUBLE, OVERLAP, twice_merged, 2000, 0},
        {"double-40-realloc-zero", DOUBLE, OVERLAP, realloc_zero_then_free, 40, 0},
        {"realloc-freed-40", DOUBLE, OVERLAP, realloc_freed, 40, 0},
        {"realloc-freed-4000", DOUBLE, OVERLAP, realloc_freed, 4000, 0},
        {"free-stack", INVALID, TAKEN, free_stack, 40, 64},
        {"free-static", INVALID, TAKEN, free_static, 40, 64},
        {"free-inside-208-by-16", INVALID, TAKEN, free_inside, 208, 16},
        {"free-inside-4000-by-64", INVALID, TAKEN, free_inside, 4000, 64},
        {"free-inside-100k-by-4096", INVALID, TAKEN, free_inside, 100000, 4096},
        {"free-inside-4M-by-1M", INVALID, TAKEN, free_inside, 4 * MIB, MIB},
        {"free-misaligned-by-1", INVALID, TAKEN, free_inside, 208, 1},
        {"free-misaligned-by-8", INVALID, TAKEN, free_inside, 208, 8},
        {"free-mapping", INVALID, TAKEN, free_mapping, 40, 0},
        {"free-mapping-by-16", INVALID, TAKEN, free_mapping, 40, 4112},
        {"free-null-page", INVALID, TAKEN, free_unmapped, 40, 16},
        {"free-unmapped", INVALID, TAKEN, free_unmapped, 40, 0x10000010},
        {"realloc-stack", INVALID, TAKEN, realloc_stack, 40, 0},
        {"realloc-inside-208-by-16", INVALID, TAKEN, realloc_inside, 208, 16},
        {0},
    };
    return run_attack(argc, argv, table);
}
