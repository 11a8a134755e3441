#define _GNU_SOURCE

#include "feature_index/builder.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 256
#define LONGEST_PATH (UINT16_MAX - 1)

struct table {
  void *items;
  uint32_t count;
  uint32_t room;
};

struct culet_builder {
  char flavour[16];
  struct table roots, stamps, nodes, buckets, text;
  struct table paths; /* node + 1 by its path's hash, so that the path of two roots' file is stored once */
  uint64_t allocations;
};

static int
make_room(struct culet_builder *builder, struct table *table, size_t size, uint64_t more)
{
  uint64_t wanted = table->count + more, room = table->room < 64 ? 64 : table->room;
  void *items;

  if (wanted <= table->room) return 1;
  while (room < wanted) room *= 2;
  if (room * size > CULET_IMAGE_MOST_BYTES) return 0;
  items = realloc(table->items, (size_t)room * size);
  if (items == NULL) return 0;
  builder->allocations++;
  table->items = items;
  table->room = (uint32_t)room;
  return 1;
}

static struct culet_node *
nodes(const struct culet_builder *builder)
{
  return builder->nodes.items;
}

static char *
text(const struct culet_builder *builder)
{
  return builder->text.items;
}

static void
link_node(struct culet_builder *builder, uint32_t number)
{
  struct culet_node *node = &nodes(builder)[number];
  uint32_t mask = builder->buckets.room - 1;
  uint32_t *bucket = (uint32_t *)builder->buckets.items + (node->hash & mask);
  uint32_t place = culet_image_hash(text(builder) + node->path, node->length) & mask;
  uint32_t *paths = builder->paths.items;

  node->next = *bucket;
  *bucket = number + 1;
  while (paths[place] != 0) place = (place + 1) & mask;
  paths[place] = number + 1;
}

static int
hash_anew(struct culet_builder *builder, uint32_t room)
{
  uint32_t *buckets = calloc(room, sizeof(*buckets)), *paths = calloc(room, sizeof(*paths));
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
  builder->buckets.room = builder->paths.room = room;
  for (i = 0; i < builder->nodes.count; i++) link_node(builder, i);
  return 1;
}

struct culet_builder *
culet_builder_new(const char *flavour)
{
  struct culet_builder *builder = calloc(1, sizeof(*builder));

  if (builder == NULL) return NULL;
  strncpy(builder->flavour, flavour, sizeof(builder->flavour) - 1);
  if (hash_anew(builder, FIRST_BUCKETS)) return builder;
  free(builder);
  return NULL;
}

void
culet_builder_free(struct culet_builder *builder)
{
  if (builder == NULL) return;
  free(builder->roots.items);
  free(builder->stamps.items);
  free(builder->nodes.items);
  free(builder->buckets.items);
  free(builder->text.items);
  free(builder->paths.items);
  free(builder);
}

/* Where the text has that path; CULET_IMAGE_NONE where memory is short. */
static uint32_t
store_path(struct culet_builder *builder, const char *path, size_t length)
{
  uint32_t mask = builder->paths.room - 1, place = culet_image_hash(path, length) & mask, at;
  const uint32_t *paths = builder->paths.items;

  for (; paths[place] != 0; place = (place + 1) & mask) {
    const struct culet_node *node = &nodes(builder)[paths[place] - 1];

    if (node->length == length && memcmp(text(builder) + node->path, path, length) == 0) return node->path;
  }
  if (!make_room(builder, &builder->text, 1, length + 1)) return CULET_IMAGE_NONE;
  at = builder->text.count;
  memcpy(text(builder) + at, path, length);
  text(builder)[at + length] = '\0';
  builder->text.count += (uint32_t)length + 1;
  return at;
}

static uint32_t
store_stamp(struct culet_builder *builder, const struct culet_stamp *stamp)
{
  if (!make_room(builder, &builder->stamps, sizeof(*stamp), 1)) return CULET_IMAGE_NONE;
  memcpy((struct culet_stamp *)builder->stamps.items + builder->stamps.count, stamp, sizeof(*stamp));
  return builder->stamps.count++;
}

