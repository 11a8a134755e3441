/* Ruby's roots, with their categories, and the references of classes and threads.
 *
 * Only C functions of Ruby are called. A constant that is to be loaded automatically is not read, a deprecated one
 * without a warning. */
#include "retain/live_roots.h"

#include <ruby/st.h>
#include <stdlib.h>
#include <string.h>

#include "common/active_malloc.h"
#include "common/object_bytes.h"
#include "common/values.h"
#include "retain/internals.h"
#include "retain/root_category.h"

typedef void root_function(void (*found)(const char *category, VALUE object, void *data), void *data);

/* Variables or constants of a class, beyond which they are one holder: a program that makes their names from data. */
#define MOST_APART 200

/* ---- helpers ---- */

/* Numbers, nil, classes with a name and threads need no holder. */
static bool needs_holder(struct culet_live *live, VALUE target)
{
    uint32_t id = culet_live_id(live, target);

    if (id == CULET_NO_ID || RB_BUILTIN_TYPE(target) == T_NONE || culet_bits_has(&live->sets[LIVE_THREADS], id))
        return false;
    if (!culet_live_is_named(live, target))
        return true;
    culet_live_meet_class(live, target);
    return false;
}

/* Adds an object to the last holder, if it needs one. */
static void add_target(VALUE object, void *data)
{
    struct culet_live *live = data;

    if (needs_holder(live, object))
        culet_graph_add_target(&live->graph, culet_live_id(live, object));
}

/* Adds a holder of one object, if that needs one. */
static void add_single(struct culet_live *live, enum culet_holder_kind kind, enum culet_layer layer, uint64_t object,
                       uint64_t name, VALUE target)
{
    if (needs_holder(live, target))
        culet_graph_add_single(&live->graph, kind, layer, object, name, culet_live_id(live, target));
}

/* ---- classes ---- */

struct class_walk {
    struct culet_live *live;
    VALUE class;
    struct culet_notes variables, class_variables, constants; /* name and id */
};

/* TOPLEVEL_BINDING has the local variables of the main program. They are the stack's as well: what constants or other
 * variables have is theirs. */
static VALUE main_binding(VALUE nothing)
{
    return rb_const_get_at(rb_cObject, rb_intern("TOPLEVEL_BINDING"));
}

static void note_reference(struct class_walk *walk, struct culet_notes *notes, ID name, VALUE value)
{
    struct culet_live *live = walk->live;

    if (RB_SPECIAL_CONST_P(value))
        return;
    (void)culet_values_add(live->graph.memory, &live->values, value);
    if (walk->class == rb_cObject && name == rb_intern("TOPLEVEL_BINDING"))
        add_single(live, HOLDER_CONSTANT, LAYER_NATIVE, walk->class, name, value);
    else if (needs_holder(live, value))
        (void)culet_notes_add(live->graph.memory, notes, (struct culet_noted){name, culet_live_id(live, value)});
}

/* Adds holders of noted references: one each, or one without a name where there are many. Frees the list. */
static void add_references(struct class_walk *walk, struct culet_notes *notes, enum culet_holder_kind kind)
{
    struct culet_graph *graph = &walk->live->graph;

    for (size_t i = 0; i < notes->count; i++) {
        if (notes->count <= MOST_APART || i == 0)
            culet_graph_add_holder(graph, kind, LAYER_DURABLE, walk->class,
                                   notes->count <= MOST_APART ? notes->items[i].object : 0);
        culet_graph_add_target(graph, (uint32_t)notes->items[i].value);
    }
    culet_notes_free(graph->memory, notes);
}

static int note_variable(ID name, VALUE value, st_data_t data)
{
    struct class_walk *walk = (struct class_walk *)data;
    const char *text = rb_id2name(name);

    if (text == NULL || text[0] != '@' || value == Qundef)
        return ST_CONTINUE;
    note_reference(walk, text[1] == '@' ? &walk->class_variables : &walk->variables, name, value);
    return ST_CONTINUE;
}

