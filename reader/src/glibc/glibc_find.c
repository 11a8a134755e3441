#include "glibc/glibc_heap.h"

#include "base/bytes.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- mp_ (struct malloc_par) ---- */

/* DEFAULT_MMAP_MAX: M_MMAP_MAX, unless the program changes it; few programs set a larger one. */
#define DEFAULT_MMAP_MAX 65536

/* Whether sbrk_base may be at `at`, by the members before it: from at - before on int n_mmaps, n_mmaps_max,
 * max_n_mmaps, no_dyn_threshold; from at - 16 on size_t mmapped_mem, max_mmapped_mem. */
static bool is_sbrk_base(const unsigned char *data, size_t at, unsigned before)
{
    int32_t counts[4];
    uint64_t mapped, most;

    memcpy(counts, data + at - before, sizeof counts);
    mapped = culet_word_at(data + at - 16);
    most = culet_word_at(data + at - 8);
    /* Multiples of pages, except from 2.43 on, where a grown chunk (mremap) adds the 16 bytes of its header. */
    return counts[0] >= 0 && counts[1] >= 0 && counts[2] >= counts[0] && (counts[3] & ~1) == 0 && mapped <= most &&
           mapped % 16 == 0 && most % 16 == 0 && !counts[0] == !mapped && !counts[2] == !most &&
           (counts[1] == DEFAULT_MMAP_MAX || (counts[0] <= counts[1] && most));
}

/* Where sbrk_base may point, the safest criterion first, because a static program has much data that looks like mp_:
 * into brk's heap; into a mapping, if brk failed from the start; nowhere, if the main arena has never asked for
 * memory. */
enum base { IN_BRK, IN_MAPPING, NOWHERE, BASES };

static bool is_base(struct culet_reading *reading, uint64_t word, uint32_t most_mmaps, enum base kind)
{
    const struct culet_mapping *mapping = word ? culet_maps_at(&reading->maps, word) : NULL;

    if (kind == NOWHERE)
        return !word && most_mmaps == DEFAULT_MMAP_MAX;
    return mapping && culet_mapping_is_heap_like(mapping) &&
           (kind == IN_MAPPING || strcmp(mapping->path, "[heap]") == 0);
}

static bool find_parameters_at(struct culet_reading *reading, struct culet_glibc *heap, const unsigned char *data,
                               uint64_t base, size_t bytes, unsigned before, enum base kind)
{
    for (size_t at = 40; at + 8 <= bytes; at += 8) {
        if (!is_sbrk_base(data, at, before))
            continue;
        if (!is_base(reading, culet_word_at(data + at), culet_int_at(data + at - before + 4), kind))
            continue;
        heap->counts_before = before;
        heap->sbrk_field = base + at;
        return true;
    }
    return false;
}

/* Finds mp_ in libc's data, of which `data` is a copy: `bytes` from address `base` on. */
static void find_parameters(struct culet_reading *reading, struct culet_glibc *heap, const unsigned char *data,
                            uint64_t base, size_t bytes)
{
    for (enum base kind = IN_BRK; kind < BASES; kind++)
        if (find_parameters_at(reading, heap, data, base, bytes, CULET_GLIBC_COUNTS_NEW, kind) ||
            find_parameters_at(reading, heap, data, base, bytes, CULET_GLIBC_COUNTS_OLD, kind))
            return;
}

uint64_t culet_glibc_parameters_read(struct culet_reading *reading, struct culet_glibc *heap)
{
    uint64_t counts, base;

    if (!heap->sbrk_field || !culet_memory_word(&reading->memory, heap->sbrk_field - heap->counts_before, &counts) ||
        !culet_memory_word(&reading->memory, heap->sbrk_field - 16, &heap->mmapped_bytes) ||
        !culet_memory_word(&reading->memory, heap->sbrk_field, &base))
        return 0;
    heap->n_mmaps = counts & UINT32_MAX;
    return base;
}

/* ---- libc's data ---- */

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
        find_parameters(reading, heap, data, mapping->start, bytes);
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
