/* retain/memory.h - growing arrays outside of malloc and of Ruby's heap, whose sum is limited.
 *
 * An array grows by mremap(2), which moves its pages instead of copying them. Its mapping is in a list, so that one call
 * frees everything that an analysis has left. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The memory of all arrays of an analysis. Its address must not change after the first array. */
struct culet_memory {
    struct culet_mapping *first;
    size_t bytes, peak_bytes;
    size_t limit_bytes;
    _Atomic double deadline; /* of the process's CPU time, in seconds; another thread may bring it forward */
    bool failed;             /* an array could not grow: the analysis ends */
    bool late;               /* the deadline has passed: likewise */
};

/* All zeros: empty. */
struct culet_array {
    void *items;
    size_t bytes; /* room for items */
};

/* Makes room for `count` items. New ones are zero. Returns false without memory; the array keeps what it has. */
bool culet_array_reserve(struct culet_memory *memory, struct culet_array *array, size_t count, size_t item_bytes);

void culet_array_free(struct culet_memory *memory, struct culet_array *array);

/* Frees all arrays. */
void culet_memory_free(struct culet_memory *memory);

/* Looks at the clock. Returns whether the analysis is to end, for lack of memory or of time. */
bool culet_memory_exhausted(struct culet_memory *memory);

/* A sentence on why the analysis ended. */
const char *culet_memory_problem(const struct culet_memory *memory);

/* Defines an array of one type: NAME_add appends an item, NAME_reserve makes room, NAME_sort sorts by a function of
 * qsort(3), NAME_free frees it. Members: items, count. */
#define CULET_LIST(NAME, TYPE)                                                                                         \
    struct NAME {                                                                                                      \
        TYPE *items;                                                                                                   \
        size_t count;                                                                                                  \
        struct culet_array array;                                                                                      \
    };                                                                                                                 \
    static inline bool NAME##_reserve(struct culet_memory *memory, struct NAME *list, size_t count)                    \
    {                                                                                                                  \
        bool reserved = culet_array_reserve(memory, &list->array, count, sizeof(TYPE));                                \
        list->items = list->array.items;                                                                               \
        return reserved;                                                                                               \
    }                                                                                                                  \
    static inline bool NAME##_add(struct culet_memory *memory, struct NAME *list, TYPE item)                           \
    {                                                                                                                  \
        if ((list->count + 1) * sizeof(TYPE) > list->array.bytes && !NAME##_reserve(memory, list, list->count + 1))    \
            return false;                                                                                              \
        list->items[list->count++] = item;                                                                             \
        return true;                                                                                                   \
    }                                                                                                                  \
    static inline void NAME##_sort(struct NAME *list, int (*order)(const void *, const void *))                        \
    {                                                                                                                  \
        if (list->count > 0)                                                                                           \
            qsort(list->items, list->count, sizeof(TYPE), order);                                                      \
    }                                                                                                                  \
    static inline void NAME##_free(struct culet_memory *memory, struct NAME *list)                                     \
    {                                                                                                                  \
        culet_array_free(memory, &list->array);                                                                        \
        list->items = NULL;                                                                                            \
        list->count = 0;                                                                                               \
    }

CULET_LIST(culet_numbers, uint32_t)

/* Bits, 32 in each number. */
static inline bool culet_bits_has(const struct culet_numbers *bits, uint32_t bit)
{
    return (bits->items[bit >> 5] >> (bit & 31) & 1) != 0;
}

/* Returns whether it was set before. */
static inline bool culet_bits_set(struct culet_numbers *bits, uint32_t bit)
{
    uint32_t *word = &bits->items[bit >> 5], mask = 1u << (bit & 31);
    bool before = (*word & mask) != 0;

    *word |= mask;
    return before;
}

static inline void culet_bits_clear(struct culet_numbers *bits, uint32_t bit)
{
    bits->items[bit >> 5] &= ~(1u << (bit & 31));
}

/* The hash of a key. */
static inline uint32_t culet_hash(uint64_t key)
{
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* The hash of what has a number. */
typedef uint32_t culet_hash_function(const void *data, uint32_t number);

/* Enters the numbers from `first` on into a table with room for them. Returns false without memory. */
bool culet_table_grow(struct culet_memory *memory, struct culet_numbers *table, uint32_t first, size_t past,
                      culet_hash_function *hash, const void *data);

/* Keeps a hash table half empty, whose `count` is its size: each number is at its hash or the next free place, which is
 * 0. Returns false without memory. */
static inline bool culet_table_reserve(struct culet_memory *memory, struct culet_numbers *table, uint32_t first,
                                       size_t past, culet_hash_function *hash, const void *data)
{
    return past * 2 < table->count || culet_table_grow(memory, table, first, past, hash, data);
}
