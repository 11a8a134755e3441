/* live.h - the live samples: address of a block -> number of its sample.
 *
 * Each free looks here, so a look takes no lock: a hash table with linear probing that is three quarters empty. An
 * addition fills an empty slot, which hides no address. A removal may move others; it changes `version`, and a look that
 * finds nothing while it does so has the lock taken. A larger table takes the place of a full one, which stays mapped:
 * another thread may be looking into it. It finds there what it frees, since blocks that the larger table alone has are
 * younger than that. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct culet_live_table {
    unsigned bits;
    _Atomic uintptr_t address[]; /* 1 << bits, 0: empty; then as many numbers */
};

struct culet_live {
    _Alignas(64) _Atomic(struct culet_live_table *) table; /* NULL until there has been a sample */
    _Atomic uint32_t version;                              /* odd while addresses are being moved */
};

extern struct culet_live culet_live;

static inline size_t culet_live_first_slot(const struct culet_live_table *table, uintptr_t address)
{
    return (size_t)((uint64_t)(address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - table->bits));
}

/* Whether a block may be a sample: false is certain, if the caller is about to free it. */
static inline bool culet_live_has(const void *block)
{
    struct culet_live_table *table = atomic_load_explicit(&culet_live.table, memory_order_acquire);

    if (__builtin_expect(!table, 1))
        return false;
    uint32_t version = atomic_load_explicit(&culet_live.version, memory_order_acquire);
    size_t slot = culet_live_first_slot(table, (uintptr_t)block), mask = ((size_t)1 << table->bits) - 1;
    for (;; slot = (slot + 1) & mask) {
        /* Acquired, so that the version is read afterwards. */
        uintptr_t address = atomic_load_explicit(&table->address[slot], memory_order_acquire);
        if (__builtin_expect(address == (uintptr_t)block, 0))
            return true;
        if (__builtin_expect(!address, 1))
            return version & 1 || atomic_load_explicit(&culet_live.version, memory_order_relaxed) != version;
    }
}

/* Adds an address, or gives it another number. Stores the former one, or 0. False: no memory. [lock] */
bool culet_live_add(const void *block, uint32_t sample, uint32_t *before);

/* Removes an address. Returns its number; 0: it is not there. [lock] */
uint32_t culet_live_remove(const void *block);

/* Number of addresses. [lock] */
size_t culet_live_count(void);
