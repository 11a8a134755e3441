#include "block_map.h"

#include "mapping.h"

/* Knuth's multiplicative hashing (The Art of Computer Programming, volume 3, 6.4): 2^64 / golden ratio. */
#define GOLDEN 0x9e3779b97f4a7c15u

static size_t home(const struct culet_block_map *map, uint64_t address)
{
    return (size_t)(address * GOLDEN >> 20) & (map->size - 1);
}

static size_t find(const struct culet_block_map *map, uint64_t address)
{
    size_t at = home(map, address);

    while (map->entries[at].address && map->entries[at].address != address)
        at = (at + 1) & (map->size - 1);
    return at;
}

/* At most half of the entries are used, for short probes. */
static void make_room(struct culet_block_map *map)
{
    struct culet_block_map larger = {.size = map->size ? 2 * map->size : 4096, .used = map->used};

    if (map->size && map->used < map->size / 2)
        return;
    larger.entries = culet_mapping_new(larger.size, sizeof *larger.entries);
    for (size_t i = 0; i < map->size; i++)
        if (map->entries[i].address)
            larger.entries[find(&larger, map->entries[i].address)] = map->entries[i];
    culet_block_map_free(map);
    *map = larger;
}

bool culet_block_map_put(struct culet_block_map *map, uint64_t address, uint32_t block, uint32_t *previous)
{
    make_room(map);
    struct culet_block_entry *entry = &map->entries[find(map, address)];
    bool fresh = !entry->address;

    *previous = entry->block;
    map->used += fresh;
    entry->address = address;
    entry->block = block;
    return fresh;
}

/* Moves later entries up, so that probes find them (Knuth, 6.4, algorithm R). */
static void close_gap(struct culet_block_map *map, size_t hole)
{
    size_t mask = map->size - 1;

    for (size_t at = (hole + 1) & mask; map->entries[at].address; at = (at + 1) & mask) {
        if (((at - home(map, map->entries[at].address)) & mask) < ((at - hole) & mask))
            continue;
        map->entries[hole] = map->entries[at];
        hole = at;
    }
    map->entries[hole].address = 0;
}

bool culet_block_map_remove(struct culet_block_map *map, uint64_t address, uint32_t *block)
{
    if (!map->size)
        return false;

    size_t at = find(map, address);
    if (!map->entries[at].address)
        return false;
    *block = map->entries[at].block;
    map->used--;
    close_gap(map, at);
    return true;
}

void culet_block_map_free(struct culet_block_map *map)
{
    if (map->entries)
        culet_mapping_free(map->entries, map->size, sizeof *map->entries);
    map->entries = NULL;
    map->size = 0;
}
