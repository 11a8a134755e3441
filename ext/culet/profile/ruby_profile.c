#include "profile/ruby_profile.h"

#include <pthread.h>
#include <inttypes.h>
#include <ruby/vm.h>
#include <string.h>

#include "common/io.h"
#include "sampler/core/samples.h"
#include "profile/active_profile.h"
#include "profile/dump.h"
#include "profile/frames.h"
#include "profile/interpreter.h"
#include "profile/labels.h"
#include "profile/objects.h"
#include "profile/readers.h"
#include "profile/top.h"
#include "trim/gc_watch.h"

static bool prepared;
static bool started; /* there is a profile */

/* During GC. */
static void on_collection(int major)
{
    if (!major)
        return;
    culet_profile_frames_collection();
    culet_active_profile->next_epoch();
}

static void at_end(ruby_vm_t *vm)
{
    culet_profile_frames_enable(false);
}

/* Prepares Ruby for the profile, once, at its first start: other processes do not pay for it. */
static void prepare(void)
{
    int error;

    if (prepared)
        return;
    if (!culet_profile_frames_prepare())
        rb_raise(rb_eNoMemError, "not enough memory for the profile");
    prepared = true;
    /* A library that exports the profile has fork handlers of its own. */
    if (culet_active_profile == &culet_profile_api &&
        (error = pthread_atfork(culet_profile_prepare, culet_profile_parent, culet_profile_child)) != 0)
        rb_syserr_fail(error, "pthread_atfork");
    culet_gc_watch(on_collection);
    culet_interpreter_find();
    culet_readers_prepare();
    ruby_vm_at_exit(at_end);
    culet_profile_frames_enable(true);
    culet_active_profile->set_frames(culet_profile_frames_words);
}

static void start(uint64_t sample_bytes)
{
    prepare();
    if (!culet_active_profile->start(sample_bytes))
        rb_raise(rb_eNoMemError, "not enough memory for the profile");
    started = true;
    culet_objects_start();
    culet_labels_start();
}

static void stop(void)
{
    started |= culet_active_profile->running();
    culet_objects_stop();
    culet_labels_stop();
    culet_active_profile->stop();
}

/* The allocator may have started it before Ruby. */
static void dump(struct culet_buffer *buffer)
{
    if (!started && !culet_active_profile->running())
        rb_raise(rb_eRuntimeError, "the memory profile was not started");
    prepare();
    culet_objects_check();
    culet_profile_dump(buffer);
    if (buffer->failed)
        rb_raise(rb_eNoMemError, "not enough memory for the profile");
}

static void collect(void)
{
    for (int i = 0; i < CULET_PROFILE_SURVIVALS; i++)
        rb_gc_start();
}

void culet_profile_answer(const struct culet_profile_request *request, struct culet_buffer *buffer)
{
    if (request->action == CULET_PROFILE_WRITE) {
        dump(buffer);
        return;
    }
    if (request->action == CULET_PROFILE_START)
        start(request->sample_bytes > 0 ? request->sample_bytes : CULET_PROFILE_DEFAULT_BYTES);
    else if (request->action == CULET_PROFILE_STOP)
        stop();
    else if (request->action == CULET_PROFILE_BOOTED)
        culet_active_profile->booted();
    else if (request->action == CULET_PROFILE_COLLECT)
        collect();
    culet_buffer_format(buffer, "running=%d sample_bytes=%" PRIu64 " malloc=%d\n", culet_active_profile->running(),
                        culet_active_profile->sample_bytes(), culet_active_profile->samples_malloc);
}

/* ---- Culet::Profile ---- */

/* Culet::Profile.sample(bytes): starts to sample. */
static VALUE profile_sample(VALUE self, VALUE bytes)
{
    start(NUM2ULL(bytes));
    return Qnil;
}

/* Culet::Profile.stop: ends sampling. What is live is followed on. */
static VALUE profile_stop(VALUE self)
{
    stop();
    return Qnil;
}

/* Culet::Profile.booted: the program has booted, so growth is what is allocated from now on. */
static VALUE profile_booted(VALUE self)
{
    culet_active_profile->booted();
    return Qnil;
}

/* Culet::Profile.running?: whether the process samples. */
static VALUE profile_running(VALUE self)
{
    return culet_active_profile->running() ? Qtrue : Qfalse;
}

/* Culet::Profile.sample_bytes: the mean distance of two samples. */
static VALUE profile_sample_bytes(VALUE self)
{
    return ULL2NUM(culet_active_profile->sample_bytes());
}

struct output {
    struct culet_buffer buffer;
    int file; /* -1: a String */
};

static VALUE write_output(VALUE data)
{
    struct output *output = (struct output *)data;
    int error;

    dump(&output->buffer);
    if (output->file < 0)
        return rb_utf8_str_new(output->buffer.bytes, (long)output->buffer.length);
    if ((error = culet_write_all(output->file, output->buffer.bytes, output->buffer.length)) != 0)
        rb_syserr_fail(error, NULL);
    return Qnil;
}

static VALUE free_output(VALUE data)
{
    culet_buffer_free(&((struct output *)data)->buffer);
    return Qnil;
}

/* Culet::Profile.stream: the stream, a String. */
static VALUE profile_stream(VALUE self)
{
    struct output output = {.file = -1};

    return rb_ensure(write_output, (VALUE)&output, free_output, (VALUE)&output);
}

/* Culet::Profile.write_to(descriptor): writes the stream. Raises SystemCallError. */
static VALUE profile_write_to(VALUE self, VALUE descriptor)
{
    struct output output = {.file = NUM2INT(descriptor)};

    return rb_ensure(write_output, (VALUE)&output, free_output, (VALUE)&output);
}

void culet_init_profile(VALUE culet)
{
    VALUE profile = rb_define_module_under(culet, "Profile");

    culet_active_profile_find();
    rb_define_private_method(rb_singleton_class(profile), "sample", profile_sample, 1);
    rb_define_singleton_method(profile, "stop", profile_stop, 0);
    rb_define_singleton_method(profile, "booted", profile_booted, 0);
    rb_define_singleton_method(profile, "running?", profile_running, 0);
    rb_define_singleton_method(profile, "sample_bytes", profile_sample_bytes, 0);
    rb_define_private_method(rb_singleton_class(profile), "stream", profile_stream, 0);
    rb_define_private_method(rb_singleton_class(profile), "write_to", profile_write_to, 1);
    culet_init_profile_objects();
    culet_init_profile_labels(profile);
}
