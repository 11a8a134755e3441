#include "requires/retained.h" /* ruby.h defines _GNU_SOURCE, hence first */

#include <stdlib.h>
#include <string.h>

#include "requires/code.h"
#include "requires/tags.h"

struct sum {
  size_t objects, bytes;
};

struct file {
  VALUE path; /* a String that the code of the file holds; 0: free */
  int eval;
  size_t bytes, count;
};

struct held {
  uint32_t first, last;
  struct sum *sums;
  struct file *files; /* a hash table with open addressing, by the path's address and whether it was evaluated */
  size_t room, used;
  int failed;
};

static struct file *
file_of(struct file *files, size_t room, VALUE path, int eval)
{
  size_t at = (path >> 3) * 0x9e3779b97f4a7c15U % room;

  while (files[at].path != 0 && (files[at].path != path || files[at].eval != eval)) at = (at + 1) % room;
  return &files[at];
}

static int
make_room(struct held *held)
{
  size_t more = held->room == 0 ? 4096 : held->room * 2;
  struct file *files;

  if (held->used * 2 < held->room) return 1;
  files = calloc(more, sizeof(*files));
  if (files == NULL) return 0;
  for (size_t i = 0; i < held->room; i++)
    if (held->files[i].path != 0) *file_of(files, more, held->files[i].path, held->files[i].eval) = held->files[i];
  free(held->files);
  held->files = files;
  held->room = more;
  return 1;
}

static void
add_code(struct held *held, VALUE object)
{
  int eval;
  VALUE path = culet_code_path(object, &eval);
  struct file *file;

  if (!RB_TYPE_P(path, T_STRING)) return;
  if (!make_room(held)) {
    held->failed = 1;
    return;
  }
  file = file_of(held->files, held->room, path, eval);
  if (file->path == 0) {
    *file = (struct file){path, eval, 0, 0};
    held->used++;
  }
  file->bytes += culet_code_bytes(object);
  file->count++;
}

static void
look_at(VALUE object, void *data)
{
  struct held *held = data;
  uint32_t tag = culet_tags_get(object);

  if (tag >= held->first && tag <= held->last && tag != 0) {
    held->sums[tag].objects++;
    held->sums[tag].bytes += culet_code_bytes(object);
  }
  if (culet_code_is(object)) add_code(held, object);
}

static VALUE
walk(VALUE data)
{
  culet_code_walk(look_at, (struct held *)data);
  return Qnil;
}

static void
tell(struct culet_buffer *text, const struct held *held)
{
  for (uint32_t tag = held->first; tag <= held->last; tag++)
    if (held->sums[tag].objects > 0)
      culet_buffer_format(text, "{\"kind\":\"held\",\"id\":%u,\"objects\":%zu,\"bytes\":%zu}\n", tag, held->sums[tag].objects, held->sums[tag].bytes);
  for (size_t i = 0; i < held->room; i++) {
    const struct file *file = &held->files[i];
    if (file->path == 0) continue;
    culet_buffer_text(text, "{\"kind\":\"code\",\"path\":");
    culet_buffer_json_string(text, RSTRING_PTR(file->path), (size_t)RSTRING_LEN(file->path));
    culet_buffer_format(text, ",\"eval\":%s,\"bytes\":%zu,\"count\":%zu}\n", file->eval ? "true" : "false", file->bytes, file->count);
  }
}

void
culet_held_tell(struct culet_buffer *text, uint32_t first, uint32_t last)
{
  struct held held = {first, last, calloc((size_t)last + 1, sizeof(struct sum)), NULL, 0, 0, 0};
  int failure = 0;

  if (held.sums == NULL) rb_raise(rb_eNoMemError, "there is no memory to count with");
  rb_protect(walk, (VALUE)&held, &failure);
  if (!failure) tell(text, &held);
  if (held.failed) text->failed = 1;
  free(held.sums);
  free(held.files);
  if (failure) rb_jump_tag(failure);
}
