#include "retain/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/dump_line.h"
#include "retain/root_category.h"

#define BLOCK_BYTES ((size_t)1 << 20)
#define SMALLEST_SLOT 40
#define MOST_IDS (1u << 29)
#define MOST_KINDS 4096
#define MOST_KIND_BYTES 200 /* of a name */
#define OTHER_KIND 1

enum culet_dump_type {
    DUMP_OTHER,
    DUMP_CLASS, /* or a module */
    DUMP_CODE,
    DUMP_METHOD,
    DUMP_CACHE,
    DUMP_THREAD,
    DUMP_PROC,
    DUMP_STRING,
    DUMP_INTERNAL /* of a class: its methods and inclusions */
};

enum culet_dump_flags { DUMP_NAMED = 1, DUMP_SINGLETON = 2, DUMP_MET = 4, DUMP_DEFERRED = 8 };

static struct culet_dump *dump_of(struct culet_graph *graph)
{
    return (struct culet_dump *)graph;
}

/* ---- lines ---- */

static enum culet_dump_type type_of(const struct culet_dump_line *line)
{
    if (culet_dump_text_is(&line->type, "STRING"))
        return DUMP_STRING;
    if (culet_dump_text_is(&line->type, "CLASS") || culet_dump_text_is(&line->type, "MODULE"))
        return DUMP_CLASS;
    if (culet_dump_text_is(&line->type, "DATA"))
        return culet_dump_text_is(&line->structure, "VM/thread") ? DUMP_THREAD
               : culet_dump_text_is(&line->structure, "proc")    ? DUMP_PROC
                                                                 : DUMP_OTHER;
    if (culet_dump_text_is(&line->type, "ICLASS"))
        return DUMP_INTERNAL;
    if (!culet_dump_text_is(&line->type, "IMEMO"))
        return DUMP_OTHER;
    if (culet_dump_text_is(&line->internal, "iseq"))
        return DUMP_CODE;
    if (culet_dump_text_is(&line->internal, "ment"))
        return DUMP_METHOD;
    return culet_dump_text_is(&line->internal, "callcache") || culet_dump_text_is(&line->internal, "constcache")
               ? DUMP_CACHE
               : DUMP_INTERNAL;
}

/* The number of a name of a type, struct or internal kind. Beyond the room for them they all are "other". */
static uint16_t kind_of(struct culet_dump *dump, const struct culet_dump_line *line)
{
    const struct culet_dump_text *name = line->structure.length > 0  ? &line->structure
                                         : line->internal.length > 0 ? &line->internal
                                                                     : &line->type;

    uint32_t number =
        name->length <= MOST_KIND_BYTES ? culet_texts_add(&dump->kinds, name->bytes, name->length, MOST_KINDS) : 0;

    return (uint16_t)(number != 0 ? number : OTHER_KIND);
}

static bool keep_text(struct culet_dump *dump, const struct culet_dump_text *text, struct culet_dump_object *object)
{
    if (text->length == 0 || text->length > UINT32_MAX)
        return true;
    object->text = dump->texts.length;
    object->text_length = (uint32_t)text->length;
    culet_buffer_add(&dump->texts, text->bytes, text->length);
    if (dump->texts.failed || dump->texts.length > dump->graph.memory->limit_bytes)
        dump->graph.memory->failed = true;
    return !dump->graph.memory->failed;
}

/* Notes the addresses that a line refers to. Returns false for a bad one. */
static bool add_references(struct culet_dump *dump, struct culet_dump_line *line)
{
    uint64_t address;
    int found;

    while ((found = culet_dump_line_reference(line, &address)) > 0)
        if (!culet_dump_addresses_add(dump->graph.memory, &dump->addresses, address))
            return false;
    if (dump->addresses.count >= UINT32_MAX)
        dump->graph.memory->failed = true;
    return found == 0;
}

