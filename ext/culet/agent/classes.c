#include "agent/classes.h"

#include "common/active_malloc.h"

/* Age bits: two up to Ruby 3.2, later the lower one alone. */
#define AGES ((VALUE)0x60)
/* more than rb_obj_gc_flags has */
#define MOST_FLAGS 8

/* Ruby 4.0's rb_gc_object_metadata returns an array of these, which ends with a zero name (internal/gc.h). */
struct metadata {
    ID name;
    VALUE value;
};

/* Not in Ruby's headers: the former exists up to 3.4, the latter from 4.0 on. */
typedef size_t flags_function(VALUE object, ID *flags, size_t most);
typedef struct metadata *metadata_function(VALUE object);

static int is_old_by_flags(flags_function *gc_flags, VALUE object)
{
    ID flags[MOST_FLAGS];
    size_t count = gc_flags(object, flags, MOST_FLAGS);

    for (size_t i = 0; i < count; i++)
        if (flags[i] == rb_intern("old"))
            return 1;
    return 0;
}

static int is_old_by_metadata(metadata_function *metadata, VALUE object)
{
    for (const struct metadata *entry = metadata(object); entry->name != 0; entry++)
        if (entry->name == rb_intern("old"))
            return RTEST(entry->value);
    return 0;
}

static int is_old(VALUE object)
{
    static flags_function *by_flags; /* NULL: this Ruby lacks it, or not looked up yet */
    static metadata_function *by_metadata;
    static int looked_up;

    if (!looked_up) {
        CULET_OF_ANY(flags_function, gc_flags, "rb_obj_gc_flags");
        CULET_OF_ANY(metadata_function, metadata, "rb_gc_object_metadata");
        by_flags = gc_flags;
        by_metadata = metadata;
        looked_up = 1;
    }
    if (by_flags != NULL)
        return is_old_by_flags(by_flags, object);
    return by_metadata != NULL && is_old_by_metadata(by_metadata, object);
}

static void add_name(struct culet_classes *classes, VALUE object)
{
    VALUE name;

    /* A class under construction has no class itself; a singleton class has no name. */
    if (RBASIC_CLASS(object) == 0 || RB_FL_TEST_RAW(object, RUBY_FL_SINGLETON))
        return;
    name = rb_mod_name(object);
    if (!RB_TYPE_P(name, T_STRING))
        return;
    culet_buffer_format(&classes->names, "%s[%llu,", classes->names.length > 0 ? "," : "", (unsigned long long)object);
    culet_buffer_json_string(&classes->names, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    culet_buffer_text(&classes->names, "]");
}

void culet_classes_add(struct culet_classes *classes, VALUE object)
{
    VALUE flags = RBASIC(object)->flags;
    VALUE type = flags & RUBY_T_MASK;

    if ((flags & AGES) != 0 && is_old(object)) {
        classes->old_bits = classes->old_count == 0 ? flags & AGES : classes->old_bits & flags;
        classes->old_count++;
    }
    if (type == T_CLASS || type == T_MODULE)
        add_name(classes, object);
}

void culet_classes_write(struct culet_buffer *buffer, struct culet_classes *classes)
{
    culet_buffer_format(buffer, "{\"kind\":\"classes\",\"old_bits\":%llu,\"names\":[",
                        (unsigned long long)classes->old_bits);
    if (classes->names.length > 0)
        culet_buffer_add(buffer, classes->names.bytes, classes->names.length);
    culet_buffer_text(buffer, "]}\n");
    buffer->failed |= classes->names.failed;
    culet_buffer_free(&classes->names);
}
