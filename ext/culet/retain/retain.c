#include "retain/retain.h"

#include <ruby/thread.h>
#include <ruby/version.h>
#include <stdio.h>
#include <unistd.h>

#include "common/io.h"
#include "common/object_bytes.h"
#include "profile/liveness.h"
#include "reading/block_sizes.h"
#include "reading/clock.h"
#include "reading/malloc_stats.h"
#include "retain/dump.h"
#include "retain/live.h"
#include "retain/report.h"
#include "retain/snapshot.h"

static struct culet_memory memory_of(const struct culet_retain_options *options)
{
    return (struct culet_memory){.limit_bytes = (size_t)options->limit_bytes,
                                 .deadline = culet_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) + options->limit_seconds};
}

/* Analyses a graph that is open, and writes what was asked for to a descriptor. */
static const char *analyse(struct culet_graph *graph, const struct culet_retain_options *options,
                           const struct culet_report_facts *facts, int output)
{
    struct culet_analysis analysis;
    struct culet_buffer report = {NULL, 0, 0, 0};
    const char *problem;

    graph->show_contents = options->content != 0;
    problem = culet_analysis_run(&analysis, graph);
    if (problem == NULL && options->heapsnapshot) {
        problem = culet_snapshot_write(&analysis, output);
    } else if (problem == NULL) {
        problem = culet_report_write(&analysis, options, facts, &report);
        if (problem == NULL && culet_write_all(output, report.bytes, report.length) != 0)
            problem = "no memory is left for the answer";
    }
    culet_buffer_free(&report);
    culet_analysis_free(&analysis);
    return problem;
}

const char *culet_retain_obstacle(void)
{
    culet_object_bytes_prepare();
    return culet_live_obstacle();
}

/* Ruby 3.1 takes its pages, of 16 KiB, from malloc where those of the kernel are larger (gc.c). */
static bool pages_are_of_malloc(void)
{
    return RUBY_API_VERSION_MAJOR == 3 && RUBY_API_VERSION_MINOR < 2 && sysconf(_SC_PAGESIZE) > (16 << 10);
}

/* In a copy: nothing of Ruby runs, and nothing is freed at the end. Returns NULL, or a sentence on why not. */
static const char *open_live(struct culet_live *live, struct culet_memory *memory)
{
    rb_gc_disable();
    culet_liveness_end(); /* a pending job of the profile would wait for its thread, which is not in the copy */
    *rb_ruby_verbose_ptr() = Qnil; /* reading must not print warnings */
    return culet_live_open(live, memory) ? NULL : culet_memory_problem(memory);
}

const char *culet_retain_process(const struct culet_retain_options *options,
                                 const struct culet_profile_samples *samples, long pid, double fork_seconds, int output)
{
    struct culet_memory memory = memory_of(options);
    struct culet_sampled sampled = {.samples = samples};
    struct culet_report_facts facts = {.pid = pid,
                                       .ruby = ruby_version,
                                       .source = "process",
                                       .fork_seconds = fork_seconds,
                                       .sampled = options->samples ? &sampled : NULL,
                                       .cpu_start = culet_clock_seconds(CLOCK_PROCESS_CPUTIME_ID)};
    struct culet_block_sizes block_sizes;
    struct culet_live live;
    const char *problem;
    uint64_t in_use;

    if (!pages_are_of_malloc() && culet_malloc_in_use_bytes(&in_use))
        facts.malloc_in_use = &in_use;
    if ((problem = open_live(&live, &memory)) != NULL)
        return problem;
    if (facts.malloc_in_use != NULL) {
        culet_block_sizes_init(&block_sizes);
        live.graph.block_sizes = &block_sizes;
    }
    if (options->samples)
        culet_sampled_find(&sampled, &live);
    return analyse(&live.graph, options, &facts, output);
}