static VALUE list_constants(VALUE class)
{
    VALUE own = Qfalse;

    return rb_mod_constants(1, &own, class);
}

static int add_name(st_data_t name, st_data_t entry, st_data_t names)
{
    rb_ary_push((VALUE)names, ID2SYM((ID)name));
    return ST_CONTINUE;
}

/* rb_mod_constants leaves private constants out; the function behind it, which is not in Ruby's headers, does not. */
static VALUE all_constants(VALUE class)
{
    typedef void *table_function(VALUE module, void *table);
    CULET_OF_ANY(table_function, table_of, "rb_mod_const_at");
    VALUE names = rb_ary_new();
    st_table *table;

    if (table_of == NULL)
        return list_constants(class);
    table = table_of(class, NULL);
    if (table == NULL)
        return names;
    st_foreach(table, add_name, (st_data_t)names);
    st_free_table(table);
    return names;
}

static void note_constants(struct class_walk *walk)
{
    VALUE names = culet_try(all_constants, walk->class);

    for (long i = 0; names != Qundef && i < RARRAY_LEN(names); i++) {
        VALUE name = rb_ary_entry(names, i), value = culet_live_constant(walk->class, name);
        if (value != Qundef)
            note_reference(walk, &walk->constants, SYM2ID(name), value);
    }
}

static int by_value(const void *one, const void *other)
{
    VALUE a = *(const VALUE *)one, b = *(const VALUE *)other;

    return (a > b) - (a < b);
}

static bool contains(const struct culet_values *sorted, VALUE value)
{
    return sorted->count > 0 && bsearch(&value, sorted->items, sorted->count, sizeof(value), by_value) != NULL;
}

/* All other references of a class are of its methods. */
static void add_method(VALUE child, void *data)
{
    const struct class_walk *walk = data;

    if (child != walk->class && !contains(&walk->live->values, child))
        add_target(child, walk->live);
}

static void add_blocks(struct culet_live *live, size_t first, size_t count);

/* The singleton classes of a class, first its own; each is the class of what is before it. */
static VALUE singleton_of(VALUE class)
{
    VALUE singleton = RBASIC(class)->klass;

    return singleton != 0 && culet_live_is_singleton(singleton) && culet_internals_attached(singleton) == class
               ? singleton
               : 0;
}

void culet_live_add_class(struct culet_live *live, VALUE class)
{
    struct culet_values *values = &live->values;
    size_t holder;

    values->count = 0;
    for (VALUE one = class; one != 0; one = singleton_of(one)) {
        struct class_walk walk = {.live = live, .class = one};
        rb_ivar_foreach(one, note_variable, (st_data_t)&walk);
        note_constants(&walk);
        add_references(&walk, &walk.variables, HOLDER_INSTANCE_VARIABLE);
        add_references(&walk, &walk.class_variables, HOLDER_CLASS_VARIABLE);
        add_references(&walk, &walk.constants, HOLDER_CONSTANT);
    }
    culet_values_sort(values, by_value);
    culet_graph_add_holder(&live->graph, HOLDER_METHOD, LAYER_CODE, class, 0);
    holder = live->graph.holders.count - 1;
    for (VALUE one = class; one != 0; one = singleton_of(one)) {
        struct class_walk walk = {.live = live, .class = one};
        culet_graph_add_target(&live->graph, culet_live_id(live, one));
        live->reachable(one, add_method, &walk);
    }
    if (!live->graph.memory->failed)
        add_blocks(live, live->graph.holders.items[holder].first, live->graph.holders.items[holder].targets);
}

/* ---- methods that are blocks ---- */

struct owner {
    struct culet_live *live;
    VALUE method;
    bool first;
    bool own; /* its class is named */
};

