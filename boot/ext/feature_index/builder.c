#include "feature_index/builder.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 256
#define MAX_PATH (UINT16_MAX - 1)

struct table {
    void *items;
    uint32_t count;
    uint32_t capacity;
};

struct culet_builder {
    struct table roots, stamps, nodes, buckets, text;
    struct table paths; /* node + 1 by the hash of its path, so that a file of two roots has its path stored once */
    uint64_t allocations;
};

static int reserve(struct culet_builder *builder, struct table *table, size_t size, uint64_t more)
{
    uint64_t wanted = table->count + more, capacity = table->capacity < 64 ? 64 : table->capacity;
    void *items;

    if (wanted <= table->capacity)
        return 1;
    while (capacity < wanted)
        capacity *= 2;
    if (capacity * size > CULET_INDEX_MAX_BYTES)
        return 0;
    items = realloc(table->items, (size_t)capacity * size);
    if (items == NULL)
        return 0;
    builder->allocations++;
    table->items = items;
    table->capacity = (uint32_t)capacity;
    return 1;
}

static struct culet_node *nodes(const struct culet_builder *builder)
{
    return builder->nodes.items;
}

static char *text(const struct culet_builder *builder)
{
    return builder->text.items;
}

static void link_node(struct culet_builder *builder, uint32_t number)
{
    struct culet_node *node = &nodes(builder)[number];
    uint32_t mask = builder->buckets.capacity - 1;
    uint32_t *bucket = (uint32_t *)builder->buckets.items + (node->hash & mask);
    uint32_t slot = culet_index_hash(text(builder) + node->path, node->length) & mask;
    uint32_t *paths = builder->paths.items;

    node->next = *bucket;
    *bucket = number + 1;
    while (paths[slot] != 0)
        slot = (slot + 1) & mask;
    paths[slot] = number + 1;
}

static int rehash(struct culet_builder *builder, uint32_t capacity)
{
    uint32_t *buckets = calloc(capacity, sizeof(*buckets)), *paths = calloc(capacity, sizeof(*paths));
    uint32_t i;

    builder->allocations += 2;
    if (buckets == NULL || paths == NULL) {
        free(buckets);
        free(paths);
        return 0;
    }
    free(builder->buckets.items);
    free(builder->paths.items);
    builder->buckets.items = buckets;
    builder->paths.items = paths;
    builder->buckets.capacity = builder->paths.capacity = capacity;
    for (i = 0; i < builder->nodes.count; i++)
        link_node(builder, i);
    return 1;
}

struct culet_builder *culet_builder_new(void)
{
    struct culet_builder *builder = calloc(1, sizeof(*builder));

    if (builder == NULL)
        return NULL;
    if (rehash(builder, FIRST_BUCKETS))
        return builder;
    free(builder);
    return NULL;
}

void culet_builder_free(struct culet_builder *builder)
{
    if (builder == NULL)
        return;
    free(builder->roots.items);
    free(builder->stamps.items);
    free(builder->nodes.items);
    free(builder->buckets.items);
    free(builder->text.items);
    free(builder->paths.items);
    free(builder);
}

/* The path's offset in the text; CULET_INDEX_NONE without memory. */
static uint32_t store_path(struct culet_builder *builder, const char *path, size_t length)
{
    uint32_t mask = builder->paths.capacity - 1, slot = culet_index_hash(path, length) & mask, at;
    const uint32_t *paths = builder->paths.items;

    for (; paths[slot] != 0; slot = (slot + 1) & mask) {
        const struct culet_node *node = &nodes(builder)[paths[slot] - 1];

        if (node->length == length && memcmp(text(builder) + node->path, path, length) == 0)
            return node->path;
    }
    if (!reserve(builder, &builder->text, 1, length + 1))
        return CULET_INDEX_NONE;
    at = builder->text.count;
    memcpy(text(builder) + at, path, length);
    text(builder)[at + length] = '\0';
    builder->text.count += (uint32_t)length + 1;
    return at;
}

