#include "retain/live_names.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "common/heap_walk.h"
#include "common/imemo.h"
#include "common/object_bytes.h"
#include "common/values.h"
#include "retain/internals.h"

#define NAME_BYTES 256 /* of a reference, at most */
#define KEY_TAG 6      /* of keys that are no class: its lowest bits are never those of an object */
#define KEY_SHIFT 3
#define KEY_INTERNAL 32 /* added to the kind of a T_IMEMO */
#define NAMELESS "(class without a name)"

/* ---- classes ---- */

static uint64_t key_of_type(int type)
{
    return (uint64_t)type << KEY_SHIFT | KEY_TAG;
}

uint64_t culet_live_class_of(struct culet_graph *graph, uint32_t id)
{
    VALUE object = culet_live_object(graph, id), flags = RBASIC(object)->flags;
    int type = (int)(flags & RUBY_T_MASK);

    if (type == T_IMEMO)
        return key_of_type(KEY_INTERNAL + (int)culet_imemo_kind(flags));
    if (type == T_ICLASS || type == T_NODE || RBASIC(object)->klass == 0)
        return key_of_type(type);
    return (uint64_t)rb_obj_class(object);
}

static const char *hidden_name(int type)
{
    switch (type) {
    case T_ARRAY:
        return "(internal Array)";
    case T_HASH:
        return "(internal Hash)";
    case T_STRING:
        return "(internal String)";
    case T_ICLASS:
        return "(inclusion of a module)";
    case T_DATA:
        return "(internal data)";
    default:
        return "(internal)";
    }
}

