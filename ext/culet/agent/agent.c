/* Requests arrive in a native thread (agent/listener.c). Code that needs Ruby runs in the main thread, in a trap
 * handler.
 *
 * A postponed job would wait for the next Ruby thread that runs, and in an idle server none does. Only a trapped signal
 * wakes the main thread wherever it sleeps. The listener raises a free real-time signal in its own thread, so that no
 * other thread is interrupted. */
#include "agent/agent.h"

#include <errno.h>
#include <ruby/vm.h>
#include <signal.h>
#include <string.h>

#include "agent/copy_tasks.h"
#include "agent/process_reading.h"
#include "agent/listener.h"
#include "agent/main_request.h"
#include "agent/objects.h"
#include "agent/statistics.h"
#include "common/buffer.h"
#include "common/values.h"
#include "limit/limit.h"

/* A method of GC without arguments; false where this Ruby does not have it. */
static VALUE collector_switch(const char *name)
{
    VALUE collector = rb_const_get(rb_cObject, rb_intern("GC"));
    ID id = rb_intern(name);

    if (!rb_obj_respond_to(collector, id, 0)) /* nor on a platform without it, where the method raises */
        return Qfalse;
    return RTEST(rb_funcall(collector, id, 0)) ? Qtrue : Qfalse;
}

/* Ruby returns the state of the collector only from the functions that change it. */
static VALUE collector_is_off(void)
{
    VALUE off = rb_gc_enable();

    if (RTEST(off))
        rb_gc_disable();
    return off;
}

static void write_switch(struct culet_buffer *buffer, const char *name, VALUE on)
{
    culet_buffer_format(buffer, ",\"%s\":%s", name, RTEST(on) ? "true" : "false");
}

/* GC.stat, the Ruby version, and the switches of the collector. */
static void write_vm(struct culet_buffer *buffer)
{
    VALUE stat = rb_hash_new();

    rb_gc_stat(stat);
    culet_buffer_format(buffer, "{\"kind\":\"gc\"");
    culet_buffer_json_members(buffer, stat);
    culet_buffer_text(buffer, "}\n{\"kind\":\"vm\",\"version\":");
    culet_buffer_json(buffer, rb_const_get(rb_cObject, rb_intern("RUBY_VERSION")));
    culet_buffer_text(buffer, ",\"description\":");
    culet_buffer_json(buffer, rb_const_get(rb_cObject, rb_intern("RUBY_DESCRIPTION")));
    write_switch(buffer, "gc_disabled", collector_is_off());
    write_switch(buffer, "gc_stress", collector_switch("stress"));
    write_switch(buffer, "gc_auto_compact", collector_switch("auto_compact"));
    culet_buffer_text(buffer, "}\n");
}

struct report {
    struct culet_buffer buffer;
    struct culet_request request;
};

/* The statistics come before the count of objects. */
static VALUE write_report(VALUE data)
{
    struct report *report = (struct report *)data;

    if (report->request.kind == CULET_PROFILE) {
        culet_profile_answer(&report->request.profile, &report->buffer);
    } else if (report->request.kind == CULET_LIMIT) {
        culet_limit_answer(&report->buffer);
    } else {
        write_vm(&report->buffer);
        culet_statistics_write(&report->buffer);
        culet_objects_write(&report->buffer, &report->request.objects);
    }
    if (report->buffer.failed)
        rb_raise(rb_eNoMemError, "not enough memory for the answer");
    return Qnil;
}

/* ---- requests from outside ---- */

static VALUE describe(VALUE error)
{
    VALUE message = rb_obj_as_string(rb_funcall(error, rb_intern("message"), 0));

    return rb_str_plus(rb_sprintf("the request failed with %s: ", rb_obj_classname(error)), message);
}

/* Clears the pending exception and copies its message. Control characters become spaces: they would end the line. */
static void take_error(char *message, size_t size)
{
    VALUE error = rb_errinfo(), buffer;

    rb_set_errinfo(Qnil);
    buffer = culet_try(describe, error);
    if (!RB_TYPE_P(buffer, T_STRING)) {
        snprintf(message, size, "the request failed with an exception without message");
        return;
    }
    snprintf(message, size, "%.*s", (int)RSTRING_LEN(buffer), RSTRING_PTR(buffer));
    for (char *byte = message; *byte != '\0'; byte++)
        if ((unsigned char)*byte < 0x20)
            *byte = ' ';
}

struct copying {
    struct culet_copy copy;
    const struct culet_request *request;
    const char *error;
};

static VALUE start_copy(VALUE data)
{
    struct copying *copying = (struct copying *)data;

    copying->error = culet_copy_tasks_start(&copying->copy, copying->request);
    return Qnil;
}

