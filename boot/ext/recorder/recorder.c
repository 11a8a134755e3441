/* All requires reach the C functions of require, require_relative and load. Bundler, bundled gems, Zeitwerk and
 * Bootsnap define methods above Kernel#require, some of them late, and call what was there before; RubyGems, the first
 * of them, calls gem_original_require. That one and the other two are replaced by C functions that call the original C
 * functions, so that backtraces, arguments, results and exceptions are unchanged.
 *
 * What RubyGems does before and after is part of finding the file. A TracePoint on its Kernel#require alone reports
 * start and end, at no cost for other methods.
 *
 * The event script_compiled reports that a file was found, read and compiled, just before it runs. Such a file without
 * any of the methods was required by C code (rb_require): it is recorded, and its cost counts for the file that
 * required it. A file that an extension requires while it is loaded is first taken for the extension, whose own name is
 * known when its require ends. */
#include "recorder/recorder.h"

#include <ruby/debug.h>
#include <string.h>

#include "common/values.h"
#include "internals/original_function.h"
#include "recorder/counters.h"
#include "recorder/file.h"
#include "recorder/frames.h"
#include "recorder/retained.h"
#include "recorder/tags.h"

static int started;

/* ---- RubyGems' method ---- */

static void on_rubygems(VALUE tracepoint, void *unused)
{
    int begins = rb_tracearg_event_flag(rb_tracearg_from_tracepoint(tracepoint)) == RUBY_EVENT_CALL;
    struct culet_counters now = culet_counters_pause();

    if (begins) {
        culet_frames_push(1, &now);
    } else {
        struct frame *mark = culet_frames_top;
        while (mark != NULL && (!mark->marked || mark->running))
            mark = mark->up;
        if (mark != NULL)
            culet_frames_pop(mark, &now);
    }
    culet_counters_resume();
}

static void watch_rubygems(void)
{
    VALUE method = rb_funcall(rb_mKernel, rb_intern("instance_method"), 1, culet_symbol("require"));
    VALUE tracepoint, options;

    if (NIL_P(rb_funcall(method, rb_intern("source_location"), 0)))
        return;
    tracepoint = rb_tracepoint_new(0, RUBY_EVENT_CALL | RUBY_EVENT_RETURN, on_rubygems, NULL);
    rb_gc_register_mark_object(tracepoint);
    options = rb_hash_new();
    culet_hash_set(options, "target", method);
    rb_funcallv_kw(tracepoint, rb_intern("enable"), 1, &options, RB_PASS_KEYWORDS);
}

/* ---- the three methods ---- */

/* A call of one of Ruby's functions. */
struct call {
    const char *how;
    VALUE (*function)(const struct call *call);
    VALUE self;
    int argc;
    const VALUE *argv;
    struct frame *frame;
    VALUE result; /* Qundef: none, as after an exception */
};

static VALUE (*original_require)(VALUE self, VALUE name) = rb_f_require;
static VALUE (*original_relative)(VALUE self, VALUE name);
static VALUE (*original_load)(int argc, const VALUE *argv, VALUE self);

static VALUE run_call(VALUE data)
{
    struct call *call = (struct call *)data;

    return call->result = call->function(call);
}

static VALUE class_of_error(void)
{
    VALUE error = rb_errinfo();

    return RB_TYPE_P(error, T_OBJECT) || rb_obj_is_kind_of(error, rb_eException) ? rb_obj_class(error) : Qundef;
}

static VALUE end_call(VALUE data)
{
    struct call *call = (struct call *)data;
    struct culet_counters now = culet_counters_pause();

    if (culet_frames_include(call->frame)) {
        call->frame->running--;
        call->frame->result = call->result == Qundef ? class_of_error() : RTEST(call->result) ? Qtrue : Qfalse;
        if (!call->frame->marked)
            culet_frames_pop(call->frame, &now);
    }
    culet_counters_resume();
    return Qnil;
}

static VALUE call_require(const struct call *call)
{
    return original_require(call->self, call->argv[0]);
}

static VALUE call_relative(const struct call *call)
{
    return original_relative(call->self, call->argv[0]);
}

static VALUE call_load(const struct call *call)
{
    return original_load(call->argc, call->argv, call->self);
}

/* Calls by RubyGems' method belong to the require that it started. */
static int belongs_to_mark(const struct call *call)
{
    return call->function == call_require && culet_frames_top != NULL && culet_frames_top->marked &&
           !culet_frames_top->running;
}

static VALUE record_call(struct call *call)
{
    struct culet_counters now = culet_counters_pause();

    call->frame = belongs_to_mark(call) ? culet_frames_top : culet_frames_push(0, &now);
    if (call->frame != NULL) {
        call->frame->running++;
        if (!call->frame->named)
            culet_frames_name(call->frame, call->how, call->argc > 0 ? call->argv[0] : Qnil);
    }
    culet_counters_resume();
    if (call->frame == NULL)
        return call->function(call);
    return rb_ensure(run_call, (VALUE)call, end_call, (VALUE)call);
}

static VALUE record_require(VALUE self, VALUE feature)
{
    struct call call = {"require", call_require, self, 1, &feature, NULL, Qundef};

    return record_call(&call);
}

static VALUE record_relative(VALUE self, VALUE feature)
{
    struct call call = {"require_relative", call_relative, self, 1, &feature, NULL, Qundef};

    return record_call(&call);
}

static VALUE record_load(int argc, const VALUE *argv, VALUE self)
{
    struct call call = {"load", call_load, self, argc, argv, NULL, Qundef};

    return record_call(&call);
}

