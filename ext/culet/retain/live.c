#include "retain/live.h"

#include <string.h>

#include "common/active_malloc.h"
#include "common/heap_walk.h"
#include "common/object_bytes.h"
#include "common/vm_lock.h"
#include "retain/internals.h"
#include "retain/live_names.h"
#include "retain/live_roots.h"

/* ---- references ---- */

struct question {
    struct culet_live *live;
    VALUE object;
    int internal; /* enum culet_internal; INTERNAL_NONE: no T_IMEMO */
    int layer;
    bool collecting;  /* the walk goes on: holders may be added */
    bool named_owner; /* of a method entry: its class is named */
    bool asked_owner;
    culet_edge_function *edge;
    void *data;
};

/* Whether the object is to get a holder of its own, which it gets once. */
static bool defer(struct question *question, uint32_t id)
{
    return question->collecting && !culet_bits_set(&question->live->sets[LIVE_DEFERRED], id);
}

static void defer_code(struct question *question, uint32_t id, VALUE path)
{
    struct culet_live *live = question->live;

    if (defer(question, id))
        (void)culet_notes_add(live->graph.memory, &live->loose, (struct culet_noted){path, id});
}

/* Whether the reference is left out; its class, thread or code has a holder then. */
static bool is_left_out(struct question *question, VALUE child, uint32_t id)
{
    struct culet_live *live = question->live;

    switch (RB_BUILTIN_TYPE(child)) {
    case T_CLASS:
    case T_MODULE:
        if (!culet_live_is_named(live, child))
            return false;
        if (question->internal == INTERNAL_METHOD && !question->asked_owner)
            question->named_owner = true;
        question->asked_owner = true;
        if (question->collecting)
            culet_live_meet_class(live, child);
        return true;
    case T_IMEMO:
        if (question->layer >= LAYER_CODE || culet_internals_kind(child) != INTERNAL_CODE)
            return false;
        defer_code(question, id, culet_internals_code_path(child));
        return true;
    case T_DATA:
        if (culet_bits_has(&live->sets[LIVE_THREADS], id))
            return true;
        if (question->internal != INTERNAL_METHOD || !question->named_owner || !rb_obj_is_proc(child))
            return false;
        /* A method that is a block: the class keeps the block, and what it captured. */
        if (defer(question, id))
            culet_graph_add_single(&live->graph, HOLDER_CLOSURE, LAYER_DURABLE, question->object, 0, id);
        return true;
    default:
        return false;
    }
}

/* Of each object its class: it was met before, so it is not read. The owner of a method is noted. */
static bool is_met_class(const struct question *question, uint32_t id)
{
    const struct culet_live *live = question->live;

    return question->internal == INTERNAL_NONE && culet_bits_has(&live->sets[LIVE_NAMED], id) &&
           culet_bits_has(&live->sets[LIVE_DEFERRED], id);
}

static void found(VALUE child, void *data)
{
    struct question *question = data;
    uint32_t id = culet_live_id(question->live, child);
    bool plain = id != CULET_NO_ID && culet_bits_has(&question->live->sets[LIVE_PLAIN], id);

    if (id == CULET_NO_ID || child == question->object ||
        (!plain && (is_met_class(question, id) || RB_BUILTIN_TYPE(child) == T_NONE)))
        return;
    if (plain && question->collecting && !culet_bits_has(&question->live->sets[LIVE_LEAVES], id))
        __builtin_prefetch((const void *)child); /* the walk reads it next */
    if (question->internal == INTERNAL_CALL_CACHE || question->internal == INTERNAL_CONSTANT_CACHE) {
        if (!culet_live_is_named(question->live, child))
            defer_code(question, id, 0);
        return;
    }
    if (plain || !is_left_out(question, child, id))
        question->edge(question->data, id);
}

static void references(struct culet_graph *graph, uint32_t id, int layer, culet_edge_function *edge, void *data)
{
    struct culet_live *live = (struct culet_live *)graph;
    VALUE object = culet_live_object(graph, id);
    int type = RB_BUILTIN_TYPE(object);
    struct question question = {.live = live,
                                .object = object,
                                .internal = type == T_IMEMO ? culet_internals_kind(object) : INTERNAL_NONE,
                                .layer = layer,
                                .collecting = graph->layer < CULET_LAYERS,
                                .edge = edge,
                                .data = data};

    if ((type == T_DATA && culet_bits_has(&live->sets[LIVE_THREADS], id)) ||
        ((type == T_CLASS || type == T_MODULE) && culet_live_is_named(live, object)))
        return;
    live->reachable(object, found, &question);
}

/* Whether its class is all that it refers to: Strings and numbers, most of a heap, so no function is called. */
static bool has_class_only(VALUE flags)
{
    switch (flags & RUBY_T_MASK) {
    case T_STRING:
        return !culet_internals_has_variables(flags) && (flags & CULET_ELEMENTS_SHARED) == 0;
    case T_FLOAT:
    case T_BIGNUM:
        return !culet_internals_has_variables(flags);
    default:
        return false;
    }
}

/* The bits tell of most objects, whose words are not in the cache. String is named. */
static bool is_leaf(struct culet_graph *graph, uint32_t id)
{
    struct culet_live *live = (struct culet_live *)graph;
    VALUE class;

    if (culet_bits_has(&live->sets[LIVE_LEAVES], id))
        return true;
    if (!culet_bits_has(&live->sets[LIVE_CLASS_ONLY], id))
        return false;
    class = RBASIC(culet_live_object(graph, id))->klass;
    if (class != live->last_class) {
        live->last_class = class;
        live->last_class_named = class == 0 || culet_live_is_named(live, class);
        if (class != 0 && live->last_class_named && graph->layer < CULET_LAYERS)
            culet_live_meet_class(live, class);
    }
    return live->last_class_named;
}