static uint32_t store_stamp(struct culet_builder *builder, const struct culet_stamp *stamp)
{
    if (!reserve(builder, &builder->stamps, sizeof(*stamp), 1))
        return CULET_INDEX_NONE;
    memcpy((struct culet_stamp *)builder->stamps.items + builder->stamps.count, stamp, sizeof(*stamp));
    return builder->stamps.count++;
}

static int add_node(struct culet_builder *builder, uint32_t root, const char *path, size_t length, size_t suffix,
                    enum culet_node_kind kind, const struct culet_stamp *stamp)
{
    struct culet_node node = {
        .length = (uint16_t)length, .suffix = (uint16_t)suffix, .root = root, .stamp = CULET_INDEX_NONE, .kind = kind};
    size_t extension = culet_index_extension(kind);

    if (length > MAX_PATH || path[0] != '/' || suffix + extension > length)
        return 0;
    /* The table of paths stays at most half full. */
    if (builder->nodes.count >= builder->buckets.capacity / 2 && !rehash(builder, builder->buckets.capacity * 2))
        return 0;
    if (!reserve(builder, &builder->nodes, sizeof(node), 1))
        return 0;
    if ((node.path = store_path(builder, path, length)) == CULET_INDEX_NONE)
        return 0;
    if (stamp != NULL && (node.stamp = store_stamp(builder, stamp)) == CULET_INDEX_NONE)
        return 0;
    node.hash = culet_index_hash(path + suffix, length - suffix - extension);
    nodes(builder)[builder->nodes.count] = node;
    link_node(builder, builder->nodes.count++);
    return 1;
}

static struct culet_index_root *root_of(const struct culet_builder *builder, uint32_t root)
{
    return (struct culet_index_root *)builder->roots.items + root;
}

uint32_t culet_builder_root(struct culet_builder *builder, const char *path, size_t length,
                            const struct culet_stamp *stamp, int unreadable)
{
    struct culet_index_root *root;
    uint32_t number = builder->roots.count;

    if (!reserve(builder, &builder->roots, sizeof(*root), 1))
        return CULET_INDEX_NONE;
    if (!add_node(builder, number, path, length, 0, CULET_NODE_ROOT, stamp))
        return CULET_INDEX_NONE;
    builder->roots.count++;
    root = root_of(builder, number);
    memset(root, 0, sizeof(*root));
    root->node = root->last_node = builder->nodes.count - 1;
    root->unreadable = unreadable != 0;
    return number;
}

int culet_builder_add(struct culet_builder *builder, uint32_t root, const char *path, size_t length,
                      enum culet_node_kind kind, const struct culet_stamp *stamp)
{
    /* After the root's path and a slash; "/" itself ends with one. */
    size_t suffix = nodes(builder)[root_of(builder, root)->node].length;

    suffix += suffix > 1;
    if (length <= suffix || !add_node(builder, root, path, length, suffix, kind, stamp))
        return 0;
    root_of(builder, root)->last_node = builder->nodes.count - 1;
    return 1;
}

int culet_builder_copy(struct culet_builder *builder, const struct culet_index *index, uint32_t root)
{
    const struct culet_index_root *from = &index->roots[root];
    const struct culet_node *node;
    const struct culet_stamp *stamp;
    const char *path;
    uint32_t number, i;

    node = culet_index_node(index, from->node, &path);
    if (node == NULL || node->kind != CULET_NODE_ROOT || (stamp = culet_index_stamp(index, node)) == NULL)
        return 0;
    number = culet_builder_root(builder, path, node->length, stamp, from->unreadable != 0);
    if (number == CULET_INDEX_NONE)
        return 0;
    for (i = from->node + 1; i <= from->last_node && i != 0; i++) {
        node = culet_index_node(index, i, &path);
        if (node == NULL || node->root != root ||
            !culet_builder_add(builder, number, path, node->length, node->kind, culet_index_stamp(index, node))) {
            culet_builder_withdraw(builder, number);
            return 0;
        }
    }
    return 1;
}