const char *culet_retain_brief(const struct culet_retain_options *options, const struct culet_brief *earlier,
                               struct culet_brief *found)
{
    struct culet_memory memory = memory_of(options);
    struct culet_analysis analysis;
    struct culet_live live;
    const char *problem = open_live(&live, &memory);

    if (problem != NULL)
        return problem;
    problem = culet_analysis_run(&analysis, &live.graph);
    if (problem == NULL)
        culet_brief_make(&analysis, earlier, found);
    return problem;
}

const char *culet_retain_each(const struct culet_retain_options *options, culet_retain_object_function *function,
                              void *data)
{
    struct culet_memory memory = memory_of(options);
    struct culet_live live;
    struct culet_walk walk = {.graph = &live.graph, .memory = &memory};
    const char *problem = open_live(&live, &memory);

    if (problem != NULL)
        return problem;
    if (!culet_walk_run(&walk, false))
        return culet_memory_problem(&memory);
    for (uint32_t id = 0; id < live.graph.ids; id++)
        if (walk.entries.items[id] != 0 &&
            !function(culet_live_object(&live.graph, id), culet_heap_index_run(&live.index, id)->slot_bytes, data))
            break;
    return NULL;
}

/* ---- dumps ---- */

struct dump_call {
    int fd;
    struct culet_retain_options options;
    struct culet_memory memory;
    int output;
    const char *problem;
};

/* Ruby calls it when the thread has an interrupt, such as that of Ctrl-C. */
static void end_analysis(void *data)
{
    ((struct dump_call *)data)->memory.deadline = 0;
}

static void *analyse_dump(void *data)
{
    struct dump_call *call = data;
    struct culet_report_facts facts = {.source = "dump", .cpu_start = culet_clock_seconds(CLOCK_PROCESS_CPUTIME_ID)};
    struct culet_dump dump;

    call->problem = culet_dump_open(&dump, &call->memory, call->fd, call->options.content || call->options.duplicates);
    if (call->problem == NULL)
        call->problem = analyse(&dump.graph, &call->options, &facts, call->output);
    culet_dump_close(&dump);
    culet_memory_free(&call->memory);
    return NULL;
}

/* Culet::Retention.analyse_dump(descriptor, output, options): analyses a dump and writes the report, or a heap
 * snapshot, to the descriptor `output`. options: [content, duplicates, heapsnapshot, class_name, address,
 * limit_seconds, limit_bytes]. Raises Culet::Error. */
static VALUE retention_analyse_dump(VALUE self, VALUE descriptor, VALUE output, VALUE options)
{
    struct dump_call call = {.fd = NUM2INT(descriptor), .output = NUM2INT(output)};
    VALUE class_name;

    Check_Type(options, T_ARRAY);
    class_name = rb_ary_entry(options, 3);
    StringValue(class_name);
    call.options = (struct culet_retain_options){.content = RTEST(rb_ary_entry(options, 0)),
                                                 .duplicates = RTEST(rb_ary_entry(options, 1)),
                                                 .heapsnapshot = RTEST(rb_ary_entry(options, 2)),
                                                 .address = NUM2ULL(rb_ary_entry(options, 4)),
                                                 .limit_seconds = NUM2DBL(rb_ary_entry(options, 5)),
                                                 .limit_bytes = NUM2ULL(rb_ary_entry(options, 6))};
    snprintf(call.options.class_name, sizeof(call.options.class_name), "%.*s", (int)RSTRING_LEN(class_name),
             RSTRING_PTR(class_name));
    call.memory = memory_of(&call.options);
    rb_thread_call_without_gvl(analyse_dump, &call, end_analysis, &call);
    if (call.problem != NULL)
        rb_raise(rb_path2class("Culet::Error"), "%s", call.problem);
    return Qnil;
}

void culet_init_retain(VALUE culet)
{
    VALUE retention = rb_define_module_under(culet, "Retention");

    rb_define_singleton_method(retention, "analyse_dump", retention_analyse_dump, 3);
}
