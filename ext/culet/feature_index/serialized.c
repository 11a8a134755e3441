#define _GNU_SOURCE

#include "feature_index/serialized.h"

#include <string.h>

uint32_t
culet_image_hash(const char *name, size_t length)
{
  uint32_t hash = UINT32_C(2166136261);
  size_t i;

  for (i = 0; i < length; i++) hash = (hash ^ (uint8_t)name[i]) * UINT32_C(16777619);
  return hash ^ hash >> 15;
}

/* A word at a time: multiplied by an odd number (2^64 over the golden ratio), its upper half stirred into the lower. */
uint64_t
culet_image_sum(uint64_t sum, const void *bytes, size_t count)
{
  const uint8_t *from = bytes;
  uint64_t word;

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

static int
inside(uint64_t bytes, uint32_t at, uint64_t count, size_t size)
{
  return at % 8 == 0 && at >= sizeof(struct culet_image_header) && at <= bytes && count * size <= bytes - at;
}

const char *
culet_image_check(struct culet_image *image, const void *base, size_t bytes, const char *flavour)
{
  const struct culet_image_header *header = base;
  char wanted[sizeof(header->flavour)] = "";

  if (bytes < sizeof(*header) || bytes > CULET_IMAGE_MOST_BYTES) return "its size is none that an index has";
  if (memcmp(header->magic, CULET_IMAGE_MAGIC, sizeof(header->magic)) != 0) return "it is no index";
  if (header->byte_order != CULET_IMAGE_BYTE_ORDER) return "it is of a machine with another order of bytes";
  if (header->version != CULET_IMAGE_VERSION) return "it is of another release";
  strncpy(wanted, flavour, sizeof(wanted) - 1);
  if (memcmp(header->flavour, wanted, sizeof(wanted)) != 0) return "it is of a Ruby with other native files";
  if (header->bytes != bytes) return "it is not whole";
  if (header->buckets == 0 || (header->buckets & (header->buckets - 1)) != 0 || header->nodes == CULET_IMAGE_NONE ||
      !inside(bytes, header->roots_at, header->roots, sizeof(struct culet_image_root)) ||
      !inside(bytes, header->stamps_at, header->stamps, sizeof(struct culet_stamp)) ||
      !inside(bytes, header->nodes_at, header->nodes, sizeof(struct culet_node)) ||
      !inside(bytes, header->buckets_at, header->buckets, sizeof(uint32_t)) ||
      !inside(bytes, header->text_at, header->text_bytes, 1))
    return "its tables are not within it";

  image->base = base;
  image->bytes = bytes;
  image->header = header;
  image->roots = (const void *)(image->base + header->roots_at);
  image->stamps = (const void *)(image->base + header->stamps_at);
  image->nodes = (const void *)(image->base + header->nodes_at);
  image->buckets = (const void *)(image->base + header->buckets_at);
  image->text = (const char *)image->base + header->text_at;
  return NULL;
}

const struct culet_node *
culet_image_node(const struct culet_image *image, uint32_t number, const char **path)
{
  const struct culet_node *node;

  if (number >= image->header->nodes) return NULL;
  node = &image->nodes[number];
  if (node->root >= image->header->roots || node->kind > CULET_NODE_ROOT) return NULL;
  if (node->path >= image->header->text_bytes || node->length >= image->header->text_bytes - node->path) return NULL;
  if ((size_t)node->suffix + culet_image_extension(image, node) > node->length) return NULL;
  if (image->text[node->path + node->length] != '\0' || image->text[node->path] != '/') return NULL;
  *path = image->text + node->path;
  return node;
}

const struct culet_stamp *
culet_image_stamp(const struct culet_image *image, const struct culet_node *node)
{
  return node->stamp < image->header->stamps ? &image->stamps[node->stamp] : NULL;
}

size_t
culet_image_extension(const struct culet_image *image, const struct culet_node *node)
{
  if (node->kind == CULET_NODE_RUBY) return sizeof(".rb") - 1;
  return node->kind == CULET_NODE_NATIVE ? strnlen(image->header->flavour, sizeof(image->header->flavour)) : 0;
}

void
culet_image_walk(struct culet_walk *walk, const struct culet_image *image, const char *name, size_t length)
{
  walk->image = image;
  walk->name = name;
  walk->length = length;
  walk->hash = culet_image_hash(name, length);
  walk->next = image->header->buckets == 0 ? 0 : image->buckets[walk->hash & (image->header->buckets - 1)];
}

const struct culet_node *
culet_image_next(struct culet_walk *walk, const char **path)
{
  while (walk->next != 0) {
    const struct culet_node *node = culet_image_node(walk->image, walk->next - 1, path);

    if (node == NULL) return NULL;
    walk->number = walk->next - 1;
    /* A chain leads to earlier nodes only. */
    walk->next = node->next < walk->next ? node->next : 0;
    if (node->hash == walk->hash &&
        node->length - node->suffix - culet_image_extension(walk->image, node) == walk->length &&
        memcmp(*path + node->suffix, walk->name, walk->length) == 0)
      return node;
  }
  return NULL;
}

uint32_t
culet_image_root(const struct culet_image *image, const char *path, size_t length)
{
  struct culet_walk walk;
  const struct culet_node *node;
  const char *found;

  culet_image_walk(&walk, image, path, length);
  while ((node = culet_image_next(&walk, &found)) != NULL) {
    if (node->kind == CULET_NODE_ROOT) return node->root;
  }
  return CULET_IMAGE_NONE;
}

void
culet_stamp_of(struct culet_stamp *stamp, const struct stat *status)
{
  stamp->inode = (uint64_t)status->st_ino;
  stamp->modified_seconds = (int64_t)status->st_mtim.tv_sec;
  stamp->modified_nanoseconds = (uint32_t)status->st_mtim.tv_nsec;
  stamp->changed_seconds = (int64_t)status->st_ctim.tv_sec;
  stamp->changed_nanoseconds = (uint32_t)status->st_ctim.tv_nsec;
}

int
culet_stamp_same(const struct culet_stamp *one, const struct culet_stamp *other)
{
  return one->inode == other->inode && one->modified_seconds == other->modified_seconds &&
         one->modified_nanoseconds == other->modified_nanoseconds && one->changed_seconds == other->changed_seconds &&
         one->changed_nanoseconds == other->changed_nanoseconds;
}
