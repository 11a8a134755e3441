#include "requires/counters.h" /* ruby.h defines _GNU_SOURCE, hence first */

#include <dlfcn.h>
#include <ruby/debug.h>
#include <time.h>

#include "../../../calls/calls.h"
#include "common/active_malloc.h"
#include "requires/tags.h"

typedef void read_function(struct culet_calls *calls);
typedef size_t slot_function(VALUE object);

static read_function *read_calls;
static slot_function *slot_bytes;
static int following;
static VALUE total_objects; /* :total_allocated_objects */

static __thread struct culet_figures own;    /* what pauses took */
static __thread struct culet_figures paused; /* as of the beginning of the one that is on */
static __thread uint64_t objects, object_bytes;
static __thread uint32_t tag;
static __thread int in_pause;

/* Every object that is made comes by: no more is done here than must be. */
static void
on_object(VALUE tracepoint, void *unused)
{
  VALUE object = rb_tracearg_object(rb_tracearg_from_tracepoint(tracepoint));

  if (in_pause) {
    culet_tags_set(object, 0);
    return;
  }
  objects++;
  object_bytes += slot_bytes != NULL ? slot_bytes(object) : 5 * sizeof(VALUE);
  culet_tags_set(object, tag);
}

int
culet_figures_start(int follow_objects)
{
  void *calls_pointer = dlsym(RTLD_DEFAULT, "culet_calls_read");
  void *slot_pointer = dlsym(RTLD_DEFAULT, "rb_gc_obj_slot_size");
  static VALUE tracepoint;

  AS_FUNCTION(read_function, reader, calls_pointer);
  AS_FUNCTION(slot_function, slots, slot_pointer);
  read_calls = reader;
  slot_bytes = slots;
  total_objects = culet_symbol("total_allocated_objects");
  if (follow_objects) {
    tracepoint = rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_NEWOBJ, on_object, NULL);
    rb_gc_register_mark_object(tracepoint);
    rb_tracepoint_enable(tracepoint);
    following = 1;
  }
  return read_calls != NULL;
}

int
culet_figures_follow(void)
{
  return following;
}

static double
seconds_of(clockid_t clock)
{
  struct timespec now;

  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct culet_figures
raw(void)
{
  struct culet_figures figures = {0, 0, objects, object_bytes, 0, 0, 0, 0};
  struct culet_calls calls = {0, 0, 0, 0};

  figures.seconds = seconds_of(CLOCK_MONOTONIC);
  figures.cpu_seconds = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  if (read_calls != NULL) read_calls(&calls);
  figures.mallocs = calls.mallocs;
  figures.malloc_bytes = calls.malloc_bytes;
  figures.paths = calls.paths;
  figures.failed_paths = calls.failed_paths;
  if (!following) {
    figures.objects = rb_gc_stat(total_objects);
    figures.object_bytes = figures.objects * 5 * sizeof(VALUE);
  }
  return figures;
}

struct culet_figures
culet_figures_since(const struct culet_figures *later, const struct culet_figures *earlier)
{
  return (struct culet_figures){later->seconds - earlier->seconds,           later->cpu_seconds - earlier->cpu_seconds,
                                later->objects - earlier->objects,           later->object_bytes - earlier->object_bytes, later->mallocs - earlier->mallocs,
                                later->malloc_bytes - earlier->malloc_bytes, later->paths - earlier->paths,
                                later->failed_paths - earlier->failed_paths};
}

struct culet_figures
culet_figures_pause(void)
{
  paused = raw();
  in_pause = 1;
  return culet_figures_since(&paused, &own);
}

void
culet_figures_resume(void)
{
  struct culet_figures now = raw();
  struct culet_figures pause = culet_figures_since(&now, &paused);

  own.seconds += pause.seconds;
  own.cpu_seconds += pause.cpu_seconds;
  own.objects += pause.objects;
  own.object_bytes += pause.object_bytes;
  own.mallocs += pause.mallocs;
  own.malloc_bytes += pause.malloc_bytes;
  own.paths += pause.paths;
  own.failed_paths += pause.failed_paths;
  in_pause = 0;
}

uint32_t
culet_figures_tag(uint32_t number)
{
  uint32_t before = tag;

  tag = number;
  return before;
}
