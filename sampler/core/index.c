#include "index.h"

#include "memory.h"

#define FIRST_SLOTS 1024u /* a page of 4 KiB */
#define FIRST_BITS 10u

bool culet_index_create(struct culet_index *index)
{
    *index = (struct culet_index){
        .slot = culet_profile_map(FIRST_SLOTS * sizeof *index->slot), .slots = FIRST_SLOTS, .shift = 64 - FIRST_BITS};
    return index->slot != NULL;
}

void culet_index_destroy(struct culet_index *index)
{
    culet_profile_unmap(index->slot, index->slots * sizeof *index->slot);
    *index = (struct culet_index){0};
}

void culet_index_grow(struct culet_index *index, culet_index_hash *hash_of, const void *table)
{
    struct culet_index grown = {.slots = 2 * index->slots, .used = index->used, .shift = index->shift - 1};

    grown.slot = culet_profile_map(grown.slots * sizeof *grown.slot);
    if (!grown.slot)
        return;
    for (uint32_t i = 0; i < index->slots; i++) {
        uint32_t number = index->slot[i], at;
        if (!number)
            continue;
        for (at = culet_index_first(&grown, hash_of(table, number)); grown.slot[at]; at = culet_index_next(&grown, at))
            continue;
        grown.slot[at] = number;
    }
    culet_profile_unmap(index->slot, index->slots * sizeof *index->slot);
    *index = grown;
}
