/* retain/dump.h - the objects of a file of ObjectSpace.dump_all as a graph. */
#pragma once

#include "profile/texts.h"
#include "retain/graph.h"

struct culet_dump_object {
    uint64_t address, class_address;
    uint64_t memsize;
    uint64_t text;        /* where its name or content begins in the texts; of a class or String */
    uint32_t text_length; /* 0: it has none */
    uint32_t slot_size;
    uint32_t first; /* of its references */
    uint16_t kind;  /* number of its type, of the kind of a T_IMEMO, or of the struct of a T_DATA */
    uint8_t type;   /* a culet_dump_type */
    uint8_t flags;  /* culet_dump_flags */
};

struct culet_dump_root {
    uint32_t category;
    uint32_t first, past; /* of the references */
};

CULET_LIST(culet_dump_objects, struct culet_dump_object)
CULET_LIST(culet_dump_addresses, uint64_t)
CULET_LIST(culet_dump_roots, struct culet_dump_root)

struct culet_dump {
    struct culet_graph graph;
    struct culet_dump_objects objects;     /* by id; one more at the end, for the end of the last references */
    struct culet_dump_addresses addresses; /* that are referenced; while reading */
    struct culet_numbers references;       /* their ids */
    struct culet_dump_roots roots;
    struct culet_numbers table;   /* hash table of the addresses */
    struct culet_numbers owner;   /* by id, of a singleton class: the class it is of + 1 */
    struct culet_numbers waiting; /* classes whose holders are to be added */
    struct culet_numbers loose;   /* code and what caches have, which other layers refer to */
    struct culet_buffer texts;    /* names and contents, with their escapes */
    struct culet_texts kinds;     /* names by number */
    bool keeps_contents;
};

/* Reads a dump from a descriptor, up to its end.
 *
 * contents: whether contents of strings are kept
 *
 * Returns NULL, or a sentence on what is wrong with the file; what is said of "the dump". */
const char *culet_dump_open(struct culet_dump *dump, struct culet_memory *memory, int fd, bool contents);

/* Frees what is not in arrays. */
void culet_dump_close(struct culet_dump *dump);