static bool add_root_line(struct culet_dump *dump, struct culet_dump_line *line)
{
    struct culet_dump_root root = {.category = culet_root_category_of(line->root.bytes, line->root.length),
                                   .first = (uint32_t)dump->addresses.count};

    if (line->root.bytes == NULL || !add_references(dump, line))
        return false;
    root.past = (uint32_t)dump->addresses.count;
    return culet_dump_roots_add(dump->graph.memory, &dump->roots, root);
}

static bool add_object_line(struct culet_dump *dump, struct culet_dump_line *line)
{
    struct culet_dump_object object = {.address = line->address,
                                       .class_address = line->class_address,
                                       .memsize = line->memsize,
                                       .first = (uint32_t)dump->addresses.count,
                                       .type = (uint8_t)type_of(line),
                                       .kind = kind_of(dump, line)};

    object.slot_size = line->slot_size > 0 && line->slot_size <= UINT32_MAX ? (uint32_t)line->slot_size : SMALLEST_SLOT;
    if (object.memsize < object.slot_size)
        object.memsize = object.slot_size;
    if (object.type == DUMP_CLASS) {
        if (culet_is_constant_path(line->name.bytes, line->name.length))
            object.flags |= DUMP_NAMED;
        if (line->singleton)
            object.flags |= DUMP_SINGLETON;
        if (!keep_text(dump, &line->name, &object))
            return false;
    } else if (object.type == DUMP_STRING && dump->keeps_contents && !keep_text(dump, &line->value, &object)) {
        return false;
    }
    if (object.type == DUMP_CODE || object.type == DUMP_METHOD || object.type == DUMP_CACHE ||
        object.type == DUMP_INTERNAL)
        object.class_address = 0;
    return add_references(dump, line) && culet_dump_objects_add(dump->graph.memory, &dump->objects, object);
}

static const char *add_line(struct culet_dump *dump, const char *bytes, size_t length)
{
    struct culet_dump_line line;
    bool added;

    if (length == 0)
        return NULL;
    if (!culet_dump_line_read(bytes, length, NULL, &line))
        return dump->objects.count == 0 && dump->roots.count == 0
                   ? "the file is no dump of Ruby's objects; make one with ObjectSpace.dump_all"
                   : "the dump is damaged: a line is no object";
    if (culet_dump_text_is(&line.type, "ROOT"))
        added = add_root_line(dump, &line);
    else if (culet_dump_text_is(&line.type, "SHAPE"))
        return NULL;
    else
        added = line.address != 0 && add_object_line(dump, &line);
    if (added && dump->objects.count < MOST_IDS)
        return NULL;
    return dump->graph.memory->failed ? culet_memory_problem(dump->graph.memory)
                                      : "the dump is damaged: a line has no valid address";
}

/* Adds all whole lines of the buffer, and keeps the rest. */
static const char *add_lines(struct culet_dump *dump, struct culet_array *buffer, size_t *filled, size_t *searched)
{
    char *bytes = buffer->items;
    size_t start = 0;
    char *end;

    while ((end = memchr(bytes + *searched, '\n', *filled - *searched)) != NULL) {
        size_t past = (size_t)(end - bytes);
        const char *problem = add_line(dump, bytes + start, past - start);
        if (problem != NULL)
            return problem;
        start = *searched = past + 1;
    }
    memmove(bytes, bytes + start, *filled - start);
    *filled -= start;
    *searched = *filled;
    return NULL;
}

static const char *read_lines(struct culet_dump *dump, int fd, struct culet_array *buffer)
{
    struct culet_memory *memory = dump->graph.memory;
    size_t filled = 0, searched = 0;
    const char *problem;

    for (;;) {
        ssize_t got;
        if (!culet_array_reserve(memory, buffer, filled + BLOCK_BYTES, 1))
            return culet_memory_problem(memory);
        do
            got = read(fd, (char *)buffer->items + filled, BLOCK_BYTES);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            return "the dump cannot be read";
        if (got == 0)
            break;
        filled += (size_t)got;
        if ((problem = add_lines(dump, buffer, &filled, &searched)) != NULL)
            return problem;
        if (culet_memory_exhausted(memory))
            return culet_memory_problem(memory);
    }
    if (filled > 0)
        return "the dump is cut: its last line has no end";
    if (dump->objects.count == 0)
        return "the dump has no objects";
    return dump->roots.count == 0 ? "the dump has no roots: it was made with since: or by a Ruby that leaves them out"
                                  : NULL;
}

