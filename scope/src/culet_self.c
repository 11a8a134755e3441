#include "culet_self.h"

#include "../format.h"
#include "names.h"

#include <string.h>

/* A library's relocated constants take a few pages; nothing is looked for beyond this. */
#define MOST_SCANNED ((uint64_t)1 << 20)

static bool is_library(const struct culet_mapping *mapping)
{
    return mapping->inode && strncmp(culet_names_base(mapping->path), "libculet.so", 11) == 0;
}

const struct culet_mapping *culet_self_library(const struct culet_maps *maps)
{
    for (size_t i = 0; i < maps->count; i++)
        if (is_library(&maps->all[i]))
            return &maps->all[i];
    return NULL;
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

static bool numbers_make_sense(const struct culet_selfmap *s)
{
    return is_power_of_two(s->granule_bytes) && is_between(s->granule_bytes, 4096, 65536) &&
           s->segment_granules % 64 == 0 && is_between(s->segment_granules, 64, 65536) &&
           is_between(s->segment_entries, 1, 1u << 24) && is_between(s->class_entries, 2, 4096) &&
           is_between(s->sizes, 1, s->class_entries) && s->extent_entries <= 4096 &&
           is_between(s->chunk_bytes, 4096, 1u << 24) && s->chunk_bytes % 4096 == 0 &&
           is_between(s->root_entries, 1, 1u << 26) && is_between(s->leaf_entries, 512, 1u << 24) &&
           is_between(s->address_bits, 40, 57) && is_between(s->class_shift, s->address_bits, 63) &&
           s->bss < s->bss_end && s->bss_end - s->bss < UINT64_C(1) << 32;
}

static bool offsets_make_sense(const struct culet_selfmap *s)
{
    unsigned bitmap = s->segment_granules / 8;

    return fits(s->segment.base, 8, s->segment.bytes) && fits(s->segment.used, bitmap, s->segment.bytes) &&
           fits(s->segment.dirty, bitmap, s->segment.bytes) && fits(s->klass.size, 4, s->klass.bytes) &&
           fits(s->klass.count, 2, s->klass.bytes) && fits(s->klass.unit_shift, 1, s->klass.bytes) &&
           fits(s->klass.granules, 1, s->klass.bytes) && fits(s->owner.start, 8, s->slab.bytes) &&
           fits(s->owner.kind, 1, s->slab.bytes) && fits(s->owner.klass, 1, s->slab.bytes) &&
           fits(s->slab.units, s->slab.unit_bytes, s->slab.bytes) && fits(s->slab.live, 8, s->slab.unit_bytes) &&
           fits(s->slab.claimed, 8, s->slab.unit_bytes) &&
           fits(s->owner.start, 8, s->large.bytes) && fits(s->owner.kind, 1, s->large.bytes) &&
           fits(s->large.length, 8, s->large.bytes) && fits(s->large.ending, 1, s->large.bytes) &&
           fits(s->large.next, 8, s->large.bytes) && fits(s->extent.start, 8, s->extent.bytes) &&
           fits(s->extent.length, 8, s->extent.bytes) && fits(s->chunk.next, 8, s->chunk_bytes) &&
           s->slab.bytes <= 4096 && s->large.bytes <= 4096 && s->segment.bytes <= 16384;
}

static bool make_sense(const struct culet_selfmap *self, uint64_t at, const char **why)
{
    if (self->self != at)
        return false; /* a copy of the magic: not the record */
    if (self->version != CULET_SELFMAP_VERSION || self->bytes < sizeof *self) {
        *why = "The process runs another version of culet, whose heap this one cannot read";
        return false;
    }
    if (!numbers_make_sense(self) || !offsets_make_sense(self)) {
        *why = "What libculet.so says of its heap in the process is damaged";
        return false;
    }
    return true;
}

static bool find_in(struct culet_scope *scope, const struct culet_mapping *mapping, struct culet_selfmap *self,
                    const char **why)
{
    uint64_t end = mapping->end - mapping->start > MOST_SCANNED ? mapping->start + MOST_SCANNED : mapping->end;

    for (uint64_t at = mapping->start; at + sizeof *self <= end && !scope->pages.spent; at += 8) {
        if (at % scope->page_bytes == 0)
            culet_scope_breathe(scope);
        const void *magic = culet_memory_at(&scope->memory, at, sizeof self->magic);
        if (!magic) { /* nothing there yet: on to the next page */
            at = (at | (scope->page_bytes - 1)) + 1 - 8;
            continue;
        }
        if (memcmp(magic, CULET_SELFMAP_MAGIC, sizeof self->magic) == 0 &&
            culet_memory_copy(&scope->memory, at, self, sizeof *self) && make_sense(self, at, why))
            return true;
    }
    return false;
}

bool culet_self_find(struct culet_scope *scope, struct culet_selfmap *self, const char **why)
{
    *why = "libculet.so is in the process, but has no record of its heap: it is an older version of culet, or the page "
           "with it is swapped out";
    for (size_t i = 0; i < scope->maps.count; i++) {
        const struct culet_mapping *mapping = &scope->maps.all[i];
        /* Relocated, so written to once, then made read-only. */
        if (is_library(mapping) && mapping->perms[0] == 'r' && mapping->perms[2] != 'x' &&
            find_in(scope, mapping, self, why))
            return true;
    }
    return false;
}

static bool shape_makes_sense(const struct culet_selfmap *self, const struct culet_shape *shape)
{
    uint32_t room = (self->slab.bytes - self->slab.units) / self->slab.unit_bytes;

    return shape->size && shape->size % CULET_BLOCK_UNIT == 0 && shape->unit_shift <= 6 && shape->blocks &&
           shape->granules && shape->granules <= self->segment_granules &&
           ((shape->blocks - 1) >> shape->unit_shift) < room &&
           (uint64_t)shape->size * shape->blocks <= (uint64_t)shape->granules * self->granule_bytes;
}

bool culet_self_shapes(struct culet_scope *scope, const struct culet_selfmap *self, struct culet_shape *shapes)
{
    shapes[0] = (struct culet_shape){0};
    for (uint32_t k = 1; k < self->class_entries; k++) {
        const unsigned char *at = culet_memory_at(&scope->memory, self->classes + (uint64_t)k * self->klass.bytes,
                                                  self->klass.bytes);
        uint32_t size;
        uint16_t count;
        if (!at)
            return false;
        memcpy(&size, at + self->klass.size, sizeof size);
        memcpy(&count, at + self->klass.count, sizeof count);
        shapes[k] = (struct culet_shape){.size = size,
                                         .blocks = count,
                                         .unit_shift = at[self->klass.unit_shift],
                                         .granules = at[self->klass.granules]};
        if (!shape_makes_sense(self, &shapes[k]))
            return false;
    }
    return true;
}
