#include "agent/copy_tasks.h"

#include "agent/strings.h"
#include "agent/unused_reporter.h"
#include "common/io.h"
#include "profile/live_samples.h"
#include "retain/retain.h"

#define UNUSED_SECONDS 60

/* ---- code that never ran ---- */

static VALUE call_document(VALUE numbers)
{
    const long *pids = (const long *)numbers;

    return rb_funcall(culet_unused_reporter(), rb_intern("document"), 2, LONG2NUM(pids[0]), LONG2NUM(pids[1]));
}

static const char *make_unused(const struct culet_copy_task *task, const long *pids, double fork_seconds, int output)
{
    int failure = 0;
    VALUE document = rb_protect(call_document, (VALUE)pids, &failure);

    if (failure)
        return "the report on its code failed";
    return culet_write_all(output, RSTRING_PTR(document), (size_t)RSTRING_LEN(document)) != 0
               ? "no memory is left for the answer"
               : NULL;
}

/* Whether culet/unused is active in the program. */
static int is_followed(void)
{
    return rb_respond_to(culet_unused_reporter(), rb_intern("started?")) &&
           RTEST(rb_funcall(culet_unused_reporter(), rb_intern("started?"), 0));
}

static const char *start_unused(struct culet_copy *copy)
{
    const struct culet_copy_task task = {
        .name = "culet-unused", .limit_seconds = UNUSED_SECONDS, .runs_ruby = 1, .make = make_unused};

    if (!is_followed())
        return "it does not follow which of its code runs; start it with RUBYOPT=-r$(culet lib unused) in its "
               "environment";
    return culet_copy_start(copy, &task);
}

/* ---- retention ---- */

struct retain_request {
    const struct culet_retain_options *options;
    struct culet_profile_samples samples;
};

static const char *make_retain(const struct culet_copy_task *task, const long *pids, double fork_seconds, int output)
{
    const struct retain_request *request = task->request;

    return culet_retain_process(request->options, &request->samples, pids[0], fork_seconds, output);
}

static const char *fork_retain(struct culet_copy *copy, const struct culet_retain_options *options)
{
    struct retain_request request = {.options = options};
    const struct culet_copy_task task = {.name = "culet-retain",
                                         .limit_seconds = options->limit_seconds,
                                         .is_large = options->heapsnapshot,
                                         .make = make_retain,
                                         .request = &request};
    const char *problem;

    if (options->samples && !culet_live_samples_take(&request.samples))
        return "its memory profile is off";
    problem = culet_copy_start(copy, &task);
    culet_live_samples_free(&request.samples);
    return problem;
}

/* A collection between the list of samples and the fork would move or free their objects. */
static const char *start_retain(struct culet_copy *copy, const struct culet_retain_options *options)
{
    const char *problem = culet_retain_obstacle();
    int was_off;

    if (problem != NULL)
        return problem;
    was_off = RTEST(rb_gc_disable());
    problem = fork_retain(copy, options);
    if (!was_off)
        rb_gc_enable();
    return problem;
}

/* ---- strings ---- */

struct strings_request {
    const struct culet_strings_options *options;
    VALUE sites;
};

static const char *make_strings(const struct culet_copy_task *task, const long *pids, double fork_seconds, int output)
{
    const struct strings_request *request = task->request;

    return culet_strings_write(request->options, request->sites, fork_seconds, output);
}

static const char *start_strings(struct culet_copy *copy, const struct culet_strings_options *options)
{
    const char *problem = culet_retain_obstacle();
    struct strings_request request = {.options = options};
    const struct culet_copy_task task = {.name = "culet-strings",
                                         .limit_seconds = options->limit_seconds,
                                         .is_large = 1,
                                         .make = make_strings,
                                         .request = &request};

    if (problem != NULL)
        return problem;
    request.sites = culet_strings_sites();
    return culet_copy_start(copy, &task);
}

/* ---- */

const char *culet_copy_tasks_start(struct culet_copy *copy, const struct culet_request *request)
{
    switch (request->kind) {
    case CULET_RETAIN:
        return start_retain(copy, &request->retain);
    case CULET_STRINGS:
        return start_strings(copy, &request->strings);
    default:
        return start_unused(copy);
    }
}

VALUE culet_copy_tasks_follow(VALUE request)
{
    if (((const struct culet_request *)request)->kind == CULET_UNUSED &&
        rb_respond_to(culet_unused_reporter(), rb_intern("follow")))
        rb_funcall(culet_unused_reporter(), rb_intern("follow"), 0);
    return Qnil;
}
