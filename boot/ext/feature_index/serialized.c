#include "feature_index/serialized.h"

#include <string.h>

uint32_t culet_index_hash(const char *name, size_t length)
{
    uint32_t hash = UINT32_C(2166136261);
    size_t i;

    for (i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)name[i]) * UINT32_C(16777619);
    return hash ^ hash >> 15;
}

/* Multiplies each word by an odd number (2^64 over the golden ratio) and folds the upper half into the lower. */
uint64_t culet_index_sum(const void *bytes, size_t count)
{
    const uint8_t *from = bytes;
    uint64_t sum = 0, word;

    while (count > 0) {
        size_t piece = count < sizeof(word) ? count : sizeof(word);

        word = 0;
        memcpy(&word, from, piece);
        sum = (sum ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        sum ^= sum >> 32;
        from += piece;
        count -= piece;
    }
    return sum;
}

static int inside(uint64_t bytes, uint32_t at, uint64_t count, size_t size)
{
    return at % 8 == 0 && at >= sizeof(struct culet_index_header) && at <= bytes && count * size <= bytes - at;
}

const char *culet_index_check(struct culet_index *index, const void *base, size_t bytes)
{
    const struct culet_index_header *header = base;

    if (bytes < sizeof(*header) || bytes > CULET_INDEX_MAX_BYTES)
        return "it does not have the size of an index";
    if (memcmp(header->magic, CULET_INDEX_MAGIC, sizeof(header->magic)) != 0)
        return "it is not an index";
    if (header->byte_order != CULET_INDEX_BYTE_ORDER)
        return "it was written on a machine with another byte order";
    if (header->version != CULET_INDEX_VERSION)
        return "it was written by another version of culet";
    if (header->bytes != bytes)
        return "it is truncated";
    if (header->buckets == 0 || (header->buckets & (header->buckets - 1)) != 0 || header->nodes == CULET_INDEX_NONE ||
        !inside(bytes, header->roots_at, header->roots, sizeof(struct culet_index_root)) ||
        !inside(bytes, header->stamps_at, header->stamps, sizeof(struct culet_stamp)) ||
        !inside(bytes, header->nodes_at, header->nodes, sizeof(struct culet_node)) ||
        !inside(bytes, header->buckets_at, header->buckets, sizeof(uint32_t)) ||
        !inside(bytes, header->text_at, header->text_bytes, 1))
        return "its tables are out of bounds";

    index->base = base;
    index->bytes = bytes;
    index->in_memory = 0;
    index->header = header;
    index->roots = (const void *)(index->base + header->roots_at);
    index->stamps = (const void *)(index->base + header->stamps_at);
    index->nodes = (const void *)(index->base + header->nodes_at);
    index->buckets = (const void *)(index->base + header->buckets_at);
    index->text = (const char *)index->base + header->text_at;
    return NULL;
}

size_t culet_index_extension(uint32_t kind)
{
    if (kind == CULET_NODE_RUBY)
        return strlen(".rb");
    return kind == CULET_NODE_NATIVE ? strlen(CULET_NATIVE_EXTENSION) : 0;
}

const struct culet_node *culet_index_node(const struct culet_index *index, uint32_t number, const char **path)
{
    const struct culet_node *node;

    if (number >= index->header->nodes)
        return NULL;
    node = &index->nodes[number];
    if (node->root >= index->header->roots || node->kind > CULET_NODE_ROOT)
        return NULL;
    if (node->path >= index->header->text_bytes || node->length >= index->header->text_bytes - node->path)
        return NULL;
    if ((size_t)node->suffix + culet_index_extension(node->kind) > node->length)
        return NULL;
    if (index->text[node->path + node->length] != '\0' || index->text[node->path] != '/')
        return NULL;
    *path = index->text + node->path;
    return node;
}

const struct culet_stamp *culet_index_stamp(const struct culet_index *index, const struct culet_node *node)
{
    return node->stamp < index->header->stamps ? &index->stamps[node->stamp] : NULL;
}

void culet_index_look_up(struct culet_index_lookup *lookup, const struct culet_index *index, const char *name,
                         size_t length)
{
    lookup->index = index;
    lookup->name = name;
    lookup->length = length;
    lookup->hash = culet_index_hash(name, length);
    lookup->next = index->header->buckets == 0 ? 0 : index->buckets[lookup->hash & (index->header->buckets - 1)];
}

const struct culet_node *culet_index_next(struct culet_index_lookup *lookup, const char **path)
{
    while (lookup->next != 0) {
        const struct culet_node *node = culet_index_node(lookup->index, lookup->next - 1, path);

        if (node == NULL)
            return NULL;
        /* A chain leads to earlier nodes only, so that it ends. */
        lookup->next = node->next < lookup->next ? node->next : 0;
        if (node->hash == lookup->hash &&
            node->length - node->suffix - culet_index_extension(node->kind) == lookup->length &&
            memcmp(*path + node->suffix, lookup->name, lookup->length) == 0)
            return node;
    }
    return NULL;
}

uint32_t culet_index_root(const struct culet_index *index, const char *path, size_t length)
{
    struct culet_index_lookup lookup;
    const struct culet_node *node;
    const char *found;

    culet_index_look_up(&lookup, index, path, length);
    while ((node = culet_index_next(&lookup, &found)) != NULL) {
        if (node->kind == CULET_NODE_ROOT)
            return node->root;
    }
    return CULET_INDEX_NONE;
}

void culet_stamp_of(struct culet_stamp *stamp, const struct stat *status)
{
    stamp->inode = (uint64_t)status->st_ino;
    stamp->modified_seconds = (int64_t)status->st_mtim.tv_sec;
    stamp->modified_nanoseconds = (uint32_t)status->st_mtim.tv_nsec;
    stamp->changed_seconds = (int64_t)status->st_ctim.tv_sec;
    stamp->changed_nanoseconds = (uint32_t)status->st_ctim.tv_nsec;
}

int culet_stamp_same(const struct culet_stamp *one, const struct culet_stamp *other)
{
    return one->inode == other->inode && one->modified_seconds == other->modified_seconds &&
           one->modified_nanoseconds == other->modified_nanoseconds && one->changed_seconds == other->changed_seconds &&
           one->changed_nanoseconds == other->changed_nanoseconds;
}
