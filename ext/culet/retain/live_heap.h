/* retain/live_heap.h - the slots of this process's heap, and what is known of their objects. */
#pragma once

#include <ruby.h>

#include "retain/graph.h"
#include "retain/heap_index.h"

/* An object, and what is noted of it. */
struct culet_noted {
    VALUE object;
    uint64_t value;
};

CULET_LIST(culet_values, VALUE)
CULET_LIST(culet_notes, struct culet_noted)

typedef void culet_reachable_function(VALUE object, void (*found)(VALUE, void *), void *data);

/* Sets of objects. */
enum culet_live_set {
    LIVE_USED,       /* it was an object at the start */
    LIVE_PLAIN,      /* no class, module, T_IMEMO or T_DATA: only references of inline caches to it are left out */
    LIVE_CLASS_ONLY, /* its class is all that it refers to */
    LIVE_LEAVES,     /* of these, those of class String */
    LIVE_EMBEDDED,   /* of these, those without memory beyond the slot */
    LIVE_JUDGED,     /* a class of which is known whether it is in the next set */
    LIVE_NAMED,      /* a class with a permanent name, or its singleton class */
    LIVE_DEFERRED,   /* its holder exists already, or it is a class that was met */
    LIVE_THREADS,    /* a Thread that is alive: its references are holders */
    CULET_LIVE_SETS
};

struct culet_live {
    struct culet_graph graph;
    struct culet_heap_index index;
    struct culet_numbers sets[CULET_LIVE_SETS]; /* a bit for each id */
    struct culet_values values;                 /* of the class whose holders are added: those that have one */
    struct culet_values met;                    /* classes whose holders are still to be added */
    struct culet_notes loose;        /* path of code (0: an inline cache) and id: references from other layers */
    struct culet_notes finalizers;   /* code of the last block (0: none) and id, of the blocks of an object */
    struct culet_notes at_exit;      /* code and id of the blocks of at_exit */
    struct culet_values threads;     /* those of LIVE_THREADS */
    struct culet_values block_lists; /* that look like those of finalizers */
    bool has_finalizers;             /* an object has one */
    culet_reachable_function *reachable;
    VALUE last_class; /* of is_leaf */
    bool last_class_named;
};

/* The id of an object; CULET_NO_ID: none, as of true and 1. */
uint32_t culet_live_id(const struct culet_live *live, VALUE object);

/* Whether an object is a class with a permanent name, or the singleton class of one. */
bool culet_live_is_named(struct culet_live *live, VALUE object);

/* Notes that the holders of a named class are to be added, once. A singleton class counts as its class. */
void culet_live_meet_class(struct culet_live *live, VALUE class);

/* Whether it is a list of blocks as finalizers have: hidden, with a Proc at the end. */
bool culet_live_is_finalizer(VALUE object);

/* The value of a class's constant by its name, a Symbol or String; Qundef: there is none, or it is to be loaded. */
VALUE culet_live_constant(VALUE class, VALUE name);

/* Whether it is the singleton class of a class or module. */
bool culet_live_is_singleton(VALUE class);

static inline VALUE culet_live_object(const struct culet_graph *graph, uint32_t id)
{
    return (VALUE)culet_heap_index_address(&((const struct culet_live *)graph)->index, id);
}
