#include "glibc/glibc_heap.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Larger data segments, of static programs, are not searched. */
#define MOST_DATA (UINT64_C(64) << 20)

static bool is_libc(const char *path)
{
    const char *name = strrchr(path, '/');

    return name && (culet_starts_with(name, "/libc.so.6") || culet_starts_with(name, "/libc-2."));
}

static bool search_mapping(struct culet_reading *reading, struct culet_glibc *heap, const struct culet_mapping *mapping)
{
    size_t bytes = (size_t)(mapping->end - mapping->start);
    bool found;

    if (!culet_starts_with(mapping->perms, "rw") || bytes > MOST_DATA)
        return false;
    unsigned char *data = culet_new(bytes, 1);
    culet_memory_copy(&reading->memory, mapping->start, data, bytes);
    found = culet_glibc_arenas_find_main(reading, heap, data, mapping->start, bytes);
    if (found)
        culet_glibc_parameters_find(reading, heap, data, mapping->start, bytes);
    free(data);
    return found;
}

static void find_text(struct culet_reading *reading, struct culet_glibc *heap, const struct culet_mapping *data)
{
    heap->library = data->path;
    for (size_t i = 0; i < reading->maps.count; i++) {
        const struct culet_mapping *mapping = &reading->maps.all[i];
        if (mapping->perms[2] == 'x' && mapping->inode == data->inode && strcmp(mapping->path, data->path) == 0) {
            heap->text_start = mapping->start;
            heap->text_end = mapping->end;
        }
    }
}

bool culet_glibc_find(struct culet_reading *reading, struct culet_glibc *heap)
{
    for (int in_program = 0; in_program < 2; in_program++)
        for (size_t i = 0; i < reading->maps.count; i++) {
            const struct culet_mapping *mapping = &reading->maps.all[i];
            if (!mapping->inode ||
                (in_program ? strcmp(mapping->path, reading->program) != 0 : !is_libc(mapping->path)))
                continue;
            culet_reading_yield(reading);
            if (!reading->pages.exhausted && search_mapping(reading, heap, mapping)) {
                find_text(reading, heap, mapping);
                return true;
            }
        }
    return false;
}
