#include "common/turns.h"

#include <ruby.h> /* defines _GNU_SOURCE, hence before the system's */

#include <ruby/debug.h>
#include <ruby/ractor.h>
#include <stdatomic.h>

static culet_turn *turn;
static VALUE tracepoint;
static rb_ractor_local_key_t main_ractor; /* Qtrue there alone: hooks belong to the Ractor that enabled them */
static _Atomic int is_open;
static unsigned call;
static _Thread_local unsigned answered; /* the last call that this thread has answered */

static void
at_allocation(VALUE unused, void *data)
{
  if (answered == call) return;
  answered = call;
  turn();
}

void
culet_turns_prepare(culet_turn *what)
{
  turn = what;
  main_ractor = rb_ractor_local_storage_value_newkey();
  rb_ractor_local_storage_value_set(main_ractor, Qtrue);
  tracepoint = rb_tracepoint_new(Qnil, RUBY_INTERNAL_EVENT_NEWOBJ, at_allocation, NULL);
  rb_gc_register_mark_object(tracepoint);
}

void
culet_turns_open(void)
{
  if (is_open || rb_ractor_local_storage_value(main_ractor) != Qtrue) return;
  answered = ++call;
  is_open = 1;
  rb_tracepoint_enable(tracepoint);
}

void
culet_turns_close(void)
{
  if (!is_open || rb_ractor_local_storage_value(main_ractor) != Qtrue) return;
  rb_tracepoint_disable(tracepoint);
  is_open = 0;
}

int
culet_turns_are_open(void)
{
  return is_open;
}