/* ---- addresses ---- */

static uint32_t hash_of_object(const void *dump, uint32_t number)
{
    return culet_hash(((const struct culet_dump *)dump)->objects.items[number - 1].address);
}

/* Of several objects with an address the first; UINT32_MAX: none. */
static uint32_t id_of(const struct culet_dump *dump, uint64_t address)
{
    uint32_t mask = (uint32_t)dump->table.count - 1, at = culet_hash(address) & mask, number;

    while ((number = dump->table.items[at]) != 0 && dump->objects.items[number - 1].address != address)
        at = (at + 1) & mask;
    return number - 1;
}

static bool resolve_references(struct culet_dump *dump)
{
    if (!culet_numbers_reserve(dump->graph.memory, &dump->references, dump->addresses.count + 1))
        return false;
    for (size_t i = 0; i < dump->addresses.count; i++)
        dump->references.items[i] = id_of(dump, dump->addresses.items[i]);
    culet_dump_addresses_free(dump->graph.memory, &dump->addresses);
    return true;
}

/* A named class's singleton class, and the singleton class of that, belong to it; the last one is its own class, also where
 * a damaged dump has a circle of them. */
static bool name_singletons(struct culet_dump *dump)
{
    if (!culet_numbers_reserve(dump->graph.memory, &dump->owner, dump->objects.count))
        return false;
    for (uint32_t id = 0; id < dump->graph.ids; id++) {
        struct culet_dump_object *class = &dump->objects.items[id];
        uint32_t next;
        if (class->type != DUMP_CLASS || class->text_length == 0 || !(class->flags & DUMP_NAMED))
            continue;
        while ((next = id_of(dump, class->class_address)) != UINT32_MAX) {
            struct culet_dump_object *singleton = &dump->objects.items[next];
            if (dump->owner.items[next] == id + 1)
                class->class_address = class->address;
            if (singleton->type != DUMP_CLASS || (singleton->flags & DUMP_NAMED) ||
                !(singleton->flags & DUMP_SINGLETON))
                break;
            singleton->flags |= DUMP_NAMED;
            dump->owner.items[next] = id + 1;
            class = singleton;
        }
    }
    return true;
}

/* ---- references ---- */

static bool is_named_class(const struct culet_dump_object *object)
{
    return object->type == DUMP_CLASS && (object->flags & DUMP_NAMED) != 0;
}

static void meet_class(struct culet_dump *dump, uint32_t id)
{
    if (dump->owner.items[id] != 0)
        id = dump->owner.items[id] - 1;
    if (dump->objects.items[id].flags & DUMP_MET)
        return;
    dump->objects.items[id].flags |= DUMP_MET;
    (void)culet_numbers_add(dump->graph.memory, &dump->waiting, id);
}

struct question {
    struct culet_dump *dump;
    uint32_t id;
    int layer;
    bool collecting;
    bool asked_owner, named_owner; /* of a method: its class */
    culet_edge_function *edge;
    void *data;
};

/* Whether the object is to get a holder of its own, which it gets once. */
static bool defer(struct question *question, uint32_t id)
{
    struct culet_dump_object *object = &question->dump->objects.items[id];

    if (!question->collecting || (object->flags & DUMP_DEFERRED))
        return false;
    object->flags |= DUMP_DEFERRED;
    return true;
}

