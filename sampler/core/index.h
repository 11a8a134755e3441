/* index.h - finds the numbers of a table's entries by the hash of their keys: open addressing, in a mapping that doubles
 * before it is more than three quarters full. The table has the keys and compares them. The caller locks.
 *
 *   culet_index_reserve(index, hash_of, table);
 *   for (at = culet_index_first(index, hash); (number = index->slot[at]); at = culet_index_next(index, at))
 *       if (the entry `number` has the key) it is found
 *   not found: culet_index_add(index, at, number)
 *
 * A small table has a small index: in one of the final size, each entry would make another page resident. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct culet_index {
    uint32_t *slot; /* an entry's number, or 0: empty */
    uint32_t slots; /* a power of two */
    uint32_t used;
    unsigned shift; /* of a hash: its top bits are the first slot */
};

/* The hash of an entry's key, with all 64 bits mixed. */
typedef uint64_t culet_index_hash(const void *table, uint32_t number);

static inline uint64_t culet_index_mix(uint64_t key)
{
    key = (key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key << 29;
}

/* Maps an empty index. False: no memory. */
bool culet_index_create(struct culet_index *index);
void culet_index_destroy(struct culet_index *index);

/* Doubles the index. Without memory it stays as it is. */
void culet_index_grow(struct culet_index *index, culet_index_hash *hash_of, const void *table);

/* Before an entry is looked for that is added if it is not found. False: there is no room for one more. */
static inline bool culet_index_reserve(struct culet_index *index, culet_index_hash *hash_of, const void *table)
{
    if (__builtin_expect(index->used >= index->slots / 4 * 3, 0))
        culet_index_grow(index, hash_of, table);
    /* One slot is always empty: it ends each search. */
    return index->used < index->slots - 1;
}

static inline uint32_t culet_index_first(const struct culet_index *index, uint64_t hash)
{
    return (uint32_t)(hash >> index->shift);
}

static inline uint32_t culet_index_next(const struct culet_index *index, uint32_t at)
{
    return (at + 1) & (index->slots - 1);
}

static inline void culet_index_add(struct culet_index *index, uint32_t at, uint32_t number)
{
    index->slot[at] = number;
    index->used++;
}
