/*
 * Ruby's side of the trims: its methods, and what is done at its collections. In the background a native thread decides
 * and works (trim/trimmer.c). At once, or where the kernel refuses the thread, or the allocator wants to be called by the
 * threads that use it, a postponed job does it: it runs in a Ruby thread at its next check for interrupts.
 */
#include "trim/trim.h" /* ruby.h defines _GNU_SOURCE, hence first */

#include <errno.h>
#include <ruby/debug.h>
#include <ruby/thread.h>
#include <ruby/vm.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "common/active_malloc.h"
#include "common/release.h"
#include "trim/gc_watch.h"
#include "trim/mark.h"
#include "trim/thread_hook.h"
#include "trim/trimmer.h"

/* What is done after major collections. ELSEWHERE: another copy of this library does it for the process. */
enum mode { OFF, BACKGROUND, NOW, ELSEWHERE };

/* Between trims in the background, at the least. In Ruby's threads a trim that is put off may be one that never comes. */
#define INTERVAL_SECONDS 0.25

static enum mode mode;       /* as chosen */
static _Atomic int refusal;  /* why there is no thread: an error's number; 0: there is one, or none was needed yet */
static VALUE error_class;

/* ---- the postponed job ---- */

#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
static rb_postponed_job_handle_t job_handle;
#endif

static int
in_ruby_threads(void)
{
  return mode == NOW || culet_release_found()->in_ruby_threads || refusal != 0;
}

/* Says it once; the program runs on. Not by Ruby's warn: a job may run amid anything. */
static void
report_refusal(int error)
{
  if (atomic_exchange(&refusal, error) != 0) return;
  dprintf(STDERR_FILENO,
          "culet: the system refuses a thread for trims (%s); memory is given back in Ruby's threads instead. Allow the process one "
          "thread more (ulimit -u, pids.max), or set CULET_TRIM=now\n",
          strerror(error));
}

/*
 * The other threads' part, where each must give back its own: whoever allocates an object until the next collection. An
 * idle thread's part has to wait until it runs again.
 */
static void
trim_own_heap(void)
{
  (void)culet_trimmer_trim(0);
}

static void
trim_in_ruby_threads(void)
{
  int in_each = culet_release_found()->in_ruby_threads;

  if (in_each) culet_thread_hook_disable();
  if (culet_trimmer_trim_if_due(culet_gc_swept()) && in_each) culet_thread_hook_enable();
}

/* In a Ruby thread, not inside a GC. */
static void
job(void *unused)
{
  int error;

  if (in_ruby_threads()) {
    trim_in_ruby_threads();
    return;
  }
  if (culet_gc_swept()) culet_trimmer_swept();
  if ((error = culet_trimmer_start()) != 0) report_refusal(error);
}

/* May be called inside a GC. */
static void
trigger_job(void)
{
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
  rb_postponed_job_trigger(job_handle);
#else
  (void)rb_postponed_job_register_one(0, job, NULL); /* no room for it: the next collection asks again */
#endif
}

/*
 * Inside a GC. The job comes soon after it: then the sweep may have ended at once, as GC.start's does. Minor collections
 * ask again for what was not due yet.
 */
static void
on_collection(int major)
{
  int wanted = culet_trimmer_collection(major);

  if (major || (wanted && (in_ruby_threads() || !culet_trimmer_runs())) || culet_thread_hook_enabled()) trigger_job();
}

/* ---- Culet.trim ---- */

struct manual_trim {
  int swept;
  uint64_t bytes;
};

static void *
run_manual_trim(void *data)
{
  struct manual_trim *manual_trim = data;

  manual_trim->bytes = culet_trimmer_trim(manual_trim->swept);
  return NULL;
}

/*
 * Culet.trim: gives free memory back to the kernel now, as far as the allocator can, by the call that belongs to it.
 * Returns an Integer: how many bytes fewer are resident afterwards. Other Ruby threads run on meanwhile, except under
 * mimalloc. Raises Culet::Error where the allocator has no such call.
 */
static VALUE
culet_trim(VALUE self)
{
  const struct culet_release *release = culet_release_found();
  struct manual_trim manual_trim = {culet_gc_swept(), 0};

  if (release->call == NULL) rb_raise(error_class, "%s", release->why_not);
  if (release->in_ruby_threads) (void)run_manual_trim(&manual_trim);
  else rb_thread_call_without_gvl(run_manual_trim, &manual_trim, NULL, NULL);
  return ULL2NUM(manual_trim.bytes);
}

/* ---- Culet.trim_stats ---- */

static void
store(VALUE hash, const char *name, VALUE value)
{
  rb_hash_aset(hash, culet_symbol(name), value);
}

static const char *
mode_name(void)
{
  if (mode == OFF) return "off";
  if (mode == ELSEWHERE) return "elsewhere";
  return in_ruby_threads() ? "now" : "background";
}

static VALUE
problem(void)
{
  if (culet_release_found()->call == NULL) return rb_utf8_str_new_cstr(culet_release_found()->why_not);
  if (mode == ELSEWHERE)
    return rb_utf8_str_new_cstr("another copy of culet, of another Ruby::Box or another version, trims after this process's collections "
                                "already; its Culet.trim_stats tells");
  if (refusal != 0) return rb_sprintf("the system refuses a thread for trims: %s", strerror(refusal));
  return Qnil;
}