/* Under RubyGems Ruby's function is the method gem_original_require, but backtraces show "require": the same here. */
static void replace_require(void)
{
    VALUE scratch, method;
    VALUE original = culet_symbol("gem_original_require");

    if (!RTEST(rb_funcall(rb_mKernel, rb_intern("private_method_defined?"), 1, original))) {
        rb_define_global_function("require", record_require, 1);
        return;
    }
    scratch = rb_module_new();
    rb_define_method(scratch, "require", record_require, 1);
    method = rb_funcall(scratch, rb_intern("instance_method"), 1, culet_symbol("require"));
    rb_funcall(rb_mKernel, rb_intern("define_method"), 2, original, method);
    rb_funcall(rb_mKernel, rb_intern("private"), 1, original);
    rb_define_singleton_method(rb_mKernel, "require", record_require, 1);
}

/* A method whose C function is not found is left alone. */
static void replace_others(void)
{
    void *relative = culet_original_function(rb_mKernel, "require_relative");
    void *load = culet_original_function(rb_mKernel, "load");

    if (relative != NULL) {
        memcpy(&original_relative, &relative, sizeof(relative));
        rb_define_global_function("require_relative", record_relative, 1);
    }
    if (load != NULL) {
        memcpy(&original_load, &load, sizeof(load));
        rb_define_global_function("load", record_load, -1);
    }
}

/* ---- compiled files ---- */

static VALUE write_compiled(VALUE tracepoint)
{
    VALUE code, path;
    struct culet_buffer buffer = {NULL, 0, 0, 0};
    struct frame *frame = culet_frames_top;

    if (!NIL_P(rb_funcall(tracepoint, rb_intern("eval_script"), 0)))
        return Qnil;
    code = rb_funcall(tracepoint, rb_intern("instruction_sequence"), 0);
    path = rb_funcall(code, rb_intern("path"), 0);
    while (frame != NULL && frame->id == 0)
        frame = frame->up;
    if (frame != NULL && frame->running && !frame->compiled) {
        struct culet_counters until = culet_counters_since(&frame->before_run, &frame->start);
        frame->compiled = 1;
        culet_buffer_format(&buffer, "{\"kind\":\"compiled\",\"id\":%u", frame->id);
        culet_frames_add_counters(&buffer, &until);
    } else {
        culet_buffer_format(&buffer, "{\"kind\":\"inner\",\"up\":%u", frame != NULL ? frame->id : 0);
    }
    culet_frames_add_string(&buffer, "path", path);
    culet_buffer_text(&buffer, "}\n");
    culet_frames_write(&buffer, culet_frames_top);
    return Qnil;
}

/* An exception here must not reach the program. */
static void on_compiled(VALUE tracepoint, void *unused)
{
    struct culet_counters now = culet_counters_pause();

    if (culet_frames_top != NULL)
        culet_frames_top->before_run = now;
    (void)culet_try(write_compiled, tracepoint);
    culet_counters_resume();
}

static void watch_compiled(void)
{
    VALUE tracepoint = rb_tracepoint_new(0, RUBY_EVENT_SCRIPT_COMPILED, on_compiled, NULL);

    rb_gc_register_mark_object(tracepoint);
    rb_tracepoint_enable(tracepoint);
}

/* ---- the end ---- */

static VALUE write_retained(VALUE unused)
{
    struct culet_buffer buffer = {NULL, 0, 0, 0};

    rb_gc_start();
    culet_retained_write(&buffer, culet_recording.first_id, culet_recording.last_id);
    culet_buffer_format(&buffer, "{\"kind\":\"exit\",\"lost_tags\":%zu}\n", culet_tags_lost());
    culet_frames_write(&buffer, culet_frames_top);
    return Qnil;
}

/* A forked process without requires writes no file. */
static void at_end(VALUE unused)
{
    struct culet_counters now;
    struct culet_buffer buffer = {NULL, 0, 0, 0};

    if (!culet_recorder_file_begun())
        return;
    now = culet_counters_pause();
    culet_buffer_format(&buffer, "{\"kind\":\"last\",\"at\":%.6f}\n", now.seconds - culet_recording.start_seconds);
    culet_frames_write(&buffer, culet_frames_top);
    (void)culet_try(write_retained, Qnil);
    culet_counters_resume();
}

/* Culet::Boot::Recorder.start(folder, follow): records from now on into a file in the folder, each forked process into a file
 * of its own. follow: whether to follow objects, to find those that are retained. Once; returns false at further
 * calls. */
static VALUE recorder_start(VALUE self, VALUE directory, VALUE follow_objects)
{
    VALUE *verbose = rb_ruby_verbose_ptr();
    VALUE verbose_before = *verbose;
    struct culet_counters now;

    if (started)
        return Qfalse;
    started = 1;
    culet_recorder_file_in(StringValueCStr(directory));
    *verbose = Qnil; /* no warnings about redefined methods */
    replace_require();
    replace_others();
    *verbose = verbose_before;
    watch_rubygems();
    watch_compiled();
    rb_set_end_proc(at_end, Qnil);
    culet_recording.has_syscall_counter = culet_counters_start(RTEST(follow_objects));
    now = culet_counters_pause();
    culet_recording.start_seconds = now.seconds;
    struct culet_buffer buffer = {NULL, 0, 0, 0};
    culet_frames_write(&buffer, NULL);
    culet_counters_resume();
    return Qtrue;
}

int culet_recorder_serve_by(VALUE (*require)(VALUE self, VALUE feature))
{
    if (started)
        original_require = require;
    return started;
}

void culet_init_recorder(VALUE culet)
{
    VALUE recorder = rb_define_module_under(rb_define_module_under(culet, "Boot"), "Recorder");

    rb_define_singleton_method(recorder, "start", recorder_start, 2);
}
