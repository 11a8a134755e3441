#include "requires/code.h" /* ruby.h defines _GNU_SOURCE, hence first */

#include <dlfcn.h>
#include <ruby/debug.h>
#include <string.h>

#include "agent/objects.h"
#include "common/active_malloc.h"

#define KIND_OF_CODE 7 /* among the kinds of T_IMEMO, in all Rubies since 2.5 (internal/imemo.h) */
#define KINDS 16

/* Of Ruby, not in its headers. */
typedef int page_function(void *start, void *past, size_t slot_bytes, void *data);
typedef void each_function(page_function *function, void *data);
typedef size_t memsize_function(VALUE object);
typedef const char *internal_name_function(int kind);

/* Where Ruby names its kinds of internal object, the name must be the one expected. */
static int
kind_is_known(void)
{
  static int known = -1;

  if (known < 0) {
    void *pointer = dlsym(RTLD_DEFAULT, "rb_imemo_name");
    AS_FUNCTION(internal_name_function, name, pointer);
    known = pointer == NULL || strcmp(name(KIND_OF_CODE), "iseq") == 0;
  }
  return known;
}

int
culet_code_is(VALUE object)
{
  VALUE flags = RBASIC(object)->flags;

  return (flags & RUBY_T_MASK) == T_IMEMO && (flags >> RUBY_FL_USHIFT) % KINDS == KIND_OF_CODE && kind_is_known();
}

VALUE
culet_code_path(VALUE object, int *eval)
{
  *eval = NIL_P(rb_profile_frame_absolute_path(object));
  return rb_profile_frame_path(object);
}

struct walk {
  each_function *each;
  void (*function)(VALUE object, void *data);
  void *data;
};

static int
walk_page(void *start, void *past, size_t slot_bytes, void *data)
{
  struct walk *walk = data;

  for (char *slot = start; slot < (char *)past; slot += slot_bytes) {
    int type = (int)(RBASIC((VALUE)slot)->flags & RUBY_T_MASK);
    if (type != T_NONE && type != T_MOVED && type != T_ZOMBIE) walk->function((VALUE)slot, walk->data);
  }
  return 0;
}

static VALUE
walk_all(VALUE data)
{
  struct walk *walk = (struct walk *)data;

  walk->each(walk_page, walk);
  return Qnil;
}

int
culet_code_walk(void (*function)(VALUE object, void *data), void *data)
{
  void *pointer = dlsym(RTLD_DEFAULT, "rb_objspace_each_objects");
  int was_off, failure = 0;

  if (pointer == NULL) return 0;
  AS_FUNCTION(each_function, each, pointer);
  struct walk walk = {each, function, data};
  was_off = RTEST(rb_gc_disable());
  rb_protect(walk_all, (VALUE)&walk, &failure);
  if (!was_off) rb_gc_enable();
  if (failure) rb_jump_tag(failure);
  return 1;
}

size_t
culet_code_bytes(VALUE object)
{
  static memsize_function *memsize;
  int type = (int)(RBASIC(object)->flags & RUBY_T_MASK);

  if (memsize == NULL) {
    void *pointer = dlsym(RTLD_DEFAULT, "rb_obj_memsize_of");
    AS_FUNCTION(memsize_function, found, pointer);
    memsize = found;
  }
  if (memsize == NULL || !culet_heap_memsize_is_safe(type)) return 0;
  if (type == T_DATA && !(RTYPEDDATA_P(object) && RTYPEDDATA_TYPE(object)->function.dsize != NULL)) return 0;
  return memsize(object);
}
