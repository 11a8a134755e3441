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

#include "common/owner.h"

static culet_gc_watcher *told;
static VALUE key_count, key_major; /* Symbols for rb_gc_stat; 0: this collector does not count that */
static VALUE key_state;            /* for rb_gc_latest_gc_info; 0: it does not tell */
static VALUE state_none;
static _Atomic size_t last; /* the number of the last collection seen */
static size_t majors;

/*
 * The number of the collection that marks now, or, outside of one, of the last. Collectors that mark in Ruby's threads
 * count a collection as it begins. MMTk marks in threads of its own, and counts it when it lets Ruby's threads run on: the
 * count is still that of the one before then.
 */
static size_t
number(void)
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
    size_t now = number();
    if (atomic_exchange(&last, now) == now) return;
  }
  if (key_major != 0) {
    size_t now = rb_gc_stat(key_major);
    major = now != majors;
    majors = now;
  }
  told(major);
}

static const rb_data_type_t type = {.wrap_struct_name = "culet/gc_watch", .function = {.dmark = mark}};

static VALUE
ask_stat(VALUE key)
{
  return SIZET2NUM(rb_gc_stat(key));
}

static VALUE
ask_info(VALUE key)
{
  return rb_gc_latest_gc_info(key);
}

/*
 * Asks for the first time, outside of a GC: the first question makes symbols, which must not happen inside. Returns the
 * Symbol, or 0 where the collector does not know it.
 */
static VALUE
known(VALUE (*ask)(VALUE), const char *name)
{
  VALUE key = culet_symbol(name), answer;
  int failure = 0;

  answer = rb_protect(ask, key, &failure);
  if (failure) rb_set_errinfo(Qnil); /* ArgumentError: unknown key */
  return failure || NIL_P(answer) ? 0 : key;
}

void
culet_gc_prepare(void)
{
  key_count = known(ask_stat, "count");
  key_major = known(ask_stat, "major_gc_count");
  key_state = known(ask_info, "state");
  state_none = culet_symbol("none");
}

void
culet_gc_watch(culet_gc_watcher *watcher)
{
  if (key_count != 0) atomic_store(&last, rb_gc_stat(key_count));
  if (key_major != 0) majors = rb_gc_stat(key_major);
  told = watcher;
  rb_gc_register_mark_object(TypedData_Wrap_Struct(rb_cObject, &type, &majors)); /* any pointer: with NULL it is not marked */
}

int
culet_gc_swept(void)
{
  return key_state != 0 && rb_gc_latest_gc_info(key_state) == state_none;
}