static void write_string(struct culet_buffer *text, VALUE string, const char *otherwise)
{
    if (RB_TYPE_P(string, T_STRING))
        culet_buffer_add(text, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
    else
        culet_buffer_text(text, otherwise);
}

/* A T_IMEMO of a kind. */
static void write_internal(struct culet_buffer *text, int kind)
{
    const char *name = culet_imemo_name((unsigned)kind);

    culet_buffer_text(text, "(internal");
    if (name != NULL) {
        culet_buffer_text(text, " ");
        culet_buffer_text(text, name);
    }
    culet_buffer_text(text, ")");
}

void culet_live_write_class(struct culet_graph *graph, uint64_t key, struct culet_buffer *text)
{
    if ((key & ((1u << KEY_SHIFT) - 1)) == KEY_TAG) {
        int type = (int)(key >> KEY_SHIFT);
        if (type >= KEY_INTERNAL)
            write_internal(text, type - KEY_INTERNAL);
        else
            culet_buffer_text(text, hidden_name(type));
        return;
    }
    write_string(text, rb_mod_name((VALUE)key), NAMELESS);
}

static void write_module(struct culet_buffer *text, VALUE module)
{
    VALUE name = Qnil;

    if (culet_live_is_singleton(module)) {
        VALUE attached = culet_internals_attached(module);
        if (RB_TYPE_P(attached, T_CLASS) || RB_TYPE_P(attached, T_MODULE)) {
            write_module(text, attached);
            return;
        }
    } else {
        name = rb_mod_name(module);
    }
    write_string(text, name, NAMELESS);
}

/* ---- holders ---- */

static void write_id(struct culet_buffer *text, uint64_t id)
{
    write_string(text, id != 0 ? rb_id2str((ID)id) : Qnil, "*");
}

static void write_code_place(VALUE code, struct culet_buffer *file, long *line)
{
    VALUE path = code != 0 ? culet_internals_code_path(code) : 0;

    if (path == 0 || !RB_TYPE_P(path, T_STRING))
        return;
    write_string(file, path, "");
    *line = culet_internals_code_line(code);
}

struct place {
    VALUE class, name; /* a Symbol */
};

/* The method of Module, whatever the class has for it. */
static VALUE constant_place(VALUE data)
{
    const struct place *place = (const struct place *)data;
    VALUE method = rb_funcall(rb_cModule, rb_intern("instance_method"), 1, ID2SYM(rb_intern("const_source_location")));

    return rb_funcall(method, rb_intern("bind_call"), 3, place->class, place->name, Qfalse);
}

/* Writes the file and line that set a constant of the class; nothing for Ruby's own constants. */
static void write_constant_place(VALUE class, ID name, struct culet_buffer *file, long *line)
{
    struct place place = {class, ID2SYM(name)};
    VALUE found = culet_try(constant_place, (VALUE)&place);

    if (!RB_TYPE_P(found, T_ARRAY) || RARRAY_LEN(found) != 2 || !RB_TYPE_P(rb_ary_entry(found, 0), T_STRING))
        return;
    write_string(file, rb_ary_entry(found, 0), "");
    if (FIXNUM_P(rb_ary_entry(found, 1)))
        *line = FIX2LONG(rb_ary_entry(found, 1));
}

/* Writes the file and line of a class's definition: those of its present constant. */
static void write_class_place(VALUE class, struct culet_buffer *file, long *line)
{
    VALUE path = rb_mod_name(class), around = rb_cObject;

    for (const char *rest = NIL_P(path) ? NULL : RSTRING_PTR(path); rest != NULL;) {
        const char *end = strstr(rest, "::");
        VALUE name = end != NULL ? rb_str_new(rest, end - rest) : rb_str_new_cstr(rest);
        VALUE found = culet_live_constant(around, name);
        if (!RB_TYPE_P(found, T_CLASS) && !RB_TYPE_P(found, T_MODULE))
            return;
        if (end == NULL && found == class)
            write_constant_place(around, rb_intern_str(name), file, line);
        around = found;
        rest = end != NULL ? end + 2 : NULL;
    }
}

static VALUE proc_of(const struct culet_graph *graph, const struct culet_holder *holder)
{
    VALUE object;

    if (holder->targets == 0)
        return 0;
    object = culet_live_object(graph, graph->targets.items[holder->first]);
    if (RB_BUILTIN_TYPE(object) == T_ARRAY && RARRAY_LEN(object) > 0) /* of a finalizer */
        object = RARRAY_AREF(object, RARRAY_LEN(object) - 1);
    return !RB_SPECIAL_CONST_P(object) && RB_BUILTIN_TYPE(object) == T_DATA && rb_obj_is_proc(object) ? object : 0;
}

/* The first class that a method refers to. */
static void note_owner(VALUE child, void *data)
{
    VALUE *owner = data;

    if (*owner == 0 && (RB_BUILTIN_TYPE(child) == T_CLASS || RB_BUILTIN_TYPE(child) == T_MODULE))
        *owner = child;
}

/* A method's entry has its name behind three words; its kind checks that. */
static void write_method(struct culet_live *live, VALUE method, struct culet_buffer *text)
{
    VALUE owner = 0;
    const VALUE *words = (const VALUE *)method;

    live->reachable(method, note_owner, &owner);
    if (owner == 0)
        return;
    write_module(text, owner);
    culet_buffer_text(text, culet_live_is_singleton(owner) ? "." : "#");
    write_string(text, words[3] != 0 ? rb_id2str((ID)words[3]) : Qnil, "");
}

static void write_closure(struct culet_live *live, const struct culet_holder *holder, struct culet_buffer *text,
                          struct culet_buffer *file, long *line)
{
    VALUE proc = proc_of(&live->graph, holder);

    if (holder->object != 0)
        write_method(live, (VALUE)holder->object, text);
    else
        culet_buffer_text(text, holder->kind == HOLDER_FINALIZER ? "define_finalizer" : "at_exit");
    if (proc != 0)
        write_code_place(culet_internals_proc_code(proc), file, line);
}

/* Variables that are not read: those of Regexp, whose values are made by the read, those that warn, and $FILENAME, which
 * opens a file of ARGV. */
static bool is_read_with_effects(const char *name)
{
    return (strlen(name) == 2 && strchr("~&`'+123456789=,;/KC", name[1]) != NULL) || strcmp(name, "$FILENAME") == 0;
}

static VALUE read_global(VALUE name)
{
    return rb_gv_get(StringValueCStr(name));
}

/* A variable that an extension defines may raise when it is read. */
static VALUE find_global(VALUE value)
{
    VALUE names = rb_f_global_variables();

    for (long i = 0; i < RARRAY_LEN(names); i++) {
        VALUE name = rb_sym2str(rb_ary_entry(names, i));
        if (!is_read_with_effects(RSTRING_PTR(name)) && culet_try(read_global, name) == value)
            return name;
    }
    return Qnil;
}

static void write_library(const void *function, struct culet_buffer *text)
{
    Dl_info info;
    const char *slash;

    if (function == NULL || dladdr(function, &info) == 0 || info.dli_fname == NULL)
        return;
    slash = strrchr(info.dli_fname, '/');
    culet_buffer_text(text, slash != NULL ? slash + 1 : info.dli_fname);
    culet_buffer_text(text, " ");
}

/* The library whose function marks the object's references, and its class. */
static void write_native(struct culet_graph *graph, VALUE object, struct culet_buffer *text)
{
    uint32_t id = culet_live_id((struct culet_live *)graph, object);

    if (RB_BUILTIN_TYPE(object) == T_DATA) {
        void *mark = RTYPEDDATA_P(object) ? (void *)RTYPEDDATA_TYPE(object)->function.dmark : NULL;
        write_library(mark != NULL ? mark : RTYPEDDATA_P(object) ? (const void *)RTYPEDDATA_TYPE(object) : NULL, text);
    } else {
        culet_buffer_text(text, "C variable ");
    }
    culet_live_write_class(graph, culet_live_class_of(graph, id), text);
}

static void write_thread(VALUE thread, struct culet_buffer *text)
{
    VALUE name = rb_thread_main() == thread ? Qnil : rb_attr_get(thread, rb_intern("@__name__"));

    culet_buffer_text(text, rb_thread_main() == thread ? "main thread" : "thread");
    if (RB_TYPE_P(name, T_STRING)) {
        culet_buffer_text(text, " ");
        write_string(text, name, "");
    }
}

static void write_vm(struct culet_graph *graph, VALUE object, struct culet_buffer *text)
{
    uint32_t id = culet_live_id((struct culet_live *)graph, object);

    culet_live_write_class(graph, culet_live_class_of(graph, id), text);
    if (RB_BUILTIN_TYPE(object) == T_DATA)
        culet_buffer_format(text, " %s", culet_data_type_name(object));
}

void culet_live_write_holder(struct culet_graph *graph, const struct culet_holder *holder, struct culet_buffer *text,
                             struct culet_buffer *file, long *line)
{
    struct culet_live *live = (struct culet_live *)graph;
    VALUE object = (VALUE)holder->object;

    switch ((enum culet_holder_kind)holder->kind) {
    case HOLDER_CONSTANT:
        if (object != rb_cObject || holder->name == 0) {
            write_module(text, object);
            culet_buffer_text(text, "::");
        }
        write_id(text, holder->name);
        if (holder->name != 0)
            write_constant_place(object, (ID)holder->name, file, line);
        else
            write_class_place(object, file, line);
        return;
    case HOLDER_CLASS_VARIABLE:
    case HOLDER_INSTANCE_VARIABLE:
        write_module(text, object);
        culet_buffer_text(text, holder->name != 0 ? " " : holder->kind == HOLDER_CLASS_VARIABLE ? " @@" : " @");
        write_id(text, holder->name);
        write_class_place(object, file, line);
        return;
    case HOLDER_THREAD_LOCAL:
    case HOLDER_FIBER_LOCAL:
        write_thread(object, text);
        culet_buffer_text(text, holder->kind == HOLDER_FIBER_LOCAL ? "[:" : " variable :");
        write_id(text, holder->name);
        if (holder->kind == HOLDER_FIBER_LOCAL)
            culet_buffer_text(text, "]");
        return;
    case HOLDER_CLOSURE:
    case HOLDER_FINALIZER:
        write_closure(live, holder, text, file, line);
        return;
    case HOLDER_GLOBAL:
        write_string(text, culet_try(find_global, object), "(global variable)");
        return;
    case HOLDER_SYMBOL_TABLE:
        culet_buffer_text(text, "symbols");
        return;
    case HOLDER_NATIVE:
        write_native(graph, object, text);
        return;
    case HOLDER_STACK:
        culet_buffer_text(text, "stack of the ");
        write_thread(object, text);
        return;
    case HOLDER_METHOD:
        if (object != 0) {
            write_module(text, object);
            write_class_place(object, file, line);
        } else if (holder->name != 0 && RB_TYPE_P((VALUE)holder->name, T_STRING)) {
            culet_buffer_text(text, "code of ");
            write_string(text, (VALUE)holder->name, "");
            write_string(file, (VALUE)holder->name, "");
        } else {
            culet_buffer_text(text, "inline caches");
        }
        return;
    case HOLDER_VM:
        write_vm(graph, object, text);
        return;
    case HOLDER_OTHER:
        culet_buffer_text(text, "root");
        return;
    }
}

/* ---- references ---- */

struct naming {
    struct culet_graph *graph;
    culet_named_edge_function *edge;
    void *data;
    VALUE object;
    const char *name; /* of references that have none of their own */
};

static bool is_wanted(const struct naming *naming, VALUE value)
{
    uint32_t id = culet_live_id((struct culet_live *)naming->graph, value);

    return id != CULET_NO_ID && culet_bits_has(&naming->graph->wanted, id);
}

static void emit(const struct naming *naming, VALUE value, const char *name, size_t length)
{
    if (is_wanted(naming, value))
        naming->edge(naming->data, culet_live_id((struct culet_live *)naming->graph, value), name, length);
}

static int emit_variable(ID name, VALUE value, st_data_t data)
{
    VALUE text = rb_id2str(name);

    if (RB_TYPE_P(text, T_STRING))
        emit((const struct naming *)data, value, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    return ST_CONTINUE;
}

/* A key as a name: symbols and integers as they are, of others the class, unless contents may be shown. */
static size_t write_key(const struct naming *naming, VALUE key, char *name)
{
    if (RB_FIXNUM_P(key))
        return (size_t)snprintf(name, NAME_BYTES, "[%ld]", FIX2LONG(key));
    if (RB_SYMBOL_P(key)) {
        VALUE text = rb_sym2str(key);
        return (size_t)snprintf(name, NAME_BYTES, "[:%.*s]", (int)(RSTRING_LEN(text) < 200 ? RSTRING_LEN(text) : 200),
                                RSTRING_PTR(text));
    }
    if (RB_TYPE_P(key, T_STRING) && naming->graph->show_contents)
        return (size_t)snprintf(name, NAME_BYTES, "[\"%.*s\"]", (int)(RSTRING_LEN(key) < 80 ? RSTRING_LEN(key) : 80),
                                RSTRING_PTR(key));
    if (!RB_SPECIAL_CONST_P(key)) {
        struct culet_buffer text = {NULL, 0, 0, 0};
        uint32_t id = culet_live_id((struct culet_live *)naming->graph, key);
        size_t length = 0;
        if (id != CULET_NO_ID) {
            culet_live_write_class(naming->graph, culet_live_class_of(naming->graph, id), &text);
            length =
                (size_t)snprintf(name, NAME_BYTES, "[%.*s]", (int)(text.length < 200 ? text.length : 200), text.bytes);
        }
        culet_buffer_free(&text);
        if (length > 0)
            return length;
    }
    return (size_t)snprintf(name, NAME_BYTES, "[%s]", key == Qnil ? "nil" : "value");
}

static int emit_pair(VALUE key, VALUE value, VALUE data)
{
    const struct naming *naming = (const struct naming *)data;
    char name[NAME_BYTES];

    if (is_wanted(naming, value))
        emit(naming, value, name, write_key(naming, key, name));
    emit(naming, key, "key", 3);
    return ST_CONTINUE;
}

static VALUE emit_pairs(VALUE data)
{
    const struct naming *naming = (const struct naming *)data;

    rb_hash_foreach(naming->object, emit_pair, data);
    return Qnil;
}

static void emit_elements(const struct naming *naming, VALUE array)
{
    char name[32];

    for (long i = 0; i < RARRAY_LEN(array); i++) {
        VALUE value = RARRAY_AREF(array, i);
        if (is_wanted(naming, value))
            emit(naming, value, name, (size_t)snprintf(name, sizeof(name), "[%ld]", i));
    }
}

static void emit_members(const struct naming *naming, VALUE object)
{
    VALUE members = culet_try(rb_struct_members, object);

    for (long i = 0; members != Qundef && i < RARRAY_LEN(members); i++) {
        VALUE value = RSTRUCT_GET(object, (int)i), name = rb_sym2str(RARRAY_AREF(members, i));
        emit(naming, value, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    }
}

static void emit_other(VALUE child, void *data)
{
    const struct naming *naming = data;

    emit(naming, child, naming->name, strlen(naming->name));
}

static const char *name_of_others(VALUE object)
{
    switch (RB_BUILTIN_TYPE(object)) {
    case T_DATA:
        return rb_obj_is_proc(object) ? "block" : "(mark)";
    case T_IMEMO:
        switch (culet_internals_kind(object)) {
        case INTERNAL_ENVIRONMENT:
            return "captured";
        case INTERNAL_CODE:
            return "code";
        case INTERNAL_METHOD:
            return "method";
        default:
            return "internal";
        }
    case T_STRING:
        return "shared";
    default:
        return "internal";
    }
}

void culet_live_named_references(struct culet_graph *graph, uint32_t id, culet_named_edge_function *edge, void *data)
{
    struct culet_live *live = (struct culet_live *)graph;
    VALUE object = culet_live_object(graph, id);
    struct naming naming = {
        .graph = graph, .edge = edge, .data = data, .object = object, .name = name_of_others(object)};
    int type = RB_BUILTIN_TYPE(object);

    if ((type == T_CLASS || type == T_MODULE) && culet_live_is_named(live, object))
        return;
    switch (type) {
    case T_ARRAY:
        emit_elements(&naming, object);
        break;
    case T_HASH:
        (void)culet_try(emit_pairs, (VALUE)&naming);
        break;
    case T_STRUCT:
        emit_members(&naming, object);
        break;
    default:
        break;
    }
    if (type != T_IMEMO && type != T_NODE && type != T_ICLASS && type != T_ZOMBIE)
        rb_ivar_foreach(object, emit_variable, (st_data_t)&naming);
    live->reachable(object, emit_other, &naming);
}

const char *culet_live_content(struct culet_graph *graph, uint32_t id, size_t *length)
{
    VALUE object = culet_live_object(graph, id);

    if (RB_BUILTIN_TYPE(object) != T_STRING)
        return NULL;
    *length = (size_t)RSTRING_LEN(object);
    return RSTRING_PTR(object);
}

bool culet_live_shares_content(struct culet_graph *graph, uint32_t id)
{
    VALUE flags = RBASIC(culet_live_object(graph, id))->flags;

    return (flags & RSTRING_NOEMBED) != 0 && (flags & CULET_ELEMENTS_SHARED) != 0;
}
