#define _GNU_SOURCE
#include "live.h"

#include "../core/memory.h"

#define FIRST_BITS 12 /* 32 KiB of addresses */

struct culet_live culet_live;

static size_t count; /* [lock] */

static struct culet_live_table *create(unsigned bits)
{
    size_t slots = (size_t)1 << bits;
    struct culet_live_table *table = culet_profile_map(sizeof *table + slots * (sizeof(uintptr_t) + sizeof(uint32_t)));

    if (table)
        table->bits = bits;
    return table;
}

static size_t slots_of(const struct culet_live_table *table)
{
    return table ? (size_t)1 << table->bits : 0;
}

static uint32_t *numbers(struct culet_live_table *table)
{
    return (uint32_t *)(table->address + slots_of(table));
}

static uintptr_t get(struct culet_live_table *table, size_t slot)
{
    return atomic_load_explicit(&table->address[slot], memory_order_relaxed);
}

/* Released, so that who sees it sees the version that was set before. */
static void set(struct culet_live_table *table, size_t slot, uintptr_t address)
{
    atomic_store_explicit(&table->address[slot], address, memory_order_release);
}

static size_t after(const struct culet_live_table *table, size_t slot)
{
    return (slot + 1) & (slots_of(table) - 1);
}

/* The slot of an address, or the empty one where it would go. */
static size_t find(struct culet_live_table *table, uintptr_t address)
{
    size_t slot = culet_live_first_slot(table, address);

    while (get(table, slot) && get(table, slot) != address)
        slot = after(table, slot);
    return slot;
}

static void put(struct culet_live_table *table, size_t slot, uintptr_t address, uint32_t sample)
{
    numbers(table)[slot] = sample;
    set(table, slot, address);
}

/* A table with room for one more. */
static struct culet_live_table *reserve(void)
{
    struct culet_live_table *table = atomic_load_explicit(&culet_live.table, memory_order_relaxed), *larger;

    if (count < slots_of(table) / 4)
        return table;
    larger = create(table ? table->bits + 1 : FIRST_BITS);
    if (!larger)
        return NULL;
    for (size_t i = 0; i < slots_of(table); i++)
        if (get(table, i))
            put(larger, find(larger, get(table, i)), get(table, i), numbers(table)[i]);
    atomic_store_explicit(&culet_live.table, larger, memory_order_release);
    return larger;
}

bool culet_live_add(const void *block, uint32_t sample, uint32_t *before)
{
    struct culet_live_table *table = reserve();

    if (!table)
        return false;
    size_t slot = find(table, (uintptr_t)block);
    bool there = get(table, slot) != 0;
    *before = there ? numbers(table)[slot] : 0;
    put(table, slot, (uintptr_t)block, sample);
    count += !there;
    return true;
}

/* Whether the address in `slot` may be moved to `hole`: its first slot does not lie between them. */
static bool movable(const struct culet_live_table *table, size_t slot, size_t hole, uintptr_t address)
{
    size_t mask = slots_of(table) - 1, first = culet_live_first_slot(table, address);

    return ((slot - first) & mask) >= ((slot - hole) & mask);
}

/* Empties a slot; the addresses behind it move up. */
static void close_gap(struct culet_live_table *table, size_t hole)
{
    for (size_t slot = after(table, hole); get(table, slot); slot = after(table, slot)) {
        if (!movable(table, slot, hole, get(table, slot)))
            continue;
        put(table, hole, get(table, slot), numbers(table)[slot]);
        hole = slot;
    }
    set(table, hole, 0);
}

uint32_t culet_live_remove(const void *block)
{
    struct culet_live_table *table = atomic_load_explicit(&culet_live.table, memory_order_relaxed);

    if (!table)
        return 0;
    size_t slot = find(table, (uintptr_t)block);
    if (!get(table, slot))
        return 0;
    uint32_t sample = numbers(table)[slot], version = atomic_load_explicit(&culet_live.version, memory_order_relaxed);
    atomic_store_explicit(&culet_live.version, version + 1, memory_order_relaxed);
    close_gap(table, slot);
    atomic_store_explicit(&culet_live.version, version + 2, memory_order_release);
    count--;
    return sample;
}

size_t culet_live_count(void)
{
    return count;
}
