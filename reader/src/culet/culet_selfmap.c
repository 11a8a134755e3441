#include "culet/culet_selfmap.h"

#include "base/bytes.h"
#include "base/text.h"
#include "process/mapping_names.h"

#include <string.h>

/* Bytes searched per mapping: relocated constants take a few pages. */
#define MOST_SCANNED ((uint64_t)1 << 20)

static bool is_library(const struct culet_mapping *mapping)
{
    return mapping->inode && culet_starts_with(culet_mapping_base(mapping->path), "libculet.so");
}

const struct culet_mapping *culet_selfmap_library(const struct culet_maps *maps)
{
    return CULET_MAPPING_WHERE(maps, mapping, is_library(mapping));
}

static bool is_power_of_two(uint64_t number)
{
    return number && !(number & (number - 1));
}

static bool is_between(uint64_t number, uint64_t least, uint64_t most)
{
    return number >= least && number <= most;
}

/* Whether a member of `bytes` at `offset` lies in a structure of `whole` bytes. */
static bool fits(unsigned offset, unsigned bytes, unsigned whole)
{
    return offset + bytes <= whole;
}

static bool are_numbers_valid(const struct culet_selfmap *s)
{
    return is_power_of_two(s->page_bytes) && is_between(s->page_bytes, 4096, 65536) && s->segment_pages % 64 == 0 &&
           is_between(s->segment_pages, 64, 65536) && is_between(s->segment_entries, 1, 1u << 24) &&
           is_between(s->class_entries, 2, 4096) && is_between(s->sizes, 1, s->class_entries) &&
           s->extent_entries <= 4096 && is_between(s->chunk_bytes, 4096, 1u << 24) && s->chunk_bytes % 4096 == 0 &&
           is_between(s->root_entries, 1, 1u << 26) && is_between(s->leaf_entries, 512, 1u << 24) &&
           is_between(s->address_bits, 40, 57) && is_power_of_two(s->slab_bit) && s->slab_bit > 1 &&
           is_power_of_two(s->checked_slab_bit) && s->checked_slab_bit > 1 && is_power_of_two(s->span_alignment) &&
           is_between(s->unit_blocks, 1, 64) && s->bss < s->bss_end && s->bss_end - s->bss < UINT64_C(1) << 32;
}

static bool are_offsets_valid(const struct culet_selfmap *s)
{
    unsigned bitmap = s->segment_pages / 8;

    return fits(s->segment.base, 8, s->segment.bytes) && fits(s->segment.used, bitmap, s->segment.bytes) &&
           fits(s->segment.dirty, bitmap, s->segment.bytes) && fits(s->klass.size, 4, s->klass.bytes) &&
           fits(s->klass.count, 2, s->klass.bytes) && fits(s->klass.pages, 1, s->klass.bytes) &&
           fits(s->span.start, 8, s->slab.bytes) && fits(s->span.kind, 1, s->slab.bytes) &&
           fits(s->span.klass, 1, s->slab.bytes) && fits(s->slab.units, s->slab.unit_bytes, s->slab.bytes) &&
           fits(s->slab.free, 8, s->slab.unit_bytes) && fits(s->slab.remote, 8, s->slab.unit_bytes) &&
           fits(s->span.start, 8, s->large.bytes) && fits(s->span.kind, 1, s->large.bytes) &&
           fits(s->large.length, 8, s->large.bytes) && fits(s->large.ending, 1, s->large.bytes) &&
           fits(s->large.next, 8, s->large.bytes) && fits(s->extent.start, 8, s->extent.bytes) &&
           fits(s->extent.length, 8, s->extent.bytes) && fits(s->chunk.next, 8, s->chunk_bytes) &&
           s->slab.bytes <= 4096 && s->large.bytes <= 4096 && s->segment.bytes <= 16384;
}

static bool is_valid(const struct culet_selfmap *self, uint64_t at, const char **why)
{
    if (self->self != at)
        return false; /* another copy of the magic bytes */
    if (self->version != CULET_SELFMAP_VERSION || self->bytes < sizeof *self) {
        *why = "The process runs another version of culet, whose heap this version cannot read";
        return false;
    }
    if (!are_numbers_valid(self) || !are_offsets_valid(self)) {
        *why = "The record of its heap that libculet.so has in the process is damaged";
        return false;
    }
    return true;
}

static bool find_in(struct culet_reading *reading, const struct culet_mapping *mapping, struct culet_selfmap *self,
                    const char **why)
{
    uint64_t end = mapping->end - mapping->start > MOST_SCANNED ? mapping->start + MOST_SCANNED : mapping->end;

    for (uint64_t at = mapping->start; at + sizeof *self <= end && !reading->pages.exhausted; at += 8) {
        if (at % reading->page_bytes == 0)
            culet_reading_yield(reading);
        const void *magic = culet_memory_at(&reading->memory, at, sizeof self->magic);
        if (!magic) { /* not in memory: on to the next page */
            at = (at | (reading->page_bytes - 1)) + 1 - 8;
            continue;
        }
        if (memcmp(magic, CULET_SELFMAP_MAGIC, sizeof self->magic) == 0 &&
            culet_memory_copy(&reading->memory, at, self, sizeof *self) && is_valid(self, at, why))
            return true;
    }
    return false;
}

bool culet_selfmap_find(struct culet_reading *reading, struct culet_selfmap *self, const char **why)
{
    *why = "libculet.so is in the process, but no record of its heap was found: it is an older version of culet, or "
           "the record is in swap";
    for (size_t i = 0; i < reading->maps.count; i++) {
        const struct culet_mapping *mapping = &reading->maps.all[i];
        /* The record is relocated at load time, then read-only. */
        if (is_library(mapping) && mapping->perms[0] == 'r' && mapping->perms[2] != 'x' &&
            find_in(reading, mapping, self, why))
            return true;
    }
    return false;
}

static bool is_shape_valid(const struct culet_selfmap *self, const struct culet_shape *shape)
{
    uint32_t room = (self->slab.bytes - self->slab.units) / self->slab.unit_bytes;

    return shape->size && shape->size % CULET_BLOCK_UNIT == 0 && shape->blocks && shape->pages &&
           shape->pages <= self->segment_pages && (shape->blocks - 1) / self->unit_blocks < room &&
           (uint64_t)shape->size * shape->blocks <= (uint64_t)shape->pages * self->page_bytes;
}

bool culet_selfmap_shapes(struct culet_reading *reading, const struct culet_selfmap *self, struct culet_shape *shapes)
{
    shapes[0] = (struct culet_shape){0};
    for (uint32_t k = 1; k < self->class_entries; k++) {
        const unsigned char *at =
            culet_memory_at(&reading->memory, self->classes + (uint64_t)k * self->klass.bytes, self->klass.bytes);
        if (!at)
            return false;
        shapes[k] = (struct culet_shape){.size = culet_int_at(at + self->klass.size),
                                         .blocks = culet_half_at(at + self->klass.count),
                                         .pages = at[self->klass.pages]};
        if (!is_shape_valid(self, &shapes[k]))
            return false;
    }
    return true;
}
