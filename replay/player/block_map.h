/* block_map.h - address to block number: a hash table with linear probing.
 *
 * libc has none that fits: hsearch(3) cannot grow or remove, and tsearch(3) calls the malloc under test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct culet_block_map {
    struct culet_block_entry {
        uint64_t address; /* 0: empty */
        uint32_t block;
    } * entries;
    size_t size; /* a power of two */
    size_t used;
};

/* Sets the block at an address.
 *
 * @return whether the address had none; otherwise `*previous` is the block it had */
bool culet_block_map_put(struct culet_block_map *map, uint64_t address, uint32_t block, uint32_t *previous);

/* Removes the block at an address.
 *
 * @return whether there was one: `*block` */
bool culet_block_map_remove(struct culet_block_map *map, uint64_t address, uint32_t *block);

void culet_block_map_free(struct culet_block_map *map);
