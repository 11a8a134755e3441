#include "musl/musl_heap.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

/* A longer data segment is none of a C library's. */
#define MOST_DATA (UINT64_C(64) << 20)

static bool is_area(struct culet_reading *reading, uint64_t address, uint64_t secret)
{
    const unsigned char *area = culet_memory_at(&reading->memory, address, MUSL_AREA_METAS);

    return area && culet_word_at(area + MUSL_AREA_SECRET) == secret &&
           culet_int_at(area + MUSL_AREA_COUNT) == MUSL_AREA_META_COUNT;
}

/* Whether the bytes can be the context, with its members moved by `shift`: other memory is read last. */
static bool check(struct culet_reading *reading, struct culet_musl *heap, uint64_t address,
                  const unsigned char context[MUSL_CONTEXT_BYTES], uint64_t shift)
{
    uint64_t secret = culet_word_at(context + MUSL_CONTEXT_SECRET),
             first = culet_word_at(context + shift + MUSL_CONTEXT_FIRST_AREA),
             last = culet_word_at(context + shift + MUSL_CONTEXT_LAST_AREA);

    if (!secret || !first || !last || (first | last) % MUSL_AREA_BYTES ||
        culet_int_at(context + shift + MUSL_CONTEXT_INITIALIZED) != 1 || !is_area(reading, first, secret) ||
        !is_area(reading, last, secret))
        return false;
    heap->context = address;
    heap->shift = shift;
    heap->secret = secret;
    return true;
}

static bool search(struct culet_reading *reading, struct culet_musl *heap, uint64_t start, uint64_t end)
{
    const size_t bytes = MUSL_CONTEXT_BYTES + MUSL_CONTEXT_SHIFT;
    unsigned char *data = culet_new(1, (size_t)(end - start));
    bool found = false;

    /* What is not in memory is zeros, in which there is no secret. */
    culet_memory_copy(&reading->memory, start, data, (size_t)(end - start));
    for (uint64_t at = 0; at + bytes <= end - start && !found && !reading->pages.exhausted; at += 8)
        found = check(reading, heap, start + at, data + at, 0) ||
                check(reading, heap, start + at, data + at, MUSL_CONTEXT_SHIFT);
    free(data);
    return found;
}

static bool is_writable(const struct culet_mapping *mapping)
{
    return mapping->perms[0] == 'r' && mapping->perms[1] == 'w' && mapping->perms[3] == 'p';
}

/* The file's data and, behind it, the zero-initialised data, which has no name or that of the first heap by brk. */
bool culet_musl_find(struct culet_reading *reading, struct culet_musl *heap, const char *file)
{
    const struct culet_maps *maps = &reading->maps;

    for (size_t i = 0; i < maps->count; i++) {
        const struct culet_mapping *mapping = &maps->all[i];
        uint64_t end = mapping->end;
        if (!mapping->inode || !is_writable(mapping) || strcmp(mapping->path, file) != 0)
            continue;
        for (size_t n = i + 1; n < maps->count && maps->all[n].start == end && !maps->all[n].inode &&
                               is_writable(&maps->all[n]) && maps->all[n].end - mapping->start <= MOST_DATA;
             n++)
            end = maps->all[n].end;
        if (end - mapping->start <= MOST_DATA && search(reading, heap, mapping->start, end))
            return true;
    }
    return false;
}
