/* feature_index/serialized.h - the index of the files that `require` can find, as a sequence of bytes: written by the
 * builder, kept in a file, read by every process.
 *
 * Layout: header, roots, stamps, nodes, buckets and text, at offsets that the header holds. A root is a folder of a
 * load path, by its real path. A node is a file, a folder below a root, or a root. Its path is in the text once,
 * NUL-terminated, and `suffix` is the offset in the path of the name that `require` gets. Nodes are found by the hash
 * of that name without its extension. The nodes of a bucket are chained from later to earlier ones, so that every chain
 * ends, whatever the bytes are.
 *
 * A file is not trusted: culet_index_check checks the header, culet_store_read the checksum, and the functions below
 * return nothing for an offset that leads outside. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define CULET_INDEX_MAGIC "culetFI\n"
#define CULET_INDEX_VERSION 2
#define CULET_INDEX_BYTE_ORDER 0x01020304u
#define CULET_INDEX_NONE UINT32_MAX
#define CULET_INDEX_MAX_BYTES (UINT32_C(256) << 20)

/* Of native files: DLEXT of every Ruby on Linux. */
#define CULET_NATIVE_EXTENSION ".so"

/* In the order in which `require` prefers the files of a folder. */
enum culet_node_kind { CULET_NODE_RUBY, CULET_NODE_NATIVE, CULET_NODE_FOLDER, CULET_NODE_ROOT };

struct culet_index_header {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint64_t bytes; /* size of the index */
    uint64_t sum;   /* checksum of all bytes after the header */
    uint32_t roots; /* counts */
    uint32_t stamps;
    uint32_t nodes;
    uint32_t buckets;  /* a power of two */
    uint32_t roots_at; /* offsets from the start of the index, multiples of 8 */
    uint32_t stamps_at;
    uint32_t nodes_at;
    uint32_t buckets_at;
    uint32_t text_at;
    uint32_t text_bytes;
};

/* State of a folder when it was read: while it is the same, the folder has the same entries. */
struct culet_stamp {
    uint64_t inode;
    int64_t modified_seconds;
    int64_t changed_seconds;
    uint32_t modified_nanoseconds;
    uint32_t changed_nanoseconds;
};

struct culet_index_root {
    uint32_t node; /* of the root; its files and folders follow */
    uint32_t last_node;
    uint32_t unreadable; /* the root's files are not in the index, see CULET_UNREADABLE */
    uint32_t reserved;
};

struct culet_node {
    uint32_t hash;
    uint32_t next;   /* number + 1 of the previous node in the bucket; 0: none */
    uint32_t path;   /* offset in the text */
    uint16_t length; /* of the path */
    uint16_t suffix; /* offset in the path of the name */
    uint32_t root;
    uint32_t stamp; /* of a folder or root; else CULET_INDEX_NONE */
    uint32_t kind;
};

struct culet_index {
    const uint8_t *base;
    size_t bytes;
    int in_memory; /* malloc's, of an index that was built here; else a mapping with what a file has */
    const struct culet_index_header *header;
    const struct culet_index_root *roots;
    const struct culet_stamp *stamps;
    const struct culet_node *nodes;
    const uint32_t *buckets;
    const char *text;
};

/* The hash of a name: 32-bit FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/) with mixed low bits. */
uint32_t culet_index_hash(const char *name, size_t length);

/* The checksum of some bytes. Guards against damage, not forgery. */
uint64_t culet_index_sum(const void *bytes, size_t count);

/* The length of the extension that files of a kind have. */
size_t culet_index_extension(uint32_t kind);

/* Checks the header and that all tables are within `bytes`, but not the checksum.
 *
 * Returns NULL and sets `index`, or returns what is wrong. */
const char *culet_index_check(struct culet_index *index, const void *base, size_t bytes);

/* A node by its number, and its NUL-terminated path; NULL if either is outside the index. */
const struct culet_node *culet_index_node(const struct culet_index *index, uint32_t number, const char **path);

/* The stamp of a folder's node, or NULL. */
const struct culet_stamp *culet_index_stamp(const struct culet_index *index, const struct culet_node *node);

/* A lookup of all nodes with one name. */
struct culet_index_lookup {
    const struct culet_index *index;
    const char *name;
    size_t length;
    uint32_t hash;
    uint32_t next;
};

void culet_index_look_up(struct culet_index_lookup *lookup, const struct culet_index *index, const char *name,
                         size_t length);

/* The next node with the name and its path, or NULL. */
const struct culet_node *culet_index_next(struct culet_index_lookup *lookup, const char **path);

/* The number of the root with a real path, or CULET_INDEX_NONE. */
uint32_t culet_index_root(const struct culet_index *index, const char *path, size_t length);

/* The stamp for a result of stat(2), and whether two stamps are equal. */
void culet_stamp_of(struct culet_stamp *stamp, const struct stat *status);
int culet_stamp_same(const struct culet_stamp *one, const struct culet_stamp *other);
