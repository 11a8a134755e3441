#include "recorder/retained.h"

#include <ruby/st.h>
#include <stdlib.h>
#include <string.h>

#include "internals/code.h"
#include "recorder/tags.h"

struct sum {
    size_t objects, bytes;
};

/* The code of a file, without what eval compiled, or that alone. */
struct file {
    size_t bytes, count;
};

struct retained {
    uint32_t first, last;
    struct sum *sums;
    st_table *files; /* address of the path, a String that the code references, and EVAL => struct file */
};

#define EVAL 1 /* the lowest bit of an object's address is 0 */

/* GC is disabled. */
static void add_code(struct retained *retained, VALUE object)
{
    int eval;
    VALUE path = culet_code_path(object, &eval);
    st_data_t key = path | (eval ? EVAL : 0), file;

    if (!RB_TYPE_P(path, T_STRING))
        return;
    if (!st_lookup(retained->files, key, &file)) {
        file = (st_data_t)xcalloc(1, sizeof(struct file));
        st_insert(retained->files, key, file);
    }
    ((struct file *)file)->bytes += culet_code_bytes(object);
    ((struct file *)file)->count++;
}

static void add_object(VALUE object, void *data)
{
    struct retained *retained = data;
    uint32_t tag = culet_tags_get(object);

    if (tag >= retained->first && tag <= retained->last && tag != 0) {
        retained->sums[tag].objects++;
        retained->sums[tag].bytes += culet_code_bytes(object);
    }
    if (culet_code_is(object))
        add_code(retained, object);
}

static VALUE walk(VALUE data)
{
    culet_code_walk(add_object, (struct retained *)data);
    return Qnil;
}

static int write_file(st_data_t key, st_data_t data, st_data_t buffer)
{
    VALUE path = (VALUE)key & ~(VALUE)EVAL;
    struct file *file = (struct file *)data;

    culet_buffer_text((struct culet_buffer *)buffer, "{\"kind\":\"code\",\"path\":");
    culet_buffer_json_string((struct culet_buffer *)buffer, RSTRING_PTR(path), (size_t)RSTRING_LEN(path));
    culet_buffer_format((struct culet_buffer *)buffer, ",\"eval\":%s,\"bytes\":%zu,\"count\":%zu}\n",
                        key & EVAL ? "true" : "false", file->bytes, file->count);
    return ST_CONTINUE;
}

static void write_lines(struct culet_buffer *buffer, const struct retained *retained)
{
    for (uint32_t tag = retained->first; tag <= retained->last; tag++)
        if (retained->sums[tag].objects > 0)
            culet_buffer_format(buffer, "{\"kind\":\"held\",\"id\":%u,\"objects\":%zu,\"bytes\":%zu}\n", tag,
                                retained->sums[tag].objects, retained->sums[tag].bytes);
    st_foreach(retained->files, write_file, (st_data_t)buffer);
}

static int free_file(st_data_t key, st_data_t file, st_data_t unused)
{
    xfree((struct file *)file);
    return ST_CONTINUE;
}

void culet_retained_write(struct culet_buffer *buffer, uint32_t first, uint32_t last)
{
    struct retained retained = {first, last, calloc((size_t)last + 1, sizeof(struct sum)), NULL};
    int failure = 0;

    if (retained.sums == NULL)
        rb_raise(rb_eNoMemError, "not enough memory to count objects");
    retained.files = st_init_numtable();
    rb_protect(walk, (VALUE)&retained, &failure);
    if (!failure)
        write_lines(buffer, &retained);
    st_foreach(retained.files, free_file, 0);
    st_free_table(retained.files);
    free(retained.sums);
    if (failure)
        rb_jump_tag(failure);
}