void culet_builder_withdraw(struct culet_builder *builder, uint32_t root)
{
    uint32_t first = root_of(builder, root)->node, i;

    memset(builder->buckets.items, 0, builder->buckets.capacity * sizeof(uint32_t));
    memset(builder->paths.items, 0, builder->paths.capacity * sizeof(uint32_t));
    builder->nodes.count = first;
    builder->roots.count = root;
    for (i = 0; i < first; i++)
        link_node(builder, i);
}

/* Backwards, because paths are added folder by folder. */
uint32_t culet_builder_find_root(const struct culet_builder *builder, const char *path, size_t length)
{
    uint32_t root = builder->roots.count;

    while (root-- > 0) {
        const struct culet_node *node = &nodes(builder)[root_of(builder, root)->node];

        if (node->length == length && memcmp(text(builder) + node->path, path, length) == 0)
            return root;
    }
    return CULET_INDEX_NONE;
}

uint32_t culet_builder_roots(const struct culet_builder *builder)
{
    return builder->roots.count;
}

uint64_t culet_builder_allocations(const struct culet_builder *builder)
{
    return builder->allocations;
}

uint64_t culet_builder_bytes(const struct culet_builder *builder)
{
    return sizeof(*builder) + builder->roots.capacity * sizeof(struct culet_index_root) +
           builder->stamps.capacity * sizeof(struct culet_stamp) + builder->nodes.capacity * sizeof(struct culet_node) +
           (builder->buckets.capacity + builder->paths.capacity) * sizeof(uint32_t) + builder->text.capacity;
}

static uint32_t slot(uint64_t *at, uint64_t bytes)
{
    uint64_t here = *at;

    *at += (bytes + 7) / 8 * 8;
    return (uint32_t)here;
}

void *culet_builder_finish(const struct culet_builder *builder, size_t *bytes)
{
    struct culet_index_header header = {.version = CULET_INDEX_VERSION, .byte_order = CULET_INDEX_BYTE_ORDER};
    uint64_t at = sizeof(header);
    uint8_t *index;

    memcpy(header.magic, CULET_INDEX_MAGIC, sizeof(header.magic));
    header.roots = builder->roots.count;
    header.stamps = builder->stamps.count;
    header.nodes = builder->nodes.count;
    header.buckets = builder->buckets.capacity;
    header.text_bytes = builder->text.count;
    header.roots_at = slot(&at, header.roots * sizeof(struct culet_index_root));
    header.stamps_at = slot(&at, header.stamps * sizeof(struct culet_stamp));
    header.nodes_at = slot(&at, header.nodes * sizeof(struct culet_node));
    header.buckets_at = slot(&at, header.buckets * sizeof(uint32_t));
    header.text_at = slot(&at, header.text_bytes);
    if (at > CULET_INDEX_MAX_BYTES || (index = calloc(1, (size_t)at)) == NULL)
        return NULL;

    header.bytes = at;
    /* items of an empty table are NULL */
    if (header.roots)
        memcpy(index + header.roots_at, builder->roots.items, header.roots * sizeof(struct culet_index_root));
    if (header.stamps)
        memcpy(index + header.stamps_at, builder->stamps.items, header.stamps * sizeof(struct culet_stamp));
    if (header.nodes)
        memcpy(index + header.nodes_at, builder->nodes.items, header.nodes * sizeof(struct culet_node));
    memcpy(index + header.buckets_at, builder->buckets.items, header.buckets * sizeof(uint32_t));
    if (header.text_bytes)
        memcpy(index + header.text_at, builder->text.items, header.text_bytes);
    header.sum = culet_index_sum(index + sizeof(header), (size_t)(at - sizeof(header)));
    memcpy(index, &header, sizeof(header));
    *bytes = (size_t)at;
    return index;
}
