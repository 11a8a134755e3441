#include "empty_block.h"

#include "harden.h"
#include "os.h"

/* Places that a request looks at before it gives up. */
#define LOOKS 64

_Atomic uintptr_t culet_empty_blocks;
static _Atomic uint32_t next;

/* The range is followed by its bits; of two threads that map one, the second unmaps its own. */
static uintptr_t range(void)
{
    uintptr_t start = atomic_load_explicit(&culet_empty_blocks, memory_order_acquire), none = 0;
    size_t page = culet_os_page_bytes(), bits = (CULET_EMPTY_BLOCKS / 8 + page - 1) & ~(page - 1);

    if (CULET_LIKELY(start))
        return start;
    start = (uintptr_t)culet_os_reserve(CULET_EMPTY_BLOCKS_BYTES + bits);
    if (!start)
        return 0;
    bool open = culet_os_open((void *)(start + CULET_EMPTY_BLOCKS_BYTES), bits);
    if (open && atomic_compare_exchange_strong_explicit(&culet_empty_blocks, &none, start, memory_order_acq_rel,
                                                        memory_order_acquire))
        return start;
    culet_os_unmap((void *)start, CULET_EMPTY_BLOCKS_BYTES + bits);
    return open ? none : 0;
}

static _Atomic uint64_t *word_of(uintptr_t start, size_t block)
{
    return (_Atomic uint64_t *)(start + CULET_EMPTY_BLOCKS_BYTES) + block / 64;
}

/* In turn, so that a freed address comes back late; in a hardened process in steps that cannot be known. */
void *culet_empty_block_get(void)
{
    uintptr_t start = range();

    for (unsigned i = 0; start && i < LOOKS; i++) {
        uint32_t step = 1 + (culet_harden_level ? culet_harden_random_below(8) : 0);
        size_t block = atomic_fetch_add_explicit(&next, step, memory_order_relaxed) % CULET_EMPTY_BLOCKS;
        uint64_t bit = UINT64_C(1) << block % 64;
        if (!(atomic_fetch_or_explicit(word_of(start, block), bit, memory_order_relaxed) & bit))
            return (void *)(start + block * CULET_ALIGNMENT);
    }
    return NULL;
}

/* The word with the block's bit; NULL if no block starts at the address. */
static _Atomic uint64_t *find(const void *address, uint64_t *bit)
{
    uintptr_t start = atomic_load_explicit(&culet_empty_blocks, memory_order_acquire);
    size_t offset = (uintptr_t)address - start, block = offset / CULET_ALIGNMENT;

    *bit = UINT64_C(1) << block % 64;
    return offset % CULET_ALIGNMENT ? NULL : word_of(start, block);
}

bool culet_empty_block_is_live(const void *address)
{
    uint64_t bit;
    _Atomic uint64_t *word = find(address, &bit);

    return word && atomic_load_explicit(word, memory_order_relaxed) & bit;
}

bool culet_empty_block_put(const void *address)
{
    uint64_t bit;
    _Atomic uint64_t *word = find(address, &bit);

    return word && atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed) & bit;
}
