/*
 * feature_index/serialized.h - the index of files that `require` can find, as one run of bytes: made by the builder, kept in
 * a file, read by every process that asks it.
 *
 * Layout: the header, then roots, stamps, nodes, buckets and text, each at the place the header tells. A root is a folder
 * of a load path, by its real path. A node is a file, a folder below a root, or a root itself; its path stands in the
 * text once, with a zero behind it, and `suffix` is where in it the name begins that a `require` may give. A node is
 * found by the hash of that name, less its extension. Nodes of one bucket are chained from later to earlier ones, so
 * that no chain is endless whatever the bytes are.
 *
 * Nothing in a file is trusted: `culet_index_check` looks at the header and at the sum of all bytes, and whoever follows
 * an offset asks the functions here, which answer with nothing where it leads outside.
 */
#ifndef CULET_FEATURE_INDEX_SERIALIZED_H
#define CULET_FEATURE_INDEX_SERIALIZED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define CULET_INDEX_MAGIC "culetFI\n"
#define CULET_INDEX_VERSION 1
#define CULET_INDEX_BYTE_ORDER 0x01020304u
#define CULET_INDEX_NONE UINT32_MAX
#define CULET_INDEX_MAX_BYTES (UINT32_C(256) << 20)

/* What a node is; the order is that in which `require` prefers files of one folder. */
enum culet_node_kind { CULET_NODE_RUBY, CULET_NODE_NATIVE, CULET_NODE_FOLDER, CULET_NODE_ROOT };

struct culet_index_header {
  char magic[8];
  uint32_t version;
  uint32_t byte_order;
  uint64_t bytes;       /* of the whole image */
  uint64_t sum;         /* of all bytes behind the header */
  char native_extension[16];     /* the extension of native files, such as ".so"; zeros behind it */
  uint32_t roots;       /* how many of each */
  uint32_t stamps;
  uint32_t nodes;
  uint32_t buckets;     /* a power of two */
  uint32_t roots_at;    /* offsets from the start of the image, multiples of 8 */
  uint32_t stamps_at;
  uint32_t nodes_at;
  uint32_t buckets_at;
  uint32_t text_at;
  uint32_t text_bytes;
};

/* How a folder was when it was read: it has the same entries as long as these are the same. */
struct culet_stamp {
  uint64_t inode;
  int64_t modified_seconds;
  int64_t changed_seconds;
  uint32_t modified_nanoseconds;
  uint32_t changed_nanoseconds;
};

struct culet_index_root {
  uint32_t node;       /* the root itself; its files and folders are the nodes behind it */
  uint32_t last_node;
  uint32_t unreadable; /* its files are not here: too many of them, or something that the index cannot tell */
  uint32_t reserved;
};

struct culet_node {
  uint32_t hash;
  uint32_t next;   /* node + 1 of the one before in its bucket; 0: none */
  uint32_t path;   /* offset in the text */
  uint16_t length; /* of the path, in bytes */
  uint16_t suffix; /* where in it the name begins */
  uint32_t root;
  uint32_t stamp;  /* of a folder or root; else CULET_INDEX_NONE */
  uint32_t kind;
};

struct culet_index {
  const uint8_t *base;
  size_t bytes;
  const struct culet_index_header *header;
  const struct culet_index_root *roots;
  const struct culet_stamp *stamps;
  const struct culet_node *nodes;
  const uint32_t *buckets;
  const char *text;
};

/* The hash of a name. FNV-1a of 32 bits (http://www.isthe.com/chongo/tech/comp/fnv/), with its last bits stirred. */
uint32_t culet_index_hash(const char *name, size_t length);

/* The sum that the header bears, of so many bytes, to be handed on from piece to piece; pieces but the last are multiples
 * of 8 bytes long. Guards against damage, not against forgery. */
uint64_t culet_index_sum(uint64_t sum, const void *bytes, size_t count);

/*
 * Looks whether the header is one of ours and all tables lie within `bytes`; not at the sum, which only the file's reader
 * can take without making all of it resident.
 *
 * Returns NULL and sets `image`, or says what is wrong.
 */
const char *culet_index_check(struct culet_index *index, const void *base, size_t bytes, const char *native_extension);

/* The node of that number and its path; NULL where either leads outside. The path ends with a zero. */
const struct culet_node *culet_index_node(const struct culet_index *index, uint32_t number, const char **path);

/* The stamp of a folder's node, or NULL. */
const struct culet_stamp *culet_index_stamp(const struct culet_index *index, const struct culet_node *node);

/* How many bytes of a node's path are its extension. */
size_t culet_index_extension(const struct culet_index *index, const struct culet_node *node);

/* A walk over all nodes of one name. */
struct culet_index_lookup {
  const struct culet_index *index;
  const char *name;
  size_t length;
  uint32_t hash;
  uint32_t next;
  uint32_t number; /* of the node that was returned last */
};

void culet_index_look_up(struct culet_index_lookup *lookup, const struct culet_index *index, const char *name, size_t length);

/* The next node of the name and its path, or NULL. */
const struct culet_node *culet_index_next(struct culet_index_lookup *lookup, const char **path);

/* The number of the root of that real path, or CULET_INDEX_NONE. */
uint32_t culet_index_root(const struct culet_index *index, const char *path, size_t length);

/* The stamp of what stat(2) told, and whether two are the same. */
void culet_stamp_of(struct culet_stamp *stamp, const struct stat *status);
int culet_stamp_same(const struct culet_stamp *one, const struct culet_stamp *other);

#endif