static void add_block(VALUE child, void *data)
{
    struct owner *owner = data;
    uint32_t id = culet_live_id(owner->live, child);
    int type;

    if (id == CULET_NO_ID)
        return;
    type = RB_BUILTIN_TYPE(child);
    if (owner->first && (type == T_CLASS || type == T_MODULE)) {
        owner->first = false;
        owner->own = culet_live_is_named(owner->live, child);
    } else if (owner->own && type == T_DATA && rb_obj_is_proc(child) &&
               !culet_bits_set(&owner->live->sets[LIVE_DEFERRED], id)) {
        culet_graph_add_single(&owner->live->graph, HOLDER_CLOSURE, LAYER_DURABLE, owner->method, 0, id);
    }
}

/* Of the methods among a class's references. */
static void add_blocks(struct culet_live *live, size_t first, size_t count)
{
    for (size_t i = 0; i < count && !live->graph.memory->failed; i++) {
        VALUE method = culet_live_object(&live->graph, live->graph.targets.items[first + i]);
        struct owner owner = {live, method, true, false};
        if (RB_BUILTIN_TYPE(method) == T_IMEMO && culet_internals_kind(method) == INTERNAL_METHOD)
            live->reachable(method, add_block, &owner);
    }
}

/* ---- code ---- */

static int by_object(const void *one, const void *other)
{
    const struct culet_noted *a = one, *b = other;

    if (a->object != b->object)
        return a->object < b->object ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

/* Adds one holder per object, with the noted ids as its targets. Empties the list. */
static void add_grouped(struct culet_live *live, struct culet_notes *notes, enum culet_holder_kind kind,
                        enum culet_layer layer)
{
    culet_notes_sort(notes, by_object);
    for (size_t i = 0; i < notes->count; i++) {
        VALUE object = notes->items[i].object;
        if (i == 0 || object != notes->items[i - 1].object)
            culet_graph_add_holder(&live->graph, kind, layer, 0, object);
        culet_graph_add_target(&live->graph, (uint32_t)notes->items[i].value);
    }
    notes->count = 0;
}

void culet_live_add_loose_code(struct culet_live *live)
{
    add_grouped(live, &live->loose, HOLDER_METHOD, LAYER_LOOSE_CODE);
}

/* ---- threads ---- */

/* Roots, and their categories. */
struct root_list {
    struct culet_memory *memory;
    struct culet_notes roots;
};

static void note_thread(VALUE child, void *data)
{
    struct culet_live *live = data;
    uint32_t id = culet_live_id(live, child);

    if (id != CULET_NO_ID && culet_is_thread(child) && !culet_bits_set(&live->sets[LIVE_THREADS], id))
        (void)culet_values_add(live->graph.memory, &live->threads, child);
}

/* Calls a method of Thread's, whatever a subclass has. */
static VALUE call_thread(VALUE thread, const char *name)
{
    VALUE method = rb_funcall(rb_cThread, rb_intern("instance_method"), 1, ID2SYM(rb_intern(name)));

    return rb_funcall(method, rb_intern("bind_call"), 1, thread);
}

/* Threads that have ended may be garbage, and refer to a Ractor that is gone. */
static void note_threads_in_heap(struct culet_live *live)
{
    for (uint32_t id = 0; id < live->graph.ids; id++) {
        VALUE object = culet_bits_has(&live->sets[LIVE_USED], id) ? culet_live_object(&live->graph, id) : Qnil;
        if (culet_is_thread(object) && RTEST(call_thread(object, "alive?")))
            note_thread(object, live);
    }
}

/* Each Ractor marks its threads that are alive. Where each has a heap of its own (4.1), those of the current one are
 * roots, and the others are looked for among all objects. Thread.list would take a lock that another thread may have
 * had. */
static void list_threads(struct culet_live *live, const struct root_list *list)
{
    bool heaps = false;

    for (size_t i = 0; i < list->roots.count; i++) {
        VALUE object = list->roots.items[i].object;
        heaps |= list->roots.items[i].value == ROOT_RACTOR;
        if (list->roots.items[i].value == ROOT_RACTOR)
            note_thread(object, live);
        if (strcmp(culet_data_type_name(object), "ractor") == 0)
            live->reachable(object, note_thread, live);
    }
    if (heaps)
        note_threads_in_heap(live);
}

static void note_value(VALUE child, void *data)
{
    struct culet_live *live = data;

    (void)culet_values_add(live->graph.memory, &live->values, child);
}

static void note_value_or_fiber(VALUE child, void *data)
{
    struct culet_live *live = data;

    note_value(child, live);
    if (strcmp(culet_data_type_name(child), "fiber") == 0)
        live->reachable(child, note_value, live);
}

/* Puts what threads and their fibers refer to into `values`: it is their stacks' where the Ractor has it as well. */
static void list_stack_values(struct culet_live *live)
{
    live->values.count = 0;
    for (size_t i = 0; i < live->threads.count; i++)
        live->reachable(live->threads.items[i], note_value_or_fiber, live);
    culet_values_sort(&live->values, by_value);
}

static void add_locals(struct culet_live *live, VALUE thread)
{
    VALUE names = call_thread(thread, "keys");

    for (long i = 0; i < RARRAY_LEN(names); i++) {
        ID name = SYM2ID(rb_ary_entry(names, i));
        add_single(live, HOLDER_FIBER_LOCAL, LAYER_DURABLE, thread, name, rb_thread_local_aref(thread, name));
    }
}

struct thread_walk {
    struct culet_live *live;
    VALUE thread;
};

static int add_thread_variable(VALUE name, VALUE value, VALUE data)
{
    struct thread_walk *walk = (struct thread_walk *)data;

    add_single(walk->live, HOLDER_THREAD_LOCAL, LAYER_DURABLE, walk->thread, SYM2ID(name), value);
    return ST_CONTINUE;
}

/* Ruby keeps a thread's variables in a Hash, in an instance variable `locals` (without @). */
static void add_variables(struct culet_live *live, VALUE thread)
{
    VALUE variables = rb_attr_get(thread, rb_intern("locals"));
    struct thread_walk walk = {live, thread};

    if (RB_TYPE_P(variables, T_HASH))
        rb_hash_foreach(variables, add_thread_variable, (VALUE)&walk);
}

/* The native stack of the current thread is a root of its own. */
static void add_thread(struct culet_live *live, VALUE thread, const struct root_list *list)
{
    add_locals(live, thread);
    add_variables(live, thread);
    culet_graph_add_single(&live->graph, HOLDER_STACK, LAYER_STACK, thread, 0, culet_live_id(live, thread));
    live->reachable(thread, add_target, live);
    for (size_t i = 0; thread == rb_thread_current() && i < list->roots.count; i++)
        if (list->roots.items[i].value == ROOT_STACK)
            add_target(list->roots.items[i].object, live);
}

/* ---- roots ---- */

static void note_root(const char *category, VALUE object, void *data)
{
    struct root_list *list = data;

    (void)culet_notes_add(
        list->memory, &list->roots,
        (struct culet_noted){object, culet_root_category_of(category, category != NULL ? strlen(category) : 0)});
}

static bool is_hidden_array(VALUE object)
{
    return RB_BUILTIN_TYPE(object) == T_ARRAY && RBASIC(object)->klass == 0;
}

/* The table of symbols: arrays of names and symbols by turns, in an array. */
static bool is_symbol_table(VALUE object)
{
    VALUE part;

    if (!is_hidden_array(object) || RARRAY_LEN(object) == 0)
        return false;
    part = RARRAY_AREF(object, RARRAY_LEN(object) - 1);
    if (RB_SPECIAL_CONST_P(part) || !is_hidden_array(part) || RARRAY_LEN(part) < 2)
        return false;
    return RB_TYPE_P(RARRAY_AREF(part, 0), T_STRING) || NIL_P(RARRAY_AREF(part, 0));
}

static void note_finalizer(struct culet_live *live, VALUE list)
{
    VALUE code = culet_live_is_finalizer(list) ? culet_internals_proc_code(RARRAY_AREF(list, RARRAY_LEN(list) - 1)) : 0;
    uint32_t id = culet_live_id(live, list);

    (void)culet_notes_add(live->graph.memory, &live->finalizers, (struct culet_noted){code, id});
}

static bool is_native(VALUE object)
{
    return RB_BUILTIN_TYPE(object) == T_DATA && strncmp(culet_data_type_name(object), "VM/", 3) != 0;
}

static void add_vm_root(struct culet_live *live, VALUE object)
{
    if (culet_live_is_finalizer(object))
        note_finalizer(live, object);
    else if (is_symbol_table(object))
        add_single(live, HOLDER_SYMBOL_TABLE, LAYER_NATIVE, 0, 0, object);
    else if (is_hidden_array(object)) /* lists of what C code has registered, each of which is a root itself */
        add_single(live, HOLDER_VM, LAYER_LOOSE_CODE, object, 0, object);
    else
        add_single(live, is_native(object) ? HOLDER_NATIVE : HOLDER_VM, LAYER_NATIVE, object, 0, object);
}

static void add_root(struct culet_live *live, const struct culet_noted *root)
{
    if (culet_live_id(live, root->object) == CULET_NO_ID || RB_BUILTIN_TYPE(root->object) == T_NONE)
        return;
    switch ((enum culet_root_category)root->value) {
    case ROOT_FINALIZERS:
        note_finalizer(live, root->object);
        return;
    case ROOT_STACK:
        return;
    case ROOT_C_VARIABLE:
        add_single(live, HOLDER_NATIVE, LAYER_NATIVE, root->object, 0, root->object);
        return;
    case ROOT_AT_EXIT:
        (void)culet_notes_add(
            live->graph.memory, &live->at_exit,
            (struct culet_noted){culet_internals_proc_code(root->object), culet_live_id(live, root->object)});
        return;
    case ROOT_GLOBAL:
        add_single(live, HOLDER_GLOBAL, LAYER_DURABLE, root->object, 0, root->object);
        return;
    case ROOT_SYMBOLS:
        add_single(live, HOLDER_SYMBOL_TABLE, LAYER_NATIVE, 0, 0, root->object);
        return;
    case ROOT_RACTOR:
        if (contains(&live->values, root->object) && !culet_live_is_named(live, root->object))
            return;
        add_vm_root(live, root->object);
        return;
    case ROOT_VM:
        add_vm_root(live, root->object);
        return;
    }
}

/* Where Ruby does not report its finalizers as roots (4.0 and later), the lists in the heap are taken for them. */
static void note_block_lists(struct culet_live *live, const struct root_list *list)
{
    for (size_t i = 0; i < list->roots.count; i++)
        if (list->roots.items[i].value == ROOT_FINALIZERS)
            return;
    for (size_t i = 0; live->has_finalizers && i < live->block_lists.count; i++)
        note_finalizer(live, live->block_lists.items[i]);
}

/* The stacks are read before this function makes objects. */
void culet_live_add_roots(struct culet_live *live)
{
    struct root_list list = {.memory = live->graph.memory};
    CULET_OF_ANY(root_function, each_root, "rb_objspace_reachable_objects_from_root");
    VALUE binding = culet_try(main_binding, Qnil); /* a root of Ruby's, too: the constant has the better name */

    each_root(note_root, &list);
    culet_notes_sort(&list.roots, by_object);
    list_threads(live, &list);
    list_stack_values(live);
    for (size_t i = 0; i < list.roots.count; i++)
        if (list.roots.items[i].object != binding &&
            (i == 0 || by_object(&list.roots.items[i - 1], &list.roots.items[i]) != 0))
            add_root(live, &list.roots.items[i]);
    note_block_lists(live, &list);
    add_grouped(live, &live->finalizers, HOLDER_FINALIZER, LAYER_DURABLE);
    add_grouped(live, &live->at_exit, HOLDER_CLOSURE, LAYER_DURABLE);
    for (size_t i = 0; i < live->threads.count; i++)
        add_thread(live, live->threads.items[i], &list);
    culet_notes_free(live->graph.memory, &list.roots);
}