static bool more_holders(struct culet_graph *graph)
{
    struct culet_live *live = (struct culet_live *)graph;
    size_t before = graph->holders.count;

    while (live->met.count > 0 && !graph->memory->failed)
        culet_live_add_class(live, live->met.items[--live->met.count]);
    if (graph->layer >= LAYER_LOOSE_CODE)
        culet_live_add_loose_code(live);
    return graph->holders.count > before;
}

/* ---- objects ---- */

static struct culet_sizes sizes(struct culet_graph *graph, uint32_t id)
{
    struct culet_live *live = (struct culet_live *)graph;
    size_t slot_bytes = culet_heap_index_run(&live->index, id)->slot_bytes;
    struct culet_object_bytes bytes;

    if (culet_bits_has(&live->sets[LIVE_EMBEDDED], id))
        return (struct culet_sizes){slot_bytes, 0, 0};
    bytes = culet_object_bytes(culet_live_object(graph, id), slot_bytes);
    return (struct culet_sizes){bytes.slot, bytes.malloc, bytes.transient};
}

static bool is_used(struct culet_graph *graph, uint32_t id)
{
    return culet_bits_has(&((struct culet_live *)graph)->sets[LIVE_USED], id);
}

static uint64_t address(struct culet_graph *graph, uint32_t id)
{
    return (uint64_t)culet_live_object(graph, id);
}

static uint32_t id_at(struct culet_graph *graph, uint64_t at)
{
    uint32_t id = culet_live_id((struct culet_live *)graph, (VALUE)at);

    return id != CULET_NO_ID && is_used(graph, id) ? id : CULET_NO_ID;
}

/* ---- opening ---- */

static const struct culet_graph_functions functions = {
    .is_leaf = is_leaf,
    .references = references,
    .named_references = culet_live_named_references,
    .more_holders = more_holders,
    .sizes = sizes,
    .is_used = is_used,
    .address = address,
    .class_of = culet_live_class_of,
    .write_class = culet_live_write_class,
    .write_holder = culet_live_write_holder,
    .content = culet_live_content,
    .shares_content = culet_live_shares_content,
    .id_at = id_at,
};

static int add_run(void *start, void *past, size_t slot_bytes, void *data)
{
    struct culet_live *live = data;

    return !culet_heap_index_add(live->graph.memory, &live->index, (uintptr_t)start, (uintptr_t)past, slot_bytes);
}

static bool reserve_sets(struct culet_live *live)
{
    for (int set = 0; set < CULET_LIVE_SETS; set++)
        if (!culet_numbers_reserve(live->graph.memory, &live->sets[set], live->index.ids / 32 + 1))
            return false;
    return true;
}

static void note_object(struct culet_live *live, uint32_t id, VALUE object)
{
    VALUE flags = RBASIC(object)->flags;
    int type = (int)(flags & RUBY_T_MASK);

    if (type == T_NONE || type == T_MOVED || type == T_ZOMBIE)
        return;
    (void)culet_bits_set(&live->sets[LIVE_USED], id);
    if (type != T_CLASS && type != T_MODULE && type != T_IMEMO && type != T_DATA)
        (void)culet_bits_set(&live->sets[LIVE_PLAIN], id);
    if (has_class_only(flags)) {
        (void)culet_bits_set(&live->sets[LIVE_CLASS_ONLY], id);
        if (RBASIC(object)->klass == rb_cString) {
            (void)culet_bits_set(&live->sets[LIVE_LEAVES], id);
            if ((flags & RSTRING_NOEMBED) == 0)
                (void)culet_bits_set(&live->sets[LIVE_EMBEDDED], id);
        }
    }
    live->has_finalizers |= (flags & RUBY_FL_FINALIZE) != 0;
    if (type == T_ARRAY && culet_live_is_finalizer(object))
        (void)culet_values_add(live->graph.memory, &live->block_lists, object);
}

static void note_used(struct culet_live *live)
{
    for (size_t i = 0; i < live->index.runs.count; i++) {
        const struct culet_heap_run *run = &live->index.runs.items[i];
        uint32_t id = run->first;
        for (uintptr_t at = run->start; at + run->slot_bytes <= run->past; at += run->slot_bytes, id++)
            note_object(live, id, (VALUE)at);
    }
}

static culet_reachable_function *reachable_function(void)
{
    CULET_OF_ANY(culet_reachable_function, function, "rb_objspace_reachable_objects_from");
    return function;
}

const char *culet_live_obstacle(void)
{
    if (reachable_function() == NULL || dlsym(RTLD_DEFAULT, "rb_objspace_reachable_objects_from_root") == NULL ||
        !culet_heap_walk_is_possible() || culet_heap_memsize() == NULL)
        return "this Ruby does not support following its references";
    return culet_vm_several_ractors() && !culet_vm_lock_exists()
               ? "several Ractors run, and this Ruby has no lock to stop them"
               : NULL;
}

bool culet_live_open(struct culet_live *live, struct culet_memory *memory)
{
    memset(live, 0, sizeof(*live));
    live->graph.functions = &functions;
    live->graph.memory = memory;
    live->reachable = reachable_function();
    if (culet_heap_walk(add_run, live) != 0 || memory->failed || !culet_heap_index_make(memory, &live->index) ||
        !reserve_sets(live))
        return false;
    live->graph.ids = live->index.ids;
    note_used(live);
    culet_live_add_roots(live);
    return !memory->failed;
}
