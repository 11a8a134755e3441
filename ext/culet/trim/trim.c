/* Trims after collections, the Ruby side: Culet.trim, Culet.trim_stats, Culet::Trim, and the reaction to a collection.
 * Usually a native thread decides and trims (trim/trimmer.c). With CULET_TRIM=now, without permission for a thread, and
 * for allocators that only trim the calling thread, a postponed job trims in a Ruby thread. */
#include "trim/trim.h"

#include <errno.h>
#include <ruby/thread.h>
#include <ruby/vm.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/job.h"
#include "common/mark.h"
#include "common/release.h"
#include "common/values.h"
#include "trim/gc_watch.h"
#include "trim/stack.h"
#include "trim/thread_hook.h"
#include "trim/trimmer.h"

#define MARK "trim:"

/* ELSEWHERE: another copy of this library trims for the process. */
enum mode { OFF, BACKGROUND, NOW, ELSEWHERE };

static enum mode mode;      /* as requested */
static _Atomic int refusal; /* errno of the failed thread creation; 0: none */
static VALUE error_class;

/* ---- the postponed job ---- */

static int in_ruby_threads(void)
{
    return mode == NOW || culet_release_found()->in_ruby_threads || refusal != 0;
}

/* Warns once, not with Ruby's warn, because the job may run at any point of the program. */
static void report_refusal(int error)
{
    if (atomic_exchange(&refusal, error) != 0)
        return;
    dprintf(
        STDERR_FILENO,
        "culet: cannot create a thread for trims (%s); Ruby threads return memory instead. Allow the process one more "
        "thread (ulimit -u, pids.max), or set CULET_TRIM=now\n",
        strerror(error));
}

/* Trims in the other threads, at their next allocation before the next collection. An idle thread trims when it runs
 * again. */
static void trim_own_heap(void)
{
    (void)culet_trimmer_trim(0);
}

static void trim_in_ruby_threads(void)
{
    int in_each = culet_release_found()->in_ruby_threads;

    if (in_each)
        culet_thread_hook_disable();
    if (culet_trimmer_trim_if_due(culet_gc_swept()) && in_each)
        culet_thread_hook_enable();
}

/* In a Ruby thread, not during GC. */
static void job(void *unused)
{
    int error;

    if (in_ruby_threads()) {
        trim_in_ruby_threads();
        return;
    }
    if (culet_gc_swept())
        culet_trimmer_swept();
    if ((error = culet_trimmer_start()) != 0)
        report_refusal(error);
}

static struct culet_job trim_job = {.function = job};

/* Called during GC. The job runs soon after, when an immediate sweep such as GC.start's has ended. Minor collections
 * trigger the job again if the trim was not due yet, or the job was lost. */
static void on_collection(int major)
{
    int wanted = culet_trimmer_collection(major);

    if (major || (wanted && (in_ruby_threads() || !culet_trimmer_runs())) || culet_thread_hook_enabled())
        culet_job_trigger(&trim_job);
}

/* ---- Culet.trim ---- */

struct manual_trim {
    int swept;
    uint64_t bytes;
};

static void *run_manual_trim(void *data)
{
    struct manual_trim *manual_trim = data;

    manual_trim->bytes = culet_trimmer_trim(manual_trim->swept);
    return NULL;
}

/* Culet.trim: returns free memory to the kernel now, by the active malloc's own call. Returns by how many bytes the
 * resident memory shrank. Other Ruby threads keep running, except under mimalloc. Raises Culet::Error if the allocator
 * has no such call. */
static VALUE culet_trim(VALUE self)
{
    const struct culet_release *release = culet_release_found();
    struct manual_trim manual_trim = {culet_gc_swept(), 0};

    if (release->call == NULL)
        rb_raise(error_class, "%s", release->why_not);
    if (release->in_ruby_threads)
        (void)run_manual_trim(&manual_trim);
    else
        rb_thread_call_without_gvl(run_manual_trim, &manual_trim, NULL, NULL);
    return ULL2NUM(manual_trim.bytes);
}

/* ---- Culet.trim_stats ---- */

static const char *mode_name(void)
{
    if (mode == OFF)
        return "off";
    if (mode == ELSEWHERE)
        return "elsewhere";
    return in_ruby_threads() ? "now" : "background";
}

static VALUE problem(void)
{
    if (culet_release_found()->call == NULL)
        return rb_utf8_str_new_cstr(culet_release_found()->why_not);
    if (mode == ELSEWHERE)
        return rb_utf8_str_new_cstr(
            "another copy of culet in this process (another Ruby::Box or version) already trims after "
            "collections; see its Culet.trim_stats");
    if (refusal != 0)
        return rb_sprintf("cannot create a thread for trims: %s", strerror(refusal));
    return Qnil;
}