/* The rules of live.c. */
static void see(struct question *question, uint32_t id)
{
    struct culet_dump *dump = question->dump;
    const struct culet_dump_object *from = &dump->objects.items[question->id], *to;

    if (id == UINT32_MAX || id == question->id)
        return;
    to = &dump->objects.items[id];
    if (is_named_class(to)) {
        question->named_owner |= !question->asked_owner;
        question->asked_owner = true;
        if (question->collecting)
            meet_class(dump, id);
        return;
    }
    question->asked_owner |= to->type == DUMP_CLASS;
    if (to->type == DUMP_THREAD)
        return;
    if (from->type == DUMP_CACHE || (to->type == DUMP_CODE && question->layer < LAYER_CODE)) {
        if (defer(question, id))
            (void)culet_numbers_add(dump->graph.memory, &dump->loose, id);
        return;
    }
    if (from->type == DUMP_METHOD && to->type == DUMP_PROC && question->named_owner) {
        if (defer(question, id))
            culet_graph_add_single(&dump->graph, HOLDER_CLOSURE, LAYER_DURABLE, question->id, 0, id);
        return;
    }
    question->edge(question->data, id);
}

static void references(struct culet_graph *graph, uint32_t id, int layer, culet_edge_function *edge, void *data)
{
    struct culet_dump *dump = dump_of(graph);
    const struct culet_dump_object *object = &dump->objects.items[id];
    struct question question = {
        .dump = dump, .id = id, .layer = layer, .collecting = graph->layer < CULET_LAYERS, .edge = edge, .data = data};

    if (is_named_class(object) || object->type == DUMP_THREAD)
        return;
    if (object->class_address != 0)
        see(&question, id_of(dump, object->class_address));
    for (uint32_t i = object[0].first; i < object[1].first; i++)
        see(&question, dump->references.items[i]);
}

static const char *name_of_references(const struct culet_dump *dump, const struct culet_dump_object *object)
{
    static const char *const names[][2] = {
        {"ARRAY", "element"}, {"HASH", "entry"}, {"OBJECT", "variable"}, {"STRUCT", "member"}, {"STRING", "shared"}};
    size_t length;
    const char *kind = culet_texts_get(&dump->kinds, object->kind, &length);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i][0]) == length && memcmp(names[i][0], kind, length) == 0)
            return names[i][1];
    return object->type == DUMP_PROC ? "block" : "reference";
}

/* A dump has no names of references. */
static void named_references(struct culet_graph *graph, uint32_t id, culet_named_edge_function *edge, void *data)
{
    struct culet_dump *dump = dump_of(graph);
    const struct culet_dump_object *object = &dump->objects.items[id];
    const char *name = name_of_references(dump, object);
    uint32_t class = object->class_address != 0 ? id_of(dump, object->class_address) : UINT32_MAX;

    for (uint32_t i = object[0].first; i < object[1].first; i++) {
        uint32_t target = dump->references.items[i];
        if (target != UINT32_MAX && culet_bits_has(&graph->wanted, target))
            edge(data, target, name, strlen(name));
    }
    if (class != UINT32_MAX && culet_bits_has(&graph->wanted, class))
        edge(data, class, "class", 5);
}

static bool is_leaf(struct culet_graph *graph, uint32_t id)
{
    const struct culet_dump *dump = dump_of(graph);
    const struct culet_dump_object *object = &dump->objects.items[id];

    return object[0].first == object[1].first && object->class_address == 0;
}

/* ---- holders ---- */

/* Whether the object needs a holder. A thread has one of its own, and so has a class with a name, which is met here. */
static bool needs_holder(struct culet_dump *dump, uint32_t id)
{
    if (id == UINT32_MAX || dump->objects.items[id].type == DUMP_THREAD)
        return false;
    if (!is_named_class(&dump->objects.items[id]))
        return true;
    meet_class(dump, id);
    return false;
}

static void add_targets(struct culet_dump *dump, uint32_t first, uint32_t past)
{
    for (uint32_t i = first; i < past; i++)
        if (needs_holder(dump, dump->references.items[i]))
            culet_graph_add_target(&dump->graph, dump->references.items[i]);
}

