#include "retain/retain.h"

#include <ruby/thread.h>
#include <ruby/version.h>
#include <stdio.h>

#include "common/object_bytes.h"
#include "reading/clock.h"
#include "retain/dump.h"
#include "retain/live.h"
#include "retain/report.h"

static struct culet_memory memory_of(const struct culet_retain_options *options)
{
    return (struct culet_memory){.limit_bytes = (size_t)options->limit_bytes,
                                 .deadline = culet_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) + options->limit_seconds};
}

/* Analyses a graph that is open. */
static const char *analyse(struct culet_graph *graph, const struct culet_retain_options *options,
                           struct culet_report_facts *facts, struct culet_buffer *out)
{
    struct culet_analysis analysis;
    double start = culet_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    const char *problem = culet_analysis_run(&analysis, graph);

    facts->cpu_seconds += culet_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    if (problem == NULL)
        problem = culet_report_write(&analysis, options, facts, out);
    culet_analysis_free(&analysis);
    return problem;
}

const char *culet_retain_obstacle(void)
{
    culet_object_bytes_prepare();
    return culet_live_obstacle();
}

const char *culet_retain_process(const struct culet_retain_options *options, long pid, double fork_seconds,
                                 struct culet_buffer *out)
{
    struct culet_memory memory = memory_of(options);
    struct culet_report_facts facts = {
        .pid = pid, .ruby = ruby_version, .source = "process", .fork_seconds = fork_seconds};
    struct culet_live live;
    const char *problem;

    rb_gc_disable();
    *rb_ruby_verbose_ptr() = Qnil; /* what is read here warns nobody */
    facts.cpu_seconds = -culet_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (!culet_live_open(&live, &memory)) {
        culet_live_close(&live);
        return culet_memory_problem(&memory);
    }
    facts.cpu_seconds += culet_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    live.graph.show_contents = options->content != 0;
    problem = analyse(&live.graph, options, &facts, out);
    culet_live_close(&live);
    return problem;
}

/* ---- dumps ---- */

struct dump_call {
    int fd;
    struct culet_retain_options options;
    struct culet_buffer out;
    const char *problem;
};

static void *analyse_dump(void *data)
{
    struct dump_call *call = data;
    struct culet_memory memory = memory_of(&call->options);
    struct culet_report_facts facts = {.source = "dump"};
    struct culet_dump dump;
    double start = culet_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);

    call->problem = culet_dump_open(&dump, &memory, call->fd, call->options.content || call->options.duplicates);
    facts.cpu_seconds = culet_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    dump.graph.show_contents = call->options.content != 0;
    if (call->problem == NULL)
        call->problem = analyse(&dump.graph, &call->options, &facts, &call->out);
    culet_dump_close(&dump);
    return NULL;
}

static VALUE answer_of(VALUE data)
{
    const struct dump_call *call = (const struct dump_call *)data;

    return rb_str_new(call->out.bytes, (long)call->out.length);
}

/*
 * Culet::Retention.analyse_dump(descriptor, content, duplicates, class_name, address, limit_seconds, limit_bytes): the
 * analysis of a dump, as JSON. Raises Culet::Error.
 */
static VALUE retention_analyse_dump(VALUE self, VALUE descriptor, VALUE content, VALUE duplicates, VALUE class_name,
                                    VALUE address, VALUE limit_seconds, VALUE limit_bytes)
{
    struct dump_call call = {.fd = NUM2INT(descriptor),
                             .options = {.content = RTEST(content),
                                         .duplicates = RTEST(duplicates),
                                         .limit_seconds = NUM2DBL(limit_seconds),
                                         .limit_bytes = NUM2ULL(limit_bytes),
                                         .address = NUM2ULL(address)}};
    VALUE result = Qnil;
    int failure = 0;

    StringValue(class_name);
    snprintf(call.options.class_name, sizeof(call.options.class_name), "%.*s", (int)RSTRING_LEN(class_name),
             RSTRING_PTR(class_name));
    rb_thread_call_without_gvl(analyse_dump, &call, NULL, NULL);
    if (call.problem == NULL)
        result = rb_protect(answer_of, (VALUE)&call, &failure);
    culet_buffer_free(&call.out);
    if (failure)
        rb_jump_tag(failure);
    if (call.problem != NULL)
        rb_raise(rb_path2class("Culet::Error"), "%s", call.problem);
    return result;
}

void culet_init_retain(VALUE culet)
{
    VALUE retention = rb_define_module_under(culet, "Retention");

    rb_define_singleton_method(retention, "analyse_dump", retention_analyse_dump, 7);
}
