#include "reading/ruby_reading.h"

#include <string.h>

#include "reading/process.h"
#include "reading/reading.h"

#define GROUP_FILES 5

static const struct culet_pace at_once = {0, 0};

/* A path, which outlives the reading as its String does; nil: no file. */
static struct culet_kernel_file file_of(VALUE path)
{
    return (struct culet_kernel_file){-1, NIL_P(path) ? NULL : StringValueCStr(path)};
}

static struct culet_group group_of(VALUE files)
{
    VALUE paths[GROUP_FILES];

    Check_Type(files, T_ARRAY);
    if (RARRAY_LEN(files) != GROUP_FILES)
        rb_raise(rb_eArgError, "%d files are needed", GROUP_FILES);
    for (int i = 0; i < GROUP_FILES; i++)
        paths[i] = rb_ary_entry(files, i);
    return (struct culet_group){.charged = file_of(paths[0]),
                                .limit = file_of(paths[1]),
                                .stat = file_of(paths[2]),
                                .kills = file_of(paths[3]),
                                .pressure = file_of(paths[4])};
}

static VALUE hash_of(const struct culet_reading *reading)
{
    uint64_t values[CULET_READING_FIELDS];
    VALUE hash = rb_hash_new();

    memcpy(values, reading, sizeof(values));
    for (size_t i = 0; i < CULET_READING_FIELDS; i++)
        if (values[i] != CULET_UNKNOWN)
            rb_hash_aset(hash, rb_str_new_cstr(culet_reading_fields[i].name), ULL2NUM(values[i]));
    if (culet_reading_used(reading) != CULET_UNKNOWN)
        rb_hash_aset(hash, rb_str_new_cstr("group_used_bytes"), ULL2NUM(culet_reading_used(reading)));
    return hash;
}

/*
 * Culet::Reading.read(folder, files): what the kernel says of a process and of its control group, a Hash of the known
 * members of FIELDS and "group_used_bytes". folder: /proc/PID, or one with copies of its files. files: paths as of
 * Culet::MemoryGroup.files.
 */
static VALUE reading_read(VALUE self, VALUE folder, VALUE files)
{
    struct culet_reader reader = {.folder = StringValueCStr(folder), .group = group_of(files)};

    culet_reader_reset(&reader);
    culet_reader_sizes(&reader);
    culet_reader_rollup(&reader, at_once);
    culet_reader_group(&reader);
    culet_reader_group_used(&reader, at_once);
    RB_GC_GUARD(folder);
    RB_GC_GUARD(files);
    return hash_of(&reader.reading);
}

void culet_init_reading(VALUE culet)
{
    VALUE reading = rb_define_module_under(culet, "Reading"), names = rb_ary_new();

    for (size_t i = 0; i < CULET_READING_FIELDS; i++)
        rb_ary_push(names, rb_obj_freeze(rb_str_new_cstr(culet_reading_fields[i].name)));
    rb_define_const(reading, "FIELDS", rb_ary_freeze(names));
    rb_define_const(reading, "REST_PER_COST", INT2FIX(CULET_REST_PER_COST));
    rb_define_singleton_method(reading, "read", reading_read, 2);
}