/* Whether a class has it for its methods: code, tables, inclusions of modules. Else a constant or variable has it. */
static bool is_of_methods(const struct culet_dump *dump, uint32_t id)
{
    const struct culet_dump_object *object = &dump->objects.items[id];

    return object->type == DUMP_METHOD || object->type == DUMP_CODE || object->type == DUMP_CACHE ||
           object->type == DUMP_INTERNAL || object->type == DUMP_CLASS;
}

/* The singleton class of a class or of one of its singleton classes; the last one is its own class. */
static uint32_t singleton_of(const struct culet_dump *dump, uint32_t class, uint32_t one)
{
    uint32_t next = id_of(dump, dump->objects.items[one].class_address);

    return next != UINT32_MAX && next != one && dump->owner.items[next] == class + 1 ? next : UINT32_MAX;
}

static void add_class(struct culet_dump *dump, uint32_t class)
{
    for (uint32_t one = class; one != UINT32_MAX; one = singleton_of(dump, class, one)) {
        const struct culet_dump_object *object = &dump->objects.items[one];
        for (uint32_t i = object[0].first; i < object[1].first; i++) {
            uint32_t id = dump->references.items[i];
            if (id != UINT32_MAX && !is_of_methods(dump, id) && needs_holder(dump, id))
                culet_graph_add_single(&dump->graph, HOLDER_OTHER, LAYER_DURABLE, class, id, id);
        }
    }
    culet_graph_add_holder(&dump->graph, HOLDER_METHOD, LAYER_CODE, class, 0);
    for (uint32_t one = class; one != UINT32_MAX; one = singleton_of(dump, class, one)) {
        const struct culet_dump_object *object = &dump->objects.items[one];
        culet_graph_add_target(&dump->graph, one);
        for (uint32_t i = object[0].first; i < object[1].first; i++) {
            uint32_t id = dump->references.items[i];
            if (id != UINT32_MAX && is_of_methods(dump, id) && needs_holder(dump, id))
                culet_graph_add_target(&dump->graph, id);
        }
    }
}

static bool more_holders(struct culet_graph *graph)
{
    struct culet_dump *dump = dump_of(graph);
    size_t before = graph->holders.count;

    while (dump->waiting.count > 0 && !graph->memory->failed)
        add_class(dump, dump->waiting.items[--dump->waiting.count]);
    if (graph->layer >= LAYER_LOOSE_CODE && dump->loose.count > 0) {
        culet_graph_add_holder(graph, HOLDER_METHOD, LAYER_LOOSE_CODE, UINT32_MAX, 0);
        for (size_t i = 0; i < dump->loose.count; i++)
            culet_graph_add_target(graph, dump->loose.items[i]);
        dump->loose.count = 0;
    }
    return graph->holders.count > before;
}

static void add_root(struct culet_dump *dump, const struct culet_dump_root *root)
{
    static const struct {
        enum culet_holder_kind kind;
        enum culet_layer layer;
    } kinds[] = {[ROOT_VM] = {HOLDER_VM, LAYER_NATIVE},
                 [ROOT_FINALIZERS] = {HOLDER_FINALIZER, LAYER_DURABLE},
                 [ROOT_C_VARIABLE] = {HOLDER_NATIVE, LAYER_NATIVE},
                 [ROOT_AT_EXIT] = {HOLDER_CLOSURE, LAYER_DURABLE},
                 [ROOT_GLOBAL] = {HOLDER_GLOBAL, LAYER_DURABLE},
                 [ROOT_SYMBOLS] = {HOLDER_SYMBOL_TABLE, LAYER_NATIVE},
                 [ROOT_RACTOR] = {HOLDER_VM, LAYER_NATIVE}};

    if (root->category == ROOT_STACK) {
        culet_graph_add_holder(&dump->graph, HOLDER_STACK, LAYER_STACK, UINT32_MAX, 0);
        add_targets(dump, root->first, root->past);
        return;
    }
    for (uint32_t i = root->first; i < root->past; i++)
        if (needs_holder(dump, dump->references.items[i]))
            culet_graph_add_single(&dump->graph, kinds[root->category].kind, kinds[root->category].layer, UINT32_MAX,
                                   dump->references.items[i], dump->references.items[i]);
}