static int
add_node(struct culet_builder *builder, uint32_t root, const char *path, size_t length, size_t suffix, enum culet_node_kind kind,
         const struct culet_stamp *stamp)
{
  struct culet_node node = {.length = (uint16_t)length, .suffix = (uint16_t)suffix, .root = root, .stamp = CULET_IMAGE_NONE, .kind = kind};
  size_t extension = kind == CULET_NODE_RUBY ? sizeof(".rb") - 1 : kind == CULET_NODE_NATIVE ? strlen(builder->flavour) : 0;

  if (length > LONGEST_PATH || path[0] != '/' || suffix + extension > length) return 0;
  /* Half of the places for paths stay free, so that a search ends soon. */
  if (builder->nodes.count >= builder->buckets.room / 2 && !hash_anew(builder, builder->buckets.room * 2)) return 0;
  if (!make_room(builder, &builder->nodes, sizeof(node), 1)) return 0;
  if ((node.path = store_path(builder, path, length)) == CULET_IMAGE_NONE) return 0;
  if (stamp != NULL && (node.stamp = store_stamp(builder, stamp)) == CULET_IMAGE_NONE) return 0;
  node.hash = culet_image_hash(path + suffix, length - suffix - extension);
  nodes(builder)[builder->nodes.count] = node;
  link_node(builder, builder->nodes.count++);
  return 1;
}

static struct culet_image_root *
root_of(const struct culet_builder *builder, uint32_t root)
{
  return (struct culet_image_root *)builder->roots.items + root;
}

uint32_t
culet_builder_root(struct culet_builder *builder, const char *path, size_t length, const struct culet_stamp *stamp, int unreadable)
{
  struct culet_image_root *root;
  uint32_t number = builder->roots.count;

  if (!make_room(builder, &builder->roots, sizeof(*root), 1)) return CULET_IMAGE_NONE;
  if (!add_node(builder, number, path, length, 0, CULET_NODE_ROOT, stamp)) return CULET_IMAGE_NONE;
  builder->roots.count++;
  root = root_of(builder, number);
  memset(root, 0, sizeof(*root));
  root->node = root->last_node = builder->nodes.count - 1;
  root->unreadable = unreadable != 0;
  return number;
}

int
culet_builder_add(struct culet_builder *builder, uint32_t root, const char *path, size_t length, enum culet_node_kind kind,
                  const struct culet_stamp *stamp)
{
  /* Behind the root's path and a slash; "/" itself ends with one. */
  size_t suffix = nodes(builder)[root_of(builder, root)->node].length;

  suffix += suffix > 1;
  if (length <= suffix || !add_node(builder, root, path, length, suffix, kind, stamp)) return 0;
  root_of(builder, root)->last_node = builder->nodes.count - 1;
  return 1;
}

int
culet_builder_copy(struct culet_builder *builder, const struct culet_image *image, uint32_t root)
{
  const struct culet_image_root *from = &image->roots[root];
  const struct culet_node *node;
  const struct culet_stamp *stamp;
  const char *path;
  uint32_t number, i;

  node = culet_image_node(image, from->node, &path);
  if (node == NULL || node->kind != CULET_NODE_ROOT || (stamp = culet_image_stamp(image, node)) == NULL) return 0;
  number = culet_builder_root(builder, path, node->length, stamp, from->unreadable != 0);
  if (number == CULET_IMAGE_NONE) return 0;
  for (i = from->node + 1; i <= from->last_node && i != 0; i++) {
    node = culet_image_node(image, i, &path);
    if (node == NULL || node->root != root || !culet_builder_add(builder, number, path, node->length, node->kind, culet_image_stamp(image, node))) {
      culet_builder_withdraw(builder, number);
      return 0;
    }
  }
  return 1;
}

