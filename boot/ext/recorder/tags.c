/* A page of tags covers 64 KiB of addresses, the size of a heap page (16 KiB in Ruby 3.1), with a tag per 32 bytes,
 * which is less than the smallest slot. Pages are found by a hash table with open addressing; the last page found
 * answers most look-ups. */
#include "recorder/tags.h"

#include "common/pages.h"

#define PAGE_SHIFT 16
#define SLOT_SHIFT 5
#define TAGS ((size_t)1 << (PAGE_SHIFT - SLOT_SHIFT))
#define FIRST_CAPACITY 1024

struct slot {
    uintptr_t key; /* address >> PAGE_SHIFT; 0: free */
    uint32_t *tags;
};

static struct slot *slots;
static size_t capacity, used, lost;
static struct slot last_slot;

static struct slot *slot_of(struct slot *table, size_t table_room, uintptr_t key)
{
    size_t at = key * 0x9e3779b97f4a7c15U % table_room;

    while (table[at].key != 0 && table[at].key != key)
        at = (at + 1) % table_room;
    return &table[at];
}

/* At most half full. */
static int reserve(void)
{
    size_t more = capacity == 0 ? FIRST_CAPACITY : capacity * 2;
    struct slot *table;

    if (used * 2 < capacity)
        return 1;
    table = culet_pages_grow(NULL, 0, more * sizeof(*table));
    if (table == NULL)
        return 0;
    for (size_t i = 0; i < capacity; i++)
        if (slots[i].key != 0)
            *slot_of(table, more, slots[i].key) = slots[i];
    if (slots != NULL)
        munmap(slots, capacity * sizeof(*slots));
    slots = table;
    capacity = more;
    return 1;
}

static uint32_t *tags_of(uintptr_t key, int make)
{
    struct slot *slot;

    if (last_slot.key == key)
        return last_slot.tags;
    if (make && !reserve())
        return NULL;
    if (capacity == 0)
        return NULL;
    slot = slot_of(slots, capacity, key);
    if (slot->key == 0) {
        uint32_t *tags = make ? culet_pages_grow(NULL, 0, TAGS * sizeof(*tags)) : NULL;
        if (tags == NULL)
            return NULL;
        *slot = (struct slot){key, tags};
        used++;
    }
    last_slot = *slot;
    return slot->tags;
}

static size_t index_of(VALUE object)
{
    return ((uintptr_t)object >> SLOT_SHIFT) & (TAGS - 1);
}

void culet_tags_set(VALUE object, uint32_t tag)
{
    uint32_t *tags = tags_of((uintptr_t)object >> PAGE_SHIFT, tag != 0);

    if (tags != NULL)
        tags[index_of(object)] = tag;
    else if (tag != 0)
        lost++;
}

uint32_t culet_tags_get(VALUE object)
{
    uint32_t *tags = tags_of((uintptr_t)object >> PAGE_SHIFT, 0);

    return tags == NULL ? 0 : tags[index_of(object)];
}

size_t culet_tags_lost(void)
{
    return lost;
}