static void add_thread(struct culet_dump *dump, uint32_t id)
{
    const struct culet_dump_object *thread = &dump->objects.items[id];

    culet_graph_add_single(&dump->graph, HOLDER_STACK, LAYER_STACK, id, 0, id);
    add_targets(dump, thread[0].first, thread[1].first);
}

static void add_roots(struct culet_dump *dump)
{
    for (size_t i = 0; i < dump->roots.count; i++)
        add_root(dump, &dump->roots.items[i]);
    for (uint32_t id = 0; id < dump->graph.ids; id++)
        if (dump->objects.items[id].type == DUMP_THREAD)
            add_thread(dump, id);
}

/* ---- objects ---- */

static struct culet_sizes sizes(struct culet_graph *graph, uint32_t id)
{
    const struct culet_dump_object *object = &dump_of(graph)->objects.items[id];

    return (struct culet_sizes){object->slot_size, object->memsize - object->slot_size, 0};
}

static bool is_used(struct culet_graph *graph, uint32_t id)
{
    return id < dump_of(graph)->graph.ids;
}

static uint64_t address(struct culet_graph *graph, uint32_t id)
{
    return dump_of(graph)->objects.items[id].address;
}

static uint32_t id_at(struct culet_graph *graph, uint64_t at)
{
    return id_of(dump_of(graph), at);
}

/* A key with the lowest bit is a kind, else an id of a class. */
static uint64_t class_of(struct culet_graph *graph, uint32_t id)
{
    const struct culet_dump *dump = dump_of(graph);
    const struct culet_dump_object *object = &dump->objects.items[id];
    uint32_t class = object->class_address != 0 ? id_of(dump, object->class_address) : UINT32_MAX;

    if (object->type == DUMP_CLASS || class == UINT32_MAX || dump->objects.items[class].text_length == 0)
        return (uint64_t)object->kind << 1 | 1;
    return (uint64_t) class << 1;
}

static void write_text(const struct culet_dump *dump, const struct culet_dump_object *object, struct culet_buffer *text)
{
    if (object->text_length > 0)
        culet_buffer_add(text, dump->texts.bytes + object->text, object->text_length);
}

/* "ARRAY" is an Array; structs of C and internal kinds stay what they are. */
static void write_kind(const struct culet_dump *dump, uint32_t kind, struct culet_buffer *text)
{
    static const char *const types[][2] = {{"ARRAY", "Array"},   {"HASH", "Hash"},     {"STRING", "String"},
                                           {"CLASS", "Class"},   {"MODULE", "Module"}, {"OBJECT", "Object"},
                                           {"STRUCT", "Struct"}, {"SYMBOL", "Symbol"}, {"FLOAT", "Float"},
                                           {"REGEXP", "Regexp"}, {"FILE", "IO"},       {"BIGNUM", "Integer"}};
    size_t length;
    const char *name = culet_texts_get(&dump->kinds, kind, &length);

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strlen(types[i][0]) == length && memcmp(types[i][0], name, length) == 0) {
            culet_buffer_text(text, types[i][1]);
            return;
        }
    culet_buffer_text(text, "(internal ");
    culet_buffer_add(text, name, length);
    culet_buffer_text(text, ")");
}

static void write_class(struct culet_graph *graph, uint64_t key, struct culet_buffer *text)
{
    const struct culet_dump *dump = dump_of(graph);

    if (key & 1)
        write_kind(dump, (uint32_t)(key >> 1), text);
    else
        write_text(dump, &dump->objects.items[key >> 1], text);
}

static void write_owner(const struct culet_dump *dump, uint32_t method, struct culet_buffer *text)
{
    const struct culet_dump_object *object = &dump->objects.items[method];

    for (uint32_t i = object[0].first; i < object[1].first; i++) {
        uint32_t id = dump->references.items[i];
        if (id == UINT32_MAX || dump->objects.items[id].type != DUMP_CLASS)
            continue;
        if (dump->owner.items[id] != 0)
            id = dump->owner.items[id] - 1;
        write_text(dump, &dump->objects.items[id], text);
        return;
    }
}

