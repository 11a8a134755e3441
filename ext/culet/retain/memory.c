#include "retain/memory.h"

#include "common/pages.h"
#include "reading/clock.h"

#define FIRST_BYTES ((size_t)64 << 10)
#define FIRST_PLACES 4096               /* of a hash table */
#define DOUBLED_BYTES ((size_t)4 << 20) /* larger arrays grow by a quarter */

static size_t grown(size_t bytes, size_t wanted)
{
    size_t next = bytes == 0 ? FIRST_BYTES : bytes + (bytes < DOUBLED_BYTES ? bytes : bytes / 4);

    if (next < wanted)
        next = wanted;
    return (next + 4095) & ~(size_t)4095;
}

bool culet_array_reserve(struct culet_memory *memory, struct culet_array *array, size_t count, size_t item_bytes)
{
    size_t bytes;
    void *items;

    if (count * item_bytes <= array->bytes)
        return true;
    bytes = grown(array->bytes, count * item_bytes);
    if (memory->bytes + bytes - array->bytes > memory->limit_bytes) {
        memory->failed = true;
        return false;
    }
    items = culet_pages_grow(array->items, array->bytes, bytes);
    if (items == NULL) {
        memory->failed = true;
        return false;
    }
    memory->bytes += bytes - array->bytes;
    if (memory->bytes > memory->peak_bytes)
        memory->peak_bytes = memory->bytes;
    array->items = items;
    array->bytes = bytes;
    return true;
}

void culet_array_free(struct culet_memory *memory, struct culet_array *array)
{
    if (array->items != NULL)
        munmap(array->items, array->bytes);
    memory->bytes -= array->bytes;
    array->items = NULL;
    array->bytes = 0;
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
