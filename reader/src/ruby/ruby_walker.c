/* The walker of Ruby's heap. */
#include "process/mapping_names.h"
#include "ruby/interpreter.h"
#include "ruby/ruby_heap.h"
#include "walker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The list of mappings suffices: files are read in `walk`, since that takes longer than a pause should. */
static bool ruby_recognize(struct culet_reading *reading, void *context)
{
    (void)context;
    return culet_ruby_is_loaded(reading);
}

/* Whether the kernel has a name for the mapping, as memory of Ruby's heap. */
static bool is_named(const struct culet_mapping *mapping)
{
    const char *use = culet_mapping_special_use(mapping->path);

    return use && strcmp(use, "ruby") == 0;
}

/* Explains why no pages were found. With another collector the memory of objects is in other figures, which the user
 * must know. */
static void explain(struct culet_reading *reading, struct culet_ruby *ruby)
{
    const struct culet_mapping *collector = culet_ruby_collector(reading);

    if (ruby->count)
        return;
    if (!collector) {
        snprintf(ruby->why, sizeof ruby->why, "No pages of Ruby's heap were found: their layout is unknown.");
        return;
    }
    snprintf(ruby->why, sizeof ruby->why,
             "Ruby's objects are managed by a collector loaded as a library (%.64s), whose heap layout is unknown: "
             "single objects are not reported, and their memory is %s.",
             culet_mapping_base(collector->path),
             CULET_MAPPING_WHERE(&reading->maps, each, is_named(each)) ? "reported as a whole"
                                                                       : "attributed to other mappings or to malloc");
    culet_reading_problem(reading, "%s", ruby->why);
}

static void ruby_walk(struct culet_reading *reading, void *context)
{
    struct culet_ruby *ruby = context;

    culet_ruby_read_version(reading, ruby->version, sizeof ruby->version);
    culet_reading_pause(reading);
    culet_ruby_find_pages(reading, ruby);
    culet_ruby_count_collections(reading, ruby);
    culet_transient_walk(reading, &ruby->transient);
    culet_ruby_walk_pages(reading, ruby);
    culet_reading_resume(reading);
    explain(reading, ruby);
    if (ruby->swapped)
        culet_reading_problem(reading,
                              "%" PRIu64 " pages of Ruby's heap are in swap: their slots are reported as "
                              "free.",
                              ruby->swapped);
}

const struct culet_walker culet_ruby_walker = {.name = "ruby",
                                               .context_bytes = sizeof(struct culet_ruby),
                                               .recognize = ruby_recognize,
                                               .walk = ruby_walk,
                                               .write = culet_ruby_write};