/*
 * Culet.trim_stats: what trims have done in this process since it began or was forked. Returns a Hash:
 *   trims:            how many were carried out, those by Culet.trim included
 *   skipped:          how many were not, because the allocator said that there is less than the minimum to give back
 *   requested:        major collections seen since culet/auto was loaded
 *   returned_bytes:   resident before, less resident after, added up
 *   refaulted_bytes:  how much of that was resident again when the next trim came, or now
 *   seconds:, longest_seconds: Floats: their time in all, and of the longest
 *   interval_seconds: Float: what the next one keeps from the last, as things are; backing off makes it longer
 *   active:           whether major collections are followed by trims
 *   mode:             "background", "now" (in Ruby's threads), "off" or "elsewhere" (another copy of culet in this process
 *                     does it: each Ruby::Box has one)
 *   thread:           whether the native thread runs; it is started at the first major collection
 *   allocator:, call: names of the allocator and of the function that gives back; nil where there is none
 *   problem:          a sentence where something is not as wished, or nil
 */
static VALUE
culet_trim_stats(VALUE self)
{
  struct culet_trimmer_stats stats = culet_trimmer_stats();
  const struct culet_release *release = culet_release_found();
  VALUE hash = rb_hash_new();

  store(hash, "trims", ULL2NUM(stats.trims));
  store(hash, "skipped", ULL2NUM(stats.skipped));
  store(hash, "requested", ULL2NUM(stats.requested));
  store(hash, "returned_bytes", ULL2NUM(stats.returned_bytes));
  store(hash, "refaulted_bytes", ULL2NUM(stats.refaulted_bytes));
  store(hash, "seconds", rb_float_new(stats.seconds));
  store(hash, "longest_seconds", rb_float_new(stats.longest_seconds));
  store(hash, "interval_seconds", rb_float_new(stats.interval_seconds));
  store(hash, "active", mode != OFF && release->call != NULL ? Qtrue : Qfalse);
  store(hash, "mode", rb_utf8_str_new_cstr(mode_name()));
  store(hash, "thread", stats.has_thread ? Qtrue : Qfalse);
  store(hash, "allocator", rb_utf8_str_new_cstr(release->allocator));
  store(hash, "call", release->call == NULL ? Qnil : rb_utf8_str_new_cstr(release->call));
  store(hash, "problem", problem());
  return hash;
}

/* ---- Culet::Trim ---- */

static void
stop_at_exit(ruby_vm_t *vm)
{
  culet_trimmer_end();
}

/*
 * Culet::Trim.start(at_once, minimum_bytes, interval_seconds): from now on, in this process and those it forks, major
 * collections are followed by trims. at_once: in Ruby's threads. interval_seconds: nil for the default. Called again it changes the settings. Returns nil; or a
 * String, why nothing can be done here.
 */
static VALUE
trim_start(VALUE self, VALUE at_once, VALUE minimum_bytes, VALUE interval_seconds)
{
  static int watching;
  int in_background = !RTEST(at_once) && !culet_release_found()->in_ruby_threads;
  double interval = in_background ? INTERVAL_SECONDS : 0;
  struct culet_trim_settings settings = {NIL_P(interval_seconds) ? interval : NUM2DBL(interval_seconds), NUM2ULL(minimum_bytes)};
  int error;

  if (culet_release_found()->call == NULL) return problem();
  if (mode == OFF && culet_trim_mark_exists()) mode = ELSEWHERE;
  if (mode == ELSEWHERE) return Qnil; /* one is enough */
  if ((error = culet_trimmer_prepare(&settings)) != 0) return rb_utf8_str_new_cstr(strerror(error));
  mode = RTEST(at_once) ? NOW : BACKGROUND;
  culet_trim_mark(mode_name());
  if (watching) return Qnil;
  watching = 1;
  ruby_vm_at_exit(stop_at_exit);
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
  job_handle = rb_postponed_job_preregister(0, job, NULL);
  if (job_handle == POSTPONED_JOB_HANDLE_INVALID) rb_raise(error_class, "Ruby has no room for a postponed job more");
#endif
  if (culet_release_found()->in_ruby_threads) culet_thread_hook_prepare(trim_own_heap);
  culet_gc_watch(on_collection);
  return Qnil;
}

/*
 * Culet::Trim.waits?: whether a major collection was not followed by its trim yet, and a moment when nobody waits, such
 * as that between two requests of a server, is a good one for it. For `Culet.trim if Culet::Trim.waits?`. Returns false
 * where collections are not followed by trims at all, and while those come straight back. Allocates nothing.
 */
static VALUE
trim_pending_p(VALUE self)
{
  return (mode == BACKGROUND || mode == NOW) && culet_trimmer_pending(culet_gc_swept()) ? Qtrue : Qfalse;
}

void
culet_init_trim(VALUE culet)
{
  VALUE trim = rb_define_module_under(culet, "Trim");

  error_class = rb_const_get(culet, rb_intern("Error"));
  culet_release_find();
  culet_gc_prepare();
  rb_define_singleton_method(culet, "trim", culet_trim, 0);
  rb_define_singleton_method(culet, "trim_stats", culet_trim_stats, 0);
  rb_define_singleton_method(trim, "start", trim_start, 3);
  rb_define_singleton_method(trim, "waits?", trim_pending_p, 0);
}
