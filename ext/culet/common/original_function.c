/*
 * Ruby has no function that tells it. But the pointer is there: a Method object points to a method entry, that to a
 * definition, that to the function. At which offsets is found by looking for functions of our own in methods of our
 * own, two of them, so that chance is ruled out; it is then the same for all methods. Memory is only read, through the
 * kernel, so that what is no pointer does no harm.
 */
#include "common/original_function.h" /* ruby.h defines _GNU_SOURCE, hence first */

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define WORDS 8

/* From Ruby 3.3 on data may lie in the object's own slot. */
#ifndef HAVE_RTYPEDDATA_GET_DATA
#define RTYPEDDATA_GET_DATA(object) RTYPEDDATA_DATA(object)
#endif

struct way {
  int entry, definition, function; /* in words */
};

static VALUE
known_one(VALUE self, VALUE argument)
{
  return argument;
}

static VALUE
known_other(VALUE self, VALUE argument)
{
  return self;
}

static int
read_words(const void *from, uintptr_t *words)
{
  struct iovec ours = {words, WORDS * sizeof(*words)}, theirs = {(void *)(uintptr_t)from, WORDS * sizeof(*words)};

  if (from == NULL || (uintptr_t)from % sizeof(*words) != 0) return 0;
  return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == (ssize_t)ours.iov_len;
}

static const void *
method_data(VALUE module, const char *name)
{
  return RTYPEDDATA_GET_DATA(rb_obj_method(module, ID2SYM(rb_intern(name))));
}

static void *
follow(const void *data, const struct way *way)
{
  uintptr_t method[WORDS], entry[WORDS], definition[WORDS];

  if (!read_words(data, method) || !read_words((void *)method[way->entry], entry)) return NULL;
  return read_words((void *)entry[way->definition], definition) ? (void *)definition[way->function] : NULL;
}

/* Looks everywhere where the function may be. */
static int
find_way(const void *one, void *one_function, const void *other, void *other_function, struct way *way)
{
  for (way->entry = 0; way->entry < WORDS; way->entry++)
    for (way->definition = 0; way->definition < WORDS; way->definition++)
      for (way->function = 0; way->function < WORDS; way->function++)
        if (follow(one, way) == one_function && follow(other, way) == other_function) return 1;
  return 0;
}

static int
same_library(const void *one, const void *other)
{
  Dl_info one_info, other_info;

  return dladdr(one, &one_info) != 0 && dladdr(other, &other_info) != 0 && one_info.dli_fbase == other_info.dli_fbase;
}

void *
culet_original_function(VALUE module, const char *name)
{
  VALUE (*one)(VALUE, VALUE) = known_one;
  VALUE (*other)(VALUE, VALUE) = known_other;
  VALUE (*rubys)(VALUE, VALUE) = rb_f_require;
  void *one_function, *other_function, *rubys_function, *found;
  VALUE scratch = rb_module_new();
  VALUE method = rb_obj_method(module, ID2SYM(rb_intern(name)));
  struct way way;

  memcpy(&one_function, &one, sizeof(one));
  memcpy(&other_function, &other, sizeof(other));
  memcpy(&rubys_function, &rubys, sizeof(rubys));
  if (!NIL_P(rb_funcall(method, rb_intern("source_location"), 0))) return NULL;
  rb_define_singleton_method(scratch, "one", known_one, 1);
  rb_define_singleton_method(scratch, "other", known_other, 1);
  if (!find_way(method_data(scratch, "one"), one_function, method_data(scratch, "other"), other_function, &way)) return NULL;
  found = follow(RTYPEDDATA_GET_DATA(method), &way);
  return found != NULL && same_library(found, rubys_function) ? found : NULL;
}