static void answer_by_copy(const struct culet_request *request)
{
    struct copying copying = {.request = request};
    char message[400];
    int failure = 0;

    /* Start with a new time slice: at its end a method in the copy would yield to threads that the copy lacks. */
    rb_thread_schedule();
    culet_listener_no_child(1);
    rb_protect(start_copy, (VALUE)&copying, &failure);
    culet_listener_no_child(0);
    if (failure) {
        take_error(message, sizeof(message));
        copying.error = message;
    }
    if (copying.error != NULL)
        culet_main_request_answer(&(struct culet_buffer){NULL, 0, 0, 0}, copying.error);
    else
        culet_main_request_answer_later(&copying.copy);
    failure = 0;
    rb_protect(culet_copy_tasks_follow, (VALUE)request, &failure);
    if (!failure)
        return;
    take_error(message, sizeof(message));
    rb_warn("culet: cannot follow which code runs: %s", message);
}

/* Errors are reported to the client, not to the program. */
static VALUE answer_uninterrupted(RB_BLOCK_CALL_FUNC_ARGLIST(unused, data))
{
    struct report report = {.request = {.kind = CULET_OBJECTS}};
    char message[400];
    int failure = 0;

    if (!culet_main_request_take(&report.request))
        return Qnil;
    if (culet_request_needs_copy(&report.request)) {
        answer_by_copy(&report.request);
        return Qnil;
    }
    rb_protect(write_report, (VALUE)&report, &failure);
    if (failure) {
        take_error(message, sizeof(message));
        culet_buffer_free(&report.buffer);
    }
    culet_main_request_answer(&report.buffer, failure ? message : NULL);
    return Qnil;
}

/* { Object => :never }, for Thread.handle_interrupt: defers every exception. */
static VALUE interrupt_mask;

/* The trap handler. Exceptions from other threads (Timeout, Thread#kill) are deferred: they are meant for the program
 * and would abort the count. */
static VALUE answer(RB_BLOCK_CALL_FUNC_ARGLIST(signal, unused))
{
    return rb_block_call(rb_cThread, rb_intern("handle_interrupt"), 1, &interrupt_mask, answer_uninterrupted, Qnil);
}

/* Returns the highest real-time signal without a handler; 0: none. */
static int free_signal(void)
{
    struct sigaction action;

    for (int number = SIGRTMAX; number > SIGRTMIN; number--)
        if (sigaction(number, NULL, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
            action.sa_handler == SIG_DFL)
            return number;
    return 0;
}

static void stop_at_exit(ruby_vm_t *vm)
{
    culet_listener_end();
}

static int started;

/* Culet::Agent.start: starts to listen, in this process and in its forked processes. Returns whether it listens. */
static VALUE agent_start(VALUE self)
{
    int number;

    if (started)
        return culet_listener_error() == 0 ? Qtrue : Qfalse;
    number = free_signal();
    if (number == 0)
        rb_raise(rb_eRuntimeError, "no real-time signal is free");
    interrupt_mask = rb_hash_new();
    rb_hash_aset(interrupt_mask, rb_cObject, culet_symbol("never"));
    rb_gc_register_mark_object(rb_obj_freeze(interrupt_mask));
    rb_funcall(rb_const_get(rb_cObject, rb_intern("Signal")), rb_intern("trap"), 2, INT2FIX(number),
               rb_proc_new(answer, Qnil));
    ruby_vm_at_exit(stop_at_exit);
    culet_process_reading_prepare();
    started = 1;
    return culet_listener_start(number) == 0 ? Qtrue : Qfalse;
}

/* Culet::Agent.listening?: whether this process answers requests now. */
static VALUE agent_listening(VALUE self)
{
    return started && culet_listener_error() == 0 ? Qtrue : Qfalse;
}

/* Culet::Agent.problem: the reason why the agent does not listen; nil if it listens or was not started. */
static VALUE agent_problem(VALUE self)
{
    int error = started ? culet_listener_error() : 0;

    return error == 0 ? Qnil : rb_utf8_str_new_cstr(strerror(error));
}

/* ---- requests from inside ---- */

static VALUE report_string(VALUE data)
{
    const struct report *report = (const struct report *)data;

    write_report(data);
    return rb_str_new(report->buffer.bytes, (long)report->buffer.length);
}

static VALUE free_report(VALUE data)
{
    culet_buffer_free(&((struct report *)data)->buffer);
    return Qnil;
}

/* Culet::Agent.detail(data, limit_seconds): a String of JSON lines of the kinds "gc", "vm", "allocator_statistics" and
 * "objects" (agent/objects.h). data: whether extensions' objects report their sizes. */
static VALUE agent_detail(VALUE self, VALUE data, VALUE limit_seconds)
{
    struct report report = {.request = {.kind = CULET_OBJECTS, .objects = {RTEST(data), NUM2DBL(limit_seconds)}}};

    return rb_ensure(report_string, (VALUE)&report, free_report, (VALUE)&report);
}

void culet_init_agent(VALUE culet)
{
    VALUE agent = rb_define_module_under(culet, "Agent");

    rb_define_singleton_method(agent, "start", agent_start, 0);
    rb_define_singleton_method(agent, "listening?", agent_listening, 0);
    rb_define_singleton_method(agent, "problem", agent_problem, 0);
    rb_define_singleton_method(agent, "detail", agent_detail, 2);
}
