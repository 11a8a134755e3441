#include "common/heap_walk.h"

#include <ruby.h>

#include <dlfcn.h>

#include "common/active_malloc.h"

/* Of Ruby, not in its headers; looked up, so that a Ruby without it has an agent that says so. */
typedef void each_function(culet_heap_walk_function *function, void *data);

struct walk {
  each_function *each;
  culet_heap_walk_function *function;
  void *data;
};

struct call {
  void (*function)(void *data);
  void *data;
};

static VALUE
call_it(VALUE data)
{
  struct call *call = (struct call *)data;

  call->function(call->data);
  return Qnil;
}

static void
walk_slots(void *data)
{
  struct walk *walk = data;

  walk->each(walk->function, walk->data);
}

/* The objects of other Ractors change while they are walked over. */
static int
several_ractors(void)
{
  ID ractor = rb_intern("Ractor");

  return rb_const_defined(rb_cObject, ractor) && NUM2INT(rb_funcall(rb_const_get(rb_cObject, ractor), rb_intern("count"), 0)) > 1;
}

const char *
culet_heap_walk_obstacle(void)
{
  if (dlsym(RTLD_DEFAULT, "rb_objspace_each_objects") == NULL || dlsym(RTLD_DEFAULT, "rb_obj_memsize_of") == NULL)
    return "this Ruby does not let its objects be counted";
  return several_ractors() ? "several Ractors run, whose objects cannot be counted while they do" : NULL;
}

/* GC as it was before: rb_gc_disable returns whether it was off already. */
int
culet_without_gc(void (*function)(void *data), void *data)
{
  struct call call = {function, data};
  int failure = 0;
  int was_off = RTEST(rb_gc_disable());

  rb_protect(call_it, (VALUE)&call, &failure);
  if (!was_off) rb_gc_enable();
  return failure;
}

int
culet_heap_walk(culet_heap_walk_function *function, void *data)
{
  void *pointer = dlsym(RTLD_DEFAULT, "rb_objspace_each_objects");

  AS_FUNCTION(each_function, each, pointer);
  struct walk walk = {each, function, data};
  return culet_without_gc(walk_slots, &walk);
}
