/* Ruby's oneshot coverage fires once for each line of each piece of code (method, block, body) and then removes the
 * event, so that covered lines cost nothing. Its own result knows only lines: of `def a = b` not whether the definition
 * ran or the method. So the same event is counted here, except in bodies of files, classes and modules, which run when
 * they are loaded. */
#include "unused/unused.h"

#include <pthread.h>
#include <ruby/debug.h>
#include <ruby/st.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/active_malloc.h"
#include "common/buffer.h"
#include "common/heap_walk.h"
#include "internals/code.h"

/* Not in Ruby's headers (internal/vm.h), the same since Ruby 2.5. If it changes, nothing is counted, and the report
 * says so. */
#define EVENT_COVERAGE_LINE 0x010000

typedef VALUE wrap_function(const void *code);

/* How often each line fired: once for each piece of code that has it. */
struct file {
    uint8_t *counts;
    size_t lines;
};

static st_table *files; /* path, a C string => struct file */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Bodies run once, when they are loaded. */
static int is_body(VALUE label)
{
    static const char singleton[] = "singleton class";

    if (!RB_TYPE_P(label, T_STRING) || RSTRING_LEN(label) == 0)
        return 0;
    if (RSTRING_PTR(label)[0] == '<')
        return 1;
    return RSTRING_LEN(label) == sizeof(singleton) - 1 &&
           memcmp(RSTRING_PTR(label), singleton, sizeof(singleton) - 1) == 0;
}

static struct file *file_of(const char *path)
{
    st_data_t found;
    struct file *file;
    char *name;

    if (st_lookup(files, (st_data_t)path, &found))
        return (struct file *)found;
    file = calloc(1, sizeof(*file));
    name = strdup(path);
    if (file == NULL || name == NULL) {
        free(file);
        free(name);
        return NULL;
    }
    st_insert(files, (st_data_t)name, (st_data_t)file);
    return file;
}

static void count(const char *path, size_t line)
{
    struct file *file = file_of(path);

    if (file == NULL)
        return;
    if (line >= file->lines) {
        size_t lines = line + line / 2 + 64;
        uint8_t *counts = realloc(file->counts, lines);
        if (counts == NULL)
            return;
        memset(counts + file->lines, 0, lines - file->lines);
        file->counts = counts;
        file->lines = lines;
    }
    if (file->counts[line] < UINT8_MAX)
        file->counts[line]++;
}

/* Allocates no object: the program is between two instructions. */
static void on_line(rb_event_flag_t event, VALUE data, VALUE self, ID method, VALUE class)
{
    VALUE frame, path;
    int line;

    if (rb_profile_frames(0, 1, &frame, &line) != 1 || line <= 0 || is_body(rb_profile_frame_label(frame)))
        return;
    path = rb_profile_frame_path(frame);
    if (!RB_TYPE_P(path, T_STRING))
        return;
    pthread_mutex_lock(&lock);
    count(RSTRING_PTR(path), (size_t)line); /* Ruby's path strings are NUL-terminated */
    pthread_mutex_unlock(&lock);
}

/* Culet::Unused.watch: counts lines from now on. Coverage must be set up already. */
static VALUE unused_watch(VALUE self)
{
    if (files != NULL)
        return Qfalse;
    files = st_init_strtable();
    rb_add_event_hook(on_line, EVENT_COVERAGE_LINE, Qnil);
    return Qtrue;
}

static int add_file(st_data_t path, st_data_t data, st_data_t result)
{
    const struct file *file = (const struct file *)data;
    VALUE lines = rb_hash_new();

    for (size_t line = 0; line < file->lines; line++)
        if (file->counts[line] > 0)
            rb_hash_aset(lines, SIZET2NUM(line), INT2FIX(file->counts[line]));
    rb_hash_aset((VALUE)result, rb_utf8_str_new_cstr((const char *)path), lines);
    return ST_CONTINUE;
}

/* Culet::Unused.fired: { path => { line => number of pieces of code that reached it, without bodies } } */
static VALUE unused_fired(VALUE self)
{
    VALUE result = rb_hash_new();

    if (files != NULL)
        st_foreach(files, add_file, (st_data_t)result);
    return result;
}

static void add_code(VALUE object, void *codes)
{
    if (culet_code_is(object))
        culet_buffer_add(codes, &object, sizeof(object));
}

struct wrapping {
    struct culet_buffer codes; /* VALUEs */
    wrap_function *wrap;
    VALUE result;
};

static void wrap_all(void *data)
{
    struct wrapping *wrapping = data;
    const VALUE *codes;
    size_t count;

    if (!culet_code_walk(add_code, &wrapping->codes))
        rb_raise(rb_eNotImpError, "this Ruby does not support listing its objects");
    if (wrapping->codes.failed)
        rb_raise(rb_eNoMemError, "not enough memory for the list of code");
    codes = (const VALUE *)wrapping->codes.bytes;
    count = wrapping->codes.length / sizeof(*codes);
    wrapping->result = rb_ary_new_capa((long)count * 3);
    for (size_t i = 0; i < count; i++) {
        int eval;
        VALUE code = codes[i];
        culet_code_path(code, &eval);
        rb_ary_push(wrapping->result, wrapping->wrap((const void *)code));
        rb_ary_push(wrapping->result, SIZET2NUM(culet_code_bytes(code)));
        rb_ary_push(wrapping->result, eval ? Qtrue : Qfalse);
    }
}

/* Culet::Unused.pieces: an Array of three entries per piece of compiled code: its RubyVM::InstructionSequence, its
 * bytes, whether it was compiled by eval. Ruby's threads stop meanwhile. */
static VALUE unused_pieces(VALUE self)
{
    CULET_OF_ANY(wrap_function, wrap, "rb_iseqw_new");
    struct wrapping wrapping = {.wrap = wrap, .result = Qnil};
    int failure;

    if (wrap == NULL)
        rb_raise(rb_eNotImpError, "this Ruby does not support listing its code");
    failure = culet_without_gc(wrap_all, &wrapping); /* until the wrappers reference the code */
    culet_buffer_free(&wrapping.codes);
    if (failure)
        rb_jump_tag(failure);
    return wrapping.result;
}

struct writing {
    struct culet_buffer text;
    VALUE value;
};

static VALUE write_value(VALUE data)
{
    struct writing *writing = (struct writing *)data;

    culet_buffer_json(&writing->text, writing->value);
    if (writing->text.failed)
        rb_raise(rb_eNoMemError, "not enough memory for the answer");
    return rb_str_new(writing->text.bytes, (long)writing->text.length);
}

static VALUE free_text(VALUE data)
{
    culet_buffer_free(&((struct writing *)data)->text);
    return Qnil;
}

/* Culet::Unused.json(value): as JSON.generate for Hashes, Arrays, Strings and numbers. Loading the json library would
 * add a hundred kilobytes of code to the process that is reported. */
static VALUE unused_json(VALUE self, VALUE value)
{
    struct writing writing = {{NULL, 0, 0, 0}, value};

    return rb_ensure(write_value, (VALUE)&writing, free_text, (VALUE)&writing);
}

void culet_init_unused(VALUE culet)
{
    VALUE unused = rb_define_module_under(culet, "Unused");

    rb_define_singleton_method(unused, "watch", unused_watch, 0);
    rb_define_singleton_method(unused, "fired", unused_fired, 0);
    rb_define_singleton_method(unused, "pieces", unused_pieces, 0);
    rb_define_singleton_method(unused, "json", unused_json, 1);
}
