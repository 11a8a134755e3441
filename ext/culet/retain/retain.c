#include "retain/retain.h"

#include <ruby/version.h>

#include "common/object_bytes.h"
#include "reading/clock.h"
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

void culet_init_retain(VALUE culet)
{
    (void)culet;
}
