/* retain/graph.h - objects and what keeps them, whether in Ruby's heap (live.h) or in a dump (dump.h).
 *
 * An object has a number, its id. What no object keeps is kept by a holder: a constant, a global variable, a stack. A
 * class with a permanent name is no object on a path: references to it are left out, and each of its own references is
 * a holder.
 *
 * Holders are in layers. What a holder of an earlier layer reaches belongs to that layer: references from objects of
 * later ones are left out, so that a constant keeps its Hash for itself although a stack or code refers to it, too. */
#pragma once

#include "common/buffer.h"
#include "retain/memory.h"

/* Whether a class's name is permanent: the path of a constant, which set_temporary_name refuses, and which no name below
 * a class without one is. A letter beyond ASCII counts as a capital. */
static inline bool culet_is_constant_path(const char *name, size_t length)
{
    bool begins = true;

    for (size_t i = 0; i < length; i++) {
        unsigned char one = (unsigned char)name[i];
        bool capital = (one >= 'A' && one <= 'Z') || one >= 0x80;
        bool separator = !begins && one == ':' && i + 1 < length && name[i + 1] == ':';
        if (!capital && !separator &&
            (begins || !(one == '_' || (one >= 'a' && one <= 'z') || (one >= '0' && one <= '9'))))
            return false;
        begins = separator;
        i += separator;
    }
    return !begins;
}

enum culet_holder_kind {
    HOLDER_CONSTANT,
    HOLDER_CLASS_VARIABLE,
    HOLDER_GLOBAL,
    HOLDER_THREAD_LOCAL,
    HOLDER_FIBER_LOCAL,
    HOLDER_CLOSURE,
    HOLDER_INSTANCE_VARIABLE,
    HOLDER_SYMBOL_TABLE,
    HOLDER_FINALIZER,
    HOLDER_NATIVE,
    HOLDER_STACK,
    HOLDER_METHOD,
    HOLDER_VM,
    HOLDER_OTHER
};

/* The order in which holders are walked. */
enum culet_layer { LAYER_DURABLE, LAYER_NATIVE, LAYER_CODE, LAYER_LOOSE_CODE, LAYER_STACK, CULET_LAYERS };

struct culet_holder {
    uint8_t kind, layer;
    uint32_t number;       /* in the walk; 0: not walked yet */
    uint64_t object, name; /* whose reference, and its name: the source knows what they are */
    size_t first, targets; /* of the graph's list of targets */
};

CULET_LIST(culet_holders, struct culet_holder)

typedef void culet_edge_function(void *data, uint32_t target);

/* A reference with its name, which is written by `write`. */
typedef void culet_named_edge_function(void *data, uint32_t target, const char *name, size_t length);

struct culet_graph;

/* Bytes of an object: its slot; what it has of malloc; what it has elsewhere, in Ruby's transient heap. */
struct culet_sizes {
    uint64_t slot, malloc, elsewhere;
};

struct culet_graph_functions {
    /* Whether an object certainly has no references; if not, they are asked for. */
    bool (*is_leaf)(struct culet_graph *graph, uint32_t id);
    /* Calls the function for each reference that an object of a layer has. During the walk it may add holders. */
    void (*references)(struct culet_graph *graph, uint32_t id, int layer, culet_edge_function *edge, void *data);
    /* Calls the function for each reference, with its name, to an object that the graph wants. The order may differ
     * from that of `references`, a reference may come several times, and some may come that `references` leaves out. */
    void (*named_references)(struct culet_graph *graph, uint32_t id, culet_named_edge_function *edge, void *data);
    /* Adds the holders of classes that the walk met. Returns whether there were any. */
    bool (*more_holders)(struct culet_graph *graph);
    struct culet_sizes (*sizes)(struct culet_graph *graph, uint32_t id);
    /* Whether the slot had an object when the analysis began. */
    bool (*is_used)(struct culet_graph *graph, uint32_t id);
    uint64_t (*address)(struct culet_graph *graph, uint32_t id);
    /* A key of the object's class. */
    uint64_t (*class_of)(struct culet_graph *graph, uint32_t id);
    /* Writes a class's name. */
    void (*write_class)(struct culet_graph *graph, uint64_t key, struct culet_buffer *text);
    /* Writes a holder's name; sets the file and line where they are known. */
    void (*write_holder)(struct culet_graph *graph, const struct culet_holder *holder, struct culet_buffer *text,
                         struct culet_buffer *file, long *line);
    /* The bytes of a String; NULL: no String, or they are not known. */
    const char *(*content)(struct culet_graph *graph, uint32_t id, size_t *length);
    /* Whether the bytes of a String are in another one. NULL: such a String has no content. */
    bool (*shares_content)(struct culet_graph *graph, uint32_t id);
    /* The id of the object at an address; UINT32_MAX: there is none. */
    uint32_t (*id_at)(struct culet_graph *graph, uint64_t address);
};

struct culet_graph {
    const struct culet_graph_functions *functions;
    struct culet_memory *memory;
    uint32_t ids;
    struct culet_holders holders;
    struct culet_numbers targets;
    struct culet_numbers queues[CULET_LAYERS]; /* holders to walk */
    int layer;                                 /* which is walked now; CULET_LAYERS: the walk is over */
    bool show_contents;                        /* of strings, in names */
    struct culet_block_sizes *block_sizes;     /* of the process's malloc; NULL: sizes of blocks are not needed */
    struct culet_numbers wanted;               /* bits by id: whose references get names */
};

/* All bytes of an object. */
static inline uint64_t culet_graph_bytes(struct culet_graph *graph, uint32_t id)
{
    struct culet_sizes sizes = graph->functions->sizes(graph, id);

    return sizes.slot + sizes.malloc + sizes.elsewhere;
}

/* Adds a holder without targets, which follow by culet_graph_add_target. */
void culet_graph_add_holder(struct culet_graph *graph, enum culet_holder_kind kind, enum culet_layer layer,
                            uint64_t object, uint64_t name);

/* Adds a target to the last holder. */
void culet_graph_add_target(struct culet_graph *graph, uint32_t target);

/* Adds a holder with one target. */
void culet_graph_add_single(struct culet_graph *graph, enum culet_holder_kind kind, enum culet_layer layer,
                            uint64_t object, uint64_t name, uint32_t target);

/* The name of a kind, as in the analysis. */
const char *culet_holder_kind_name(int kind);