void
culet_builder_withdraw(struct culet_builder *builder, uint32_t root)
{
  uint32_t first = root_of(builder, root)->node, i;

  memset(builder->buckets.items, 0, builder->buckets.room * sizeof(uint32_t));
  memset(builder->paths.items, 0, builder->paths.room * sizeof(uint32_t));
  builder->nodes.count = first;
  builder->roots.count = root;
  for (i = 0; i < first; i++) link_node(builder, i);
}

/* From the last one on: paths are added folder by folder. */
uint32_t
culet_builder_find_root(const struct culet_builder *builder, const char *path, size_t length)
{
  uint32_t root = builder->roots.count;

  while (root-- > 0) {
    const struct culet_node *node = &nodes(builder)[root_of(builder, root)->node];

    if (node->length == length && memcmp(text(builder) + node->path, path, length) == 0) return root;
  }
  return CULET_IMAGE_NONE;
}

uint32_t
culet_builder_roots(const struct culet_builder *builder)
{
  return builder->roots.count;
}

uint32_t
culet_builder_nodes(const struct culet_builder *builder)
{
  return builder->nodes.count;
}

uint64_t
culet_builder_allocations(const struct culet_builder *builder)
{
  return builder->allocations;
}

uint64_t
culet_builder_bytes(const struct culet_builder *builder)
{
  return sizeof(*builder) + builder->roots.room * sizeof(struct culet_image_root) + builder->stamps.room * sizeof(struct culet_stamp) +
         builder->nodes.room * sizeof(struct culet_node) + (builder->buckets.room + builder->paths.room) * sizeof(uint32_t) + builder->text.room;
}

static uint32_t
place(uint64_t *at, uint64_t bytes)
{
  uint64_t here = *at;

  *at += (bytes + 7) / 8 * 8;
  return (uint32_t)here;
}

void *
culet_builder_finish(const struct culet_builder *builder, size_t *bytes)
{
  struct culet_image_header header = {.version = CULET_IMAGE_VERSION, .byte_order = CULET_IMAGE_BYTE_ORDER};
  uint64_t at = sizeof(header);
  uint8_t *image;

  memcpy(header.magic, CULET_IMAGE_MAGIC, sizeof(header.magic));
  memcpy(header.flavour, builder->flavour, sizeof(header.flavour));
  header.roots = builder->roots.count;
  header.stamps = builder->stamps.count;
  header.nodes = builder->nodes.count;
  header.buckets = builder->buckets.room;
  header.text_bytes = builder->text.count;
  header.roots_at = place(&at, header.roots * sizeof(struct culet_image_root));
  header.stamps_at = place(&at, header.stamps * sizeof(struct culet_stamp));
  header.nodes_at = place(&at, header.nodes * sizeof(struct culet_node));
  header.buckets_at = place(&at, header.buckets * sizeof(uint32_t));
  header.text_at = place(&at, header.text_bytes);
  if (at > CULET_IMAGE_MOST_BYTES || (image = calloc(1, (size_t)at)) == NULL) return NULL;

  header.bytes = at;
  /* An empty table has no items to copy from. */
  if (header.roots) memcpy(image + header.roots_at, builder->roots.items, header.roots * sizeof(struct culet_image_root));
  if (header.stamps) memcpy(image + header.stamps_at, builder->stamps.items, header.stamps * sizeof(struct culet_stamp));
  if (header.nodes) memcpy(image + header.nodes_at, builder->nodes.items, header.nodes * sizeof(struct culet_node));
  memcpy(image + header.buckets_at, builder->buckets.items, header.buckets * sizeof(uint32_t));
  if (header.text_bytes) memcpy(image + header.text_at, builder->text.items, header.text_bytes);
  header.sum = culet_image_sum(0, image + sizeof(header), (size_t)(at - sizeof(header)));
  memcpy(image, &header, sizeof(header));
  *bytes = (size_t)at;
  return image;
}
