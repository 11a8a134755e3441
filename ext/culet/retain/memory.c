#include "retain/memory.h"

#include "common/pages.h"
#include "reading/clock.h"

#define FIRST_BYTES ((size_t)64 << 10)
#define FIRST_PLACES 4096               /* of a hash table */
#define DOUBLED_BYTES ((size_t)4 << 20) /* larger arrays grow by a quarter */

/* In front of an array's items. */
struct culet_mapping {
    struct culet_mapping *next, **link; /* the next one; what leads to this one */
    size_t bytes;
} __attribute__((aligned(64)));

static struct culet_mapping *mapping_of(const struct culet_array *array)
{
    return array->items != NULL ? (struct culet_mapping *)array->items - 1 : NULL;
}

static size_t grown(size_t bytes, size_t wanted)
{
    size_t next = bytes == 0 ? FIRST_BYTES : bytes + (bytes < DOUBLED_BYTES ? bytes : bytes / 4);

    if (next < wanted)
        next = wanted;
    return (next + 4095) & ~(size_t)4095;
}

bool culet_array_reserve(struct culet_memory *memory, struct culet_array *array, size_t count, size_t item_bytes)
{
    struct culet_mapping *mapping;
    size_t before, bytes;

    if (count * item_bytes <= array->bytes)
        return true;
    mapping = mapping_of(array);
    before = mapping != NULL ? mapping->bytes : 0;
    bytes = grown(before, sizeof(*mapping) + count * item_bytes);
    if (memory->bytes + bytes - before > memory->limit_bytes ||
        (mapping = culet_pages_grow(mapping, before, bytes)) == NULL) {
        memory->failed = true;
        return false;
    }
    memory->bytes += bytes - before;
    if (memory->bytes > memory->peak_bytes)
        memory->peak_bytes = memory->bytes;
    if (before == 0)
        *mapping = (struct culet_mapping){.next = memory->first, .link = &memory->first};
    mapping->bytes = bytes;
    *mapping->link = mapping;
    if (mapping->next != NULL)
        mapping->next->link = &mapping->next;
    *array = (struct culet_array){mapping + 1, bytes - sizeof(*mapping)};
    return true;
}

static void unmap(struct culet_memory *memory, struct culet_mapping *mapping)
{
    *mapping->link = mapping->next;
    if (mapping->next != NULL)
        mapping->next->link = mapping->link;
    memory->bytes -= mapping->bytes;
    munmap(mapping, mapping->bytes);
}

void culet_array_free(struct culet_memory *memory, struct culet_array *array)
{
    if (array->items != NULL)
        unmap(memory, mapping_of(array));
    *array = (struct culet_array){NULL, 0};
}

void culet_memory_free(struct culet_memory *memory)
{
    while (memory->first != NULL)
        unmap(memory, memory->first);
}

bool culet_table_grow(struct culet_memory *memory, struct culet_numbers *table, uint32_t first, size_t past,
                      culet_hash_function *hash, const void *data)
{
    size_t capacity = FIRST_PLACES;

    while (capacity <= past * 2)
        capacity *= 2;
    culet_numbers_free(memory, table);
    if (!culet_numbers_reserve(memory, table, capacity))
        return false;
    table->count = capacity;
    for (uint32_t number = first; number < past; number++) {
        size_t at = hash(data, number) & (capacity - 1);
        while (table->items[at] != 0)
            at = (at + 1) & (capacity - 1);
        table->items[at] = number;
    }
    return true;
}

bool culet_memory_exhausted(struct culet_memory *memory)
{
    if (!memory->failed && !memory->late && culet_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) > memory->deadline)
        memory->late = true;
    return memory->failed || memory->late;
}

const char *culet_memory_problem(const struct culet_memory *memory)
{
    return memory->late ? "the analysis of its objects did not finish in time; increase the limit"
                        : "the analysis of its objects needs more memory than it may use";
}