/* Culet.trim_stats: the trims of this process since it started or was forked. Returns a Hash:
 *   trims:            trims carried out, including Culet.trim
 *   skipped:          trims not carried out, because the allocator had less than the minimum to return
 *   requested:        major collections since culet/auto was loaded
 *   returned_bytes:   sum of resident bytes before minus after
 *   refaulted_bytes:  part of returned_bytes that was resident again at the next trim, or is now
 *   seconds:, longest_seconds: Floats: duration of all trims, of the longest
 *   interval_seconds: Float: shortest time from the last trim to the next, with the current back-off
 *   active:           whether major collections are followed by trims
 *   mode:             "background", "now" (in Ruby threads), "off" or "elsewhere" (another copy of culet in the process
 *                     trims; each Ruby::Box has one)
 *   thread:           whether the native thread runs; it starts at the first major collection
 *   allocator:, call: names of the allocator and of its function; nil if it has none
 *   problem:          the reason why trims do not run as requested, or nil */
static VALUE culet_trim_stats(VALUE self)
{
    struct culet_trimmer_stats stats = culet_trimmer_stats();
    const struct culet_release *release = culet_release_found();
    VALUE hash = rb_hash_new();

    culet_hash_set_number(hash, "trims", stats.trims);
    culet_hash_set_number(hash, "skipped", stats.skipped);
    culet_hash_set_number(hash, "requested", stats.requested);
    culet_hash_set_number(hash, "returned_bytes", stats.returned_bytes);
    culet_hash_set_number(hash, "refaulted_bytes", stats.refaulted_bytes);
    culet_hash_set(hash, "seconds", rb_float_new(stats.seconds));
    culet_hash_set(hash, "longest_seconds", rb_float_new(stats.longest_seconds));
    culet_hash_set(hash, "interval_seconds", rb_float_new(stats.interval_seconds));
    culet_hash_set(hash, "active", mode != OFF && release->call != NULL ? Qtrue : Qfalse);
    culet_hash_set(hash, "mode", rb_utf8_str_new_cstr(mode_name()));
    culet_hash_set(hash, "thread", stats.has_thread ? Qtrue : Qfalse);
    culet_hash_set(hash, "allocator", rb_utf8_str_new_cstr(release->allocator));
    culet_hash_set(hash, "call", release->call == NULL ? Qnil : rb_utf8_str_new_cstr(release->call));
    culet_hash_set(hash, "problem", problem());
    return hash;
}

/* ---- Culet::Trim ---- */

/* Publishes the mode of trims to other processes. */
static void show_mode(void)
{
    static void *mark = MAP_FAILED;
    char name[sizeof(MARK) + 16];

    culet_unmark(mark);
    snprintf(name, sizeof(name), MARK "%s", mode_name());
    mark = culet_mark(name);
}

static void stop_at_exit(ruby_vm_t *vm)
{
    culet_trimmer_end();
}

/* Culet::Trim.start(at_once, minimum_bytes, interval_seconds): starts trims after major collections, in
 * this process and those it forks. at_once: in Ruby threads. interval_seconds: nil for the default. A second call
 * changes the settings. Returns nil, or the reason why no trims are possible. */
static VALUE trim_start(VALUE self, VALUE at_once, VALUE minimum_bytes, VALUE interval_seconds)
{
    static int watching;
    int in_background = !RTEST(at_once) && !culet_release_found()->in_ruby_threads;
    double interval = in_background ? CULET_TRIM_INTERVAL_SECONDS : 0;
    struct culet_trim_settings settings = {NIL_P(interval_seconds) ? interval : NUM2DBL(interval_seconds),
                                           NUM2ULL(minimum_bytes)};
    int error;

    if (culet_release_found()->call == NULL)
        return problem();
    if (mode == OFF && culet_mark_exists(MARK))
        mode = ELSEWHERE;
    if (mode == ELSEWHERE)
        return Qnil;
    if ((error = culet_trimmer_prepare(&settings)) != 0)
        return rb_utf8_str_new_cstr(strerror(error));
    culet_trim_stack();
    mode = RTEST(at_once) ? NOW : BACKGROUND;
    show_mode();
    if (watching)
        return Qnil;
    watching = 1;
    ruby_vm_at_exit(stop_at_exit);
    if (!culet_job_prepare(&trim_job))
        rb_raise(error_class, "Ruby cannot register another postponed job");
    if (culet_release_found()->in_ruby_threads)
        culet_thread_hook_prepare(trim_own_heap);
    culet_gc_watch(on_collection);
    return Qnil;
}

/* Culet::Trim.waits?: whether a trim is pending that could run now, when no request waits: `Culet.trim if
 * Culet::Trim.waits?`. False if trims are off, or if trims are ineffective at present. Allocates nothing. */
static VALUE trim_pending_p(VALUE self)
{
    return (mode == BACKGROUND || mode == NOW) && culet_trimmer_pending(culet_gc_swept()) ? Qtrue : Qfalse;
}

void culet_init_trim(VALUE culet)
{
    VALUE trim = rb_define_module_under(culet, "Trim");

    error_class = rb_const_get(culet, rb_intern("Error"));
    rb_gc_register_mark_object(error_class); /* or compaction moves it */
    culet_release_find();
    culet_gc_prepare();
    rb_define_singleton_method(culet, "trim", culet_trim, 0);
    rb_define_singleton_method(culet, "trim_stats", culet_trim_stats, 0);
    rb_define_singleton_method(trim, "start", trim_start, 3);
    rb_define_singleton_method(trim, "waits?", trim_pending_p, 0);
}
