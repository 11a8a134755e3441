#include "requires/retained.h"

#include <stdlib.h>
#include <string.h>

#include "requires/code.h"
#include "requires/tags.h"

struct sum {
    size_t objects, bytes;
};

struct file {
    VALUE path; /* a String that the file's code references; 0: free entry */
    int eval;
    size_t bytes, count;
};

struct retained {
    uint32_t first, last;
    struct sum *sums;
    struct file *files; /* hash table with open addressing, by path and eval */
    size_t capacity, used;
    int failed;
};

static struct file *file_of(struct file *files, size_t capacity, VALUE path, int eval)
{
    size_t at = (path >> 3) * 0x9e3779b97f4a7c15U % capacity;

    while (files[at].path != 0 && (files[at].path != path || files[at].eval != eval))
        at = (at + 1) % capacity;
    return &files[at];
}

static int reserve(struct retained *retained)
{
    size_t more = retained->capacity == 0 ? 4096 : retained->capacity * 2;
    struct file *files;

    if (retained->used * 2 < retained->capacity)
        return 1;
    files = calloc(more, sizeof(*files));
    if (files == NULL)
        return 0;
    for (size_t i = 0; i < retained->capacity; i++)
        if (retained->files[i].path != 0)
            *file_of(files, more, retained->files[i].path, retained->files[i].eval) = retained->files[i];
    free(retained->files);
    retained->files = files;
    retained->capacity = more;
    return 1;
}

static void add_code(struct retained *retained, VALUE object)
{
    int eval;
    VALUE path = culet_code_path(object, &eval);
    struct file *file;

    if (!RB_TYPE_P(path, T_STRING))
        return;
    if (!reserve(retained)) {
        retained->failed = 1;
        return;
    }
    file = file_of(retained->files, retained->capacity, path, eval);
    if (file->path == 0) {
        *file = (struct file){path, eval, 0, 0};
        retained->used++;
    }
    file->bytes += culet_code_bytes(object);
    file->count++;
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

static void write_lines(struct culet_buffer *buffer, const struct retained *retained)
{
    for (uint32_t tag = retained->first; tag <= retained->last; tag++)
        if (retained->sums[tag].objects > 0)
            culet_buffer_format(buffer, "{\"kind\":\"held\",\"id\":%u,\"objects\":%zu,\"bytes\":%zu}\n", tag,
                                retained->sums[tag].objects, retained->sums[tag].bytes);
    for (size_t i = 0; i < retained->capacity; i++) {
        const struct file *file = &retained->files[i];
        if (file->path == 0)
            continue;
        culet_buffer_text(buffer, "{\"kind\":\"code\",\"path\":");
        culet_buffer_json_string(buffer, RSTRING_PTR(file->path), (size_t)RSTRING_LEN(file->path));
        culet_buffer_format(buffer, ",\"eval\":%s,\"bytes\":%zu,\"count\":%zu}\n", file->eval ? "true" : "false",
                            file->bytes, file->count);
    }
}

void culet_retained_write(struct culet_buffer *buffer, uint32_t first, uint32_t last)
{
    struct retained retained = {first, last, calloc((size_t)last + 1, sizeof(struct sum)), NULL, 0, 0, 0};
    int failure = 0;

    if (retained.sums == NULL)
        rb_raise(rb_eNoMemError, "not enough memory to count objects");
    rb_protect(walk, (VALUE)&retained, &failure);
    if (!failure)
        write_lines(buffer, &retained);
    if (retained.failed)
        buffer->failed = 1;
    free(retained.sums);
    free(retained.files);
    if (failure)
        rb_jump_tag(failure);
}
