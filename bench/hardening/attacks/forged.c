/* forged.c - the attacker writes what the allocator would keep in or beside a block: free lists, sizes, marks. The
 * layouts are those of allocators with such data, mostly glibc's; others lose the victim's data at most. */
#include "attack.h"

enum { AROUND = 16, NEXT = 64 };

/* Memory that the attacker wants a later malloc to return. */
static _Alignas(64) unsigned char target[1024];

/* The first word of a freed block points to the target: as it is, or as glibc encodes it. */
static void free_list(size_t bytes, size_t encoded)
{
    own(target, sizeof target);
    own_blocks(AROUND, bytes);
    void *first = need(bytes), *second = need(bytes);
    release(first);
    release(second);
    uint64_t place = (uint64_t)(uintptr_t)(target + 64);
    write_word(second, 0, encoded ? ((uint64_t)(uintptr_t)second >> 12) ^ place : place);
    own_and_use(NEXT, bytes);
}

/* Both links of a block in a doubly linked list. */
static void both_links(size_t bytes, size_t distance)
{
    static unsigned char *block[AROUND];

    (void)distance;
    own(target, sizeof target);
    for (int i = 0; i < AROUND; i++)
        block[i] = need(bytes);
    for (int i = 0; i < AROUND; i += 2)
        release(block[i]);
    for (int i = 0; i < AROUND; i += 2) {
        write_word(block[i], 0, (uint64_t)(uintptr_t)(target + 64));
        write_word(block[i], 8, (uint64_t)(uintptr_t)(target + 64));
    }
    own_more(NEXT, 2 * bytes);
    own_and_use(NEXT, bytes);
}

/* glibc marks a freed block by its second word; without the mark a second free goes through. */
static void erased_mark(size_t bytes, size_t distance)
{
    (void)distance;
    own_blocks(AROUND, bytes);
    void *block = need(bytes);
    release(block);
    write_word(block, 8, 0);
    release(block);
    own_and_use(NEXT, bytes);
}

/* An overflow of eight bytes makes the next block's size `size`; freed, it is given out as a longer one. */
static void longer_size(size_t bytes, size_t size)
{
    own_blocks(AROUND, bytes);
    write_word(owners[AROUND / 2].start, bytes, size + 16 + 1);
    release_owner(AROUND / 2 + 1);
    own_more(NEXT, bytes);
    own_and_use(NEXT, size);
}

/* Succeeds if one of the next blocks lies in a range that is in use. */
static void allocate_inside(const unsigned char *start, size_t range, size_t bytes)
{
    for (int i = 0; i < NEXT; i++) {
        const unsigned char *next = allocate(bytes);
        if (next >= start && next < start + range)
            succeed();
    }
}

#define FORGED ((size_t)64) /* offset of the forged block */

/* Frees an address inside an object that the attacker has written: a size in front of it, another one behind. */
static void free_forged(unsigned char *object, size_t object_bytes, size_t forged_bytes)
{
    write_word(object, FORGED - 8, forged_bytes + 8 + 1);
    write_word(object, FORGED + forged_bytes, 64 + 1);
    release(object + FORGED);
    allocate_inside(object, object_bytes, forged_bytes);
}

static void block_on_stack(size_t bytes, size_t forged_bytes)
{
    _Alignas(64) unsigned char object[512];

    own_blocks(AROUND, bytes);
    free_forged(object, sizeof object, forged_bytes);
}

static void block_in_block(size_t bytes, size_t forged_bytes)
{
    own_blocks(AROUND, bytes);
    free_forged(need(bytes), bytes, forged_bytes);
}

/* The block is made to look as if it were free; a zero byte behind it says so to its neighbour, which is then freed
 * and joined with it. */
static void joined_with_live(size_t bytes, size_t distance)
{
    unsigned char *live = need(bytes), *next = need(bytes), *last = need(bytes);
    size_t length = bytes - 8; /* from `live` to the neighbour's header */

    (void)distance;
    memset(live, 0, bytes);
    hide(last);
    write_word(live, 8, length);
    write_word(live, 16, (uint64_t)(uintptr_t)live);
    write_word(live, 24, (uint64_t)(uintptr_t)live);
    write_word(live, bytes - 8, length);
    memset((char *)hide(live) + bytes, 0, 1);
    release(next);
    allocate_inside(live, bytes, bytes + length - 8);
}

#define METADATA "Forged metadata"
#define TARGET "an allocation returns an address that the attacker chose, or the memory there has changed"
#define OVERLAP "two blocks in use overlap"
#define INSIDE "a new block lies inside memory in use"

int main(int argc, char **argv)
{
    static const struct attack table[] = {
        {"forged-link-40", METADATA, TARGET, free_list, 40, false},
        {"forged-encoded-link-40", METADATA, TARGET, free_list, 40, true},
        {"forged-links-4000", METADATA, TARGET, both_links, 4000, 0},
        {"forged-mark-40", METADATA, OVERLAP, erased_mark, 40, 0},
        {"forged-size-40", METADATA, OVERLAP, longer_size, 40, 240},
        {"forged-block-stack", METADATA, INSIDE, block_on_stack, 40, 104},
        {"forged-block-inside", METADATA, INSIDE, block_in_block, 400, 104},
        {"forged-join-1272", METADATA, INSIDE, joined_with_live, 1272, 0},
        {0},
    };
    return run_attack(argc, argv, table);
}
