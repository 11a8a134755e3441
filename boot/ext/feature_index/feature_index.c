/* Culet::FeatureIndex, the index as a Ruby class. boot/lib/feature_index.rb documents its methods. */
#include <ruby.h>

#include <limits.h>
#include <string.h>

#include "common/values.h"
#include "feature_index/builder.h"
#include "feature_index/feature_index.h"
#include "feature_index/scan.h"
#include "feature_index/store.h"

struct wrapper {
    struct culet_builder *builder; /* NULL: the index is a file's */
    struct culet_index index;
};

static VALUE error_class;

static void free_wrapper(void *pointer)
{
    struct wrapper *wrapper = pointer;

    culet_store_free(&wrapper->index);
    culet_builder_free(wrapper->builder);
    xfree(wrapper);
}

static size_t wrapper_bytes(const void *pointer)
{
    const struct wrapper *wrapper = pointer;

    return sizeof(*wrapper) + (wrapper->builder == NULL ? 0 : (size_t)culet_builder_bytes(wrapper->builder)) +
           wrapper->index.bytes;
}

static const rb_data_type_t wrapper_type = {
    .wrap_struct_name = "Culet::FeatureIndex",
    .function = {.dfree = free_wrapper, .dsize = wrapper_bytes},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE allocate(VALUE class)
{
    struct wrapper *wrapper;

    return TypedData_Make_Struct(class, struct wrapper, &wrapper_type, wrapper);
}

static struct wrapper *wrapper_of(VALUE self)
{
    struct wrapper *wrapper;

    TypedData_Get_Struct(self, struct wrapper, &wrapper_type, wrapper);
    return wrapper;
}

static struct wrapper *mutable_wrapper(VALUE self)
{
    struct wrapper *wrapper = wrapper_of(self);

    rb_check_frozen(self);
    if (wrapper->builder == NULL)
        rb_raise(error_class, "an index that was read from a file cannot be changed; create a new one");
    return wrapper;
}

/* The serialized index, built if something was added. */
static const struct culet_index *index_of(VALUE self)
{
    struct wrapper *wrapper = wrapper_of(self);
    size_t bytes;
    void *base;

    if (wrapper->index.base != NULL)
        return &wrapper->index;
    if (wrapper->builder == NULL)
        rb_raise(error_class, "this index was created neither by new nor by open");
    base = culet_builder_finish(wrapper->builder, &bytes);
    if (base == NULL)
        rb_raise(rb_eNoMemError, "the index does not fit in memory");
    if (culet_index_check(&wrapper->index, base, bytes) != NULL)
        rb_bug("culet: a new index is damaged");
    wrapper->index.in_memory = 1;
    return &wrapper->index;
}

static VALUE begin(VALUE self)
{
    struct wrapper *wrapper = wrapper_of(self);

    if (wrapper->builder != NULL || wrapper->index.base != NULL)
        return self;
    wrapper->builder = culet_builder_new();
    if (wrapper->builder == NULL)
        rb_memerror();
    return self;
}

/* map(file) -> nil, or an error message */
static VALUE map(VALUE self, VALUE file)
{
    struct wrapper *wrapper = wrapper_of(self);
    const char *problem = culet_store_read(&wrapper->index, StringValueCStr(file));

    return problem == NULL ? Qnil : rb_str_new_cstr(problem);
}

/* enter(path, folder) -> whether the path was added */
static VALUE enter(VALUE self, VALUE path, VALUE folder)
{
    static const struct culet_stamp none = {0};
    struct wrapper *wrapper = mutable_wrapper(self);
    const char *text = StringValueCStr(path), *root_text = StringValueCStr(folder);
    size_t length = (size_t)RSTRING_LEN(path), root_length = (size_t)RSTRING_LEN(folder);
    enum culet_node_kind kind = culet_scan_ends_with(text, length, ".rb") ? CULET_NODE_RUBY : CULET_NODE_NATIVE;
    uint32_t root;

    if (kind == CULET_NODE_NATIVE && !culet_scan_ends_with(text, length, CULET_NATIVE_EXTENSION))
        return Qfalse;
    if (root_text[0] != '/' || length <= root_length + 1 || memcmp(text, root_text, root_length) != 0 ||
        (root_length > 1 && text[root_length] != '/'))
        return Qfalse;
    culet_store_free(&wrapper->index);
    root = culet_builder_find_root(wrapper->builder, root_text, root_length);
    if (root == CULET_INDEX_NONE)
        root = culet_builder_root(wrapper->builder, root_text, root_length, &none, 0);
    if (root == CULET_INDEX_NONE)
        return Qfalse;
    /* The nodes of a root are consecutive. */
    if (root + 1 != culet_builder_roots(wrapper->builder))
        rb_raise(error_class, "%s: the files of a folder must be added consecutively", root_text);
    return culet_builder_add(wrapper->builder, root, text, length, kind, NULL) ? Qtrue : Qfalse;
}

/* read(folder's real path) -> a Symbol */
static VALUE read_folder(VALUE self, VALUE folder)
{
    static const char *const names[] = {"read", "unreadable", "young", "gone"};
    struct wrapper *wrapper = mutable_wrapper(self);
    const char *text = StringValueCStr(folder);
    enum culet_scanned scanned;

    culet_store_free(&wrapper->index);
    if (culet_builder_find_root(wrapper->builder, text, (size_t)RSTRING_LEN(folder)) != CULET_INDEX_NONE)
        return culet_symbol("read");
    scanned = culet_scan(wrapper->builder, text);
    if (scanned == CULET_NO_MEMORY)
        rb_raise(rb_eNoMemError, "the index does not fit in memory");
    return culet_symbol(names[scanned]);
}

/* The position of a root in `folders`; -1: it is not in the list. */
static long rank_of(const struct culet_index *index, uint32_t root, VALUE folders)
{
    const char *path;
    const struct culet_node *node;
    long i;

    if (NIL_P(folders))
        return (long)root;
    node = culet_index_node(index, index->roots[root].node, &path);
    for (i = 0; node != NULL && i < RARRAY_LEN(folders); i++) {
        VALUE folder = RARRAY_AREF(folders, i);

        Check_Type(folder, T_STRING);
        if ((size_t)RSTRING_LEN(folder) == node->length && memcmp(RSTRING_PTR(folder), path, node->length) == 0)
            return i;
    }
    return -1;
}

/* look_up(name, ruby, native, folders) -> a path, or nil */
static VALUE look_up(VALUE self, VALUE name, VALUE ruby, VALUE native, VALUE folders)
{
    const struct culet_index *index = index_of(self);
    const struct culet_node *node, *best = NULL;
    const char *path, *best_path = NULL;
    struct culet_index_lookup lookup;
    long best_rank = -1;

    StringValue(name);
    if (!NIL_P(folders))
        Check_Type(folders, T_ARRAY);
    culet_index_look_up(&lookup, index, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    while ((node = culet_index_next(&lookup, &path)) != NULL) {
        long rank;

        if (!(node->kind == CULET_NODE_RUBY ? RTEST(ruby) : node->kind == CULET_NODE_NATIVE && RTEST(native)))
            continue;
        rank = rank_of(index, node->root, folders);
        if (rank < 0 || (best != NULL && (rank > best_rank || (rank == best_rank && node->kind > best->kind))))
            continue;
        best = node;
        best_path = path;
        best_rank = rank;
    }
    RB_GC_GUARD(name);
    return best == NULL ? Qnil : rb_filesystem_str_new(best_path, best->length);
}

static VALUE paths(VALUE self, int files)
{
    const struct culet_index *index = index_of(self);
    VALUE result = rb_ary_new();
    uint32_t i;

    for (i = 0; i < index->header->nodes; i++) {
        const char *path;
        const struct culet_node *node = culet_index_node(index, i, &path);

        if (node != NULL && (files ? node->kind <= CULET_NODE_NATIVE : node->kind == CULET_NODE_ROOT))
            rb_ary_push(result, rb_filesystem_str_new(path, node->length));
    }
    return result;
}

static VALUE files(VALUE self)
{
    return paths(self, 1);
}

static VALUE folders(VALUE self)
{
    return paths(self, 0);
}

static VALUE changed(VALUE self)
{
    const struct culet_index *index = index_of(self);
    VALUE result = rb_ary_new();
    uint32_t i;

    for (i = 0; i < index->header->nodes; i++) {
        const char *path;
        const struct culet_node *node = culet_index_node(index, i, &path);
        const struct culet_stamp *stamp = node == NULL ? NULL : culet_index_stamp(index, node);
        struct culet_stamp now;
        struct stat status;

        if (stamp == NULL || stamp->inode == 0)
            continue; /* a file, or a folder that was not read */
        if (stat(path, &status) == 0) {
            culet_stamp_of(&now, &status);
            if (culet_stamp_same(&now, stamp))
                continue;
        }
        rb_ary_push(result, rb_filesystem_str_new(path, node->length));
    }
    return result;
}

/* store(file) -> nil, or an error message */
static VALUE store(VALUE self, VALUE file)
{
    const struct culet_index *index = index_of(self);
    int error = culet_store_write(StringValueCStr(file), index->base, index->bytes);

    return error == 0 ? Qnil : rb_str_new_cstr(strerror(error));
}

static VALUE allocations(VALUE self)
{
    const struct wrapper *wrapper = wrapper_of(self);

    return ULL2NUM(wrapper->builder == NULL ? 0 : culet_builder_allocations(wrapper->builder));
}

static VALUE bytes(VALUE self)
{
    return SIZET2NUM(index_of(self)->bytes);
}

void culet_init_feature_index(VALUE culet)
{
    VALUE class = rb_define_class_under(culet, "FeatureIndex", rb_cObject);

    error_class = rb_const_get(culet, rb_intern("Error"));
    rb_gc_register_mark_object(error_class); /* or compaction moves it */
    rb_define_alloc_func(class, allocate);
    rb_define_private_method(class, "begin", begin, 0);
    rb_define_private_method(class, "map", map, 1);
    rb_define_private_method(class, "enter", enter, 2);
    rb_define_private_method(class, "read", read_folder, 1);
    rb_define_private_method(class, "look_up", look_up, 4);
    rb_define_private_method(class, "store", store, 1);
    rb_define_method(class, "files", files, 0);
    rb_define_method(class, "folders", folders, 0);
    rb_define_method(class, "changed", changed, 0);
    rb_define_method(class, "allocations", allocations, 0);
    rb_define_method(class, "bytes", bytes, 0);
}
