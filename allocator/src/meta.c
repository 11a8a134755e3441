#include "meta.h"

#include "lock.h"
#include "os.h"
#include "selfmap_export.h"

#define LINE 64

struct culet_lock culet_meta_lock;

/* Spare descriptors are linked through a member that late readers do not read. */
static const struct {
    size_t bytes, link;
} kinds[CULET_META_KINDS] = {
    [CULET_META_SLAB] = {sizeof(struct culet_slab), offsetof(struct culet_slab, next)},
    [CULET_META_LARGE] = {sizeof(struct culet_large), offsetof(struct culet_large, link.le_next)},
    [CULET_META_SEGMENT] = {sizeof(struct culet_segment), offsetof(struct culet_segment, base)},
    [CULET_META_ARENA] = {sizeof(struct culet_arena), offsetof(struct culet_arena, remote)},
};

/* [meta lock] */
static struct {
    uintptr_t at, end;
    size_t bytes;
    void *spare[CULET_META_KINDS];
} meta;
static struct culet_chunk *chunks; /* [meta lock] the newest first */

CULET_SELFMAP_EXPORT(chunks, culet_selfmap_chunks);

static void **link_of(enum culet_meta kind, void *descriptor)
{
    return (void **)((char *)descriptor + kinds[kind].link);
}

static void *carve(size_t bytes)
{
    bytes = (bytes + LINE - 1) & ~(size_t)(LINE - 1);
    if (meta.end - meta.at < bytes) {
        struct culet_chunk *chunk = culet_os_map(CULET_META_CHUNK);
        if (!chunk)
            return NULL;
        chunk->next = chunks;
        chunks = chunk;
        meta.at = (uintptr_t)chunk + LINE;
        meta.end = (uintptr_t)chunk + CULET_META_CHUNK;
        meta.bytes += CULET_META_CHUNK;
    }
    void *found = (void *)meta.at;
    meta.at += bytes;
    return found;
}

void *culet_meta_get(enum culet_meta kind)
{
    culet_lock(&culet_meta_lock);
    void *found = meta.spare[kind];
    if (found)
        meta.spare[kind] = *link_of(kind, found);
    else
        found = carve(kinds[kind].bytes);
    culet_unlock(&culet_meta_lock);
    return found;
}

void culet_meta_put(enum culet_meta kind, void *descriptor)
{
    culet_lock(&culet_meta_lock);
    *link_of(kind, descriptor) = meta.spare[kind];
    meta.spare[kind] = descriptor;
    culet_unlock(&culet_meta_lock);
}

size_t culet_meta_bytes(void)
{
    culet_lock(&culet_meta_lock);
    size_t bytes = meta.bytes;
    culet_unlock(&culet_meta_lock);
    return bytes;
}
