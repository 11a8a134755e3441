/*
 * A hook on GC events is the usual way, and the wrong one for a process that goes on for long. Up to Ruby 3.2 any such
 * hook, even one for the end of the sweep alone, sends every allocation of an object the slow way round, as if it were
 * hooked itself (+22 % of instructions in a loop that only allocates). Hooks do not fire in other Ractors, and a collector
 * that Ruby loads as a library fires the events that it likes: MMTk the start alone.
 *
 * What every collector does is to mark. So there is one object that has nothing to mark and whose mark function tells.
 * It has no write barrier (RUBY_TYPED_WB_PROTECTED is not set), which obliges the collector to mark it anew in every
 * collection, minor ones too. A collection begins when the sweep of the one before has ended: that is the end of the
 * sweep, as seen from here.
 */
#include "trim/gc_watch.h"

#include <ruby.h>
#include <stdatomic.h>

#include "common/active_malloc.h"

static culet_gc_watcher *watcher;
static VALUE key_count, key_major; /* Symbols for rb_gc_stat; 0: this collector does not count that */
static VALUE key_state;            /* for rb_gc_latest_gc_info; 0: it does not tell */
static VALUE state_none;
static _Atomic size_t last_collection; /* the number of the last collection seen */
static size_t majors;

/*
 * The number of the collection that marks now, or, outside of one, of the last. Collectors that mark in Ruby's threads
 * count a collection as it begins. MMTk marks in threads of its own, and counts it when it lets Ruby's threads run on: the
 * count is still that of the one before then.
 */
static size_t
collection_number(void)
{
  size_t count = rb_gc_stat(key_count);

  return ruby_native_thread_p() ? count : count + 1;
}

/*
 * ObjectSpace.dump_all and others call mark functions as well, outside of collections: then it is the last number again.
 * The number may also jump, where a collection did not come by here. Exchanged in one step, because a collector with
 * several threads may come by here in two of them at once.
 */
static void
mark(void *unused)
{
  int major = 1;

  if (key_count != 0) {
    size_t current = collection_number();
    if (atomic_exchange(&last_collection, current) == current) return;
  }
  if (key_major != 0) {
    size_t current = rb_gc_stat(key_major);
    major = current != majors;
    majors = current;
  }
  watcher(major);
}

static const rb_data_type_t type = {.wrap_struct_name = "culet/gc_watch", .function = {.dmark = mark}};

static VALUE
read_stat(VALUE key)
{
  return SIZET2NUM(rb_gc_stat(key));
}

static VALUE
read_info(VALUE key)
{
  return rb_gc_latest_gc_info(key);
}

/*
 * Asks for the first time, outside of a GC: the first question makes symbols, which must not happen inside. Returns the
 * Symbol, or 0 where the collector does not know it.
 */
static VALUE
supported_key(VALUE (*read)(VALUE), const char *name)
{
  VALUE key = culet_symbol(name), answer;
  int failure = 0;

  answer = rb_protect(read, key, &failure);
  if (failure) rb_set_errinfo(Qnil); /* ArgumentError: unknown key */
  return failure || NIL_P(answer) ? 0 : key;
}

void
culet_gc_prepare(void)
{
  key_count = supported_key(read_stat, "count");
  key_major = supported_key(read_stat, "major_gc_count");
  key_state = supported_key(read_info, "state");
  state_none = culet_symbol("none");
}

void
culet_gc_watch(culet_gc_watcher *function)
{
  if (key_count != 0) atomic_store(&last_collection, rb_gc_stat(key_count));
  if (key_major != 0) majors = rb_gc_stat(key_major);
  watcher = function;
  rb_gc_register_mark_object(TypedData_Wrap_Struct(rb_cObject, &type, &majors)); /* any pointer: with NULL it is not marked */
}

int
culet_gc_swept(void)
{
  return key_state != 0 && rb_gc_latest_gc_info(key_state) == state_none;
}