static void write_holder(struct culet_graph *graph, const struct culet_holder *holder, struct culet_buffer *text,
                         struct culet_buffer *file, long *line)
{
    const struct culet_dump *dump = dump_of(graph);
    static const char *const names[] = {[HOLDER_GLOBAL] = "global variable",
                                        [HOLDER_FINALIZER] = "define_finalizer",
                                        [HOLDER_CLOSURE] = "at_exit",
                                        [HOLDER_STACK] = "stack",
                                        [HOLDER_NATIVE] = "C variable",
                                        [HOLDER_SYMBOL_TABLE] = "symbols",
                                        [HOLDER_METHOD] = "code of blocks",
                                        [HOLDER_VM] = "Ruby itself",
                                        [HOLDER_OTHER] = "root"};

    if (holder->object == UINT32_MAX || holder->kind == HOLDER_STACK) {
        culet_buffer_text(text, names[holder->kind]);
        if (holder->object != UINT32_MAX)
            culet_buffer_format(text, " of thread 0x%llx",
                                (unsigned long long)dump->objects.items[holder->object].address);
    } else if (holder->kind == HOLDER_CLOSURE) {
        write_owner(dump, (uint32_t)holder->object, text);
        culet_buffer_text(text, ": block of a method");
    } else {
        write_text(dump, &dump->objects.items[holder->object], text);
        if (holder->kind == HOLDER_OTHER)
            culet_buffer_text(text, ": constant or variable");
    }
}

static const char *content(struct culet_graph *graph, uint32_t id, size_t *length)
{
    const struct culet_dump *dump = dump_of(graph);
    const struct culet_dump_object *object = &dump->objects.items[id];

    if (object->type != DUMP_STRING || object->text_length == 0)
        return NULL;
    *length = object->text_length;
    return dump->texts.bytes + object->text;
}

/* ---- opening ---- */

static const struct culet_graph_functions functions = {
    .is_leaf = is_leaf,
    .references = references,
    .named_references = named_references,
    .more_holders = more_holders,
    .sizes = sizes,
    .is_used = is_used,
    .address = address,
    .class_of = class_of,
    .write_class = write_class,
    .write_holder = write_holder,
    .content = content,
    .id_at = id_at,
};

const char *culet_dump_open(struct culet_dump *dump, struct culet_memory *memory, int fd, bool contents)
{
    struct culet_array buffer = {NULL, 0};
    const char *problem;

    memset(dump, 0, sizeof(*dump));
    dump->graph.functions = &functions;
    dump->graph.memory = memory;
    dump->keeps_contents = contents;
    dump->kinds = (struct culet_texts){.most = MOST_KINDS, .most_bytes = MOST_KINDS * MOST_KIND_BYTES};
    memory->failed = !culet_texts_prepare(&dump->kinds) || culet_texts_add(&dump->kinds, "other", 5, 1) != OTHER_KIND;
    if (memory->failed)
        return culet_memory_problem(memory);
    problem = read_lines(dump, fd, &buffer);
    culet_array_free(memory, &buffer);
    if (problem != NULL)
        return problem;
    dump->graph.ids = (uint32_t)dump->objects.count;
    if (!culet_dump_objects_add(memory, &dump->objects,
                                (struct culet_dump_object){.first = (uint32_t)dump->addresses.count}))
        return culet_memory_problem(memory);
    dump->objects.count--;
    if (!culet_table_grow(memory, &dump->table, 1, dump->objects.count + 1, hash_of_object, dump) ||
        !resolve_references(dump) || !name_singletons(dump))
        return culet_memory_problem(memory);
    add_roots(dump);
    return memory->failed ? culet_memory_problem(memory) : NULL;
}

void culet_dump_close(struct culet_dump *dump)
{
    culet_buffer_free(&dump->texts);
    culet_texts_free(&dump->kinds);
}
