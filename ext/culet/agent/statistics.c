#include "agent/statistics.h"

#include <stdint.h>

#include "common/active_malloc.h"
#include "reading/malloc_stats.h"

typedef void process_info_function(size_t *elapsed_ms, size_t *user_ms, size_t *system_ms, size_t *rss,
                                   size_t *peak_rss, size_t *commit, size_t *peak_commit, size_t *faults);

static void store(VALUE stats, const char *name, size_t value)
{
    rb_hash_aset(stats, rb_str_new_cstr(name), SIZET2NUM(value));
}

/* jemalloc(3): setting the epoch updates the statistics. */
static void read_jemalloc(culet_mallctl_function *mallctl, VALUE stats)
{
    static const char *const names[][2] = {
        {"stats.allocated", "allocated_bytes"}, {"stats.active", "active_bytes"}, {"stats.metadata", "metadata_bytes"},
        {"stats.resident", "resident_bytes"},   {"stats.mapped", "mapped_bytes"}, {"stats.retained", "retained_bytes"},
    };
    uint64_t epoch = 1;
    unsigned arenas = 0;
    size_t size = sizeof(arenas);

    if (mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch)) != 0)
        return;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t value = 0, bytes = sizeof(value);
        if (mallctl(names[i][0], &value, &bytes, NULL, 0) == 0)
            store(stats, names[i][1], value);
    }
    if (mallctl("arenas.narenas", &arenas, &size, NULL, 0) == 0)
        store(stats, "arenas", arenas);
}

/* gperftools/malloc_extension_c.h. */
static void read_tcmalloc(culet_tc_property_function *property, VALUE stats)
{
    static const char *const names[][2] = {
        {"generic.current_allocated_bytes", "current_allocated_bytes"},
        {"generic.heap_size", "heap_size_bytes"},
        {"tcmalloc.pageheap_free_bytes", "pageheap_free_bytes"},
        {"tcmalloc.pageheap_unmapped_bytes", "pageheap_unmapped_bytes"},
        {"tcmalloc.central_cache_free_bytes", "central_cache_free_bytes"},
        {"tcmalloc.transfer_cache_free_bytes", "transfer_cache_free_bytes"},
        {"tcmalloc.thread_cache_free_bytes", "thread_cache_free_bytes"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t value = 0;
        if (property(names[i][0], &value))
            store(stats, names[i][1], value);
    }
}

/* mimalloc.h: mi_process_info. */
static void read_mimalloc(process_info_function *process_info, VALUE stats)
{
    size_t elapsed = 0, user = 0, system = 0, rss = 0, peak_rss = 0, commit = 0, peak_commit = 0, faults = 0;

    process_info(&elapsed, &user, &system, &rss, &peak_rss, &commit, &peak_commit, &faults);
    store(stats, "committed_bytes", commit);
    store(stats, "peak_committed_bytes", peak_commit);
    store(stats, "resident_bytes", rss);
    store(stats, "peak_resident_bytes", peak_rss);
    store(stats, "page_faults", faults);
}

static VALUE malloc_stats(void)
{
    VALUE stats = rb_hash_new();
    VALUE own = culet_stats_of_malloc(Qnil);
    CULET_OF_MALLOC(process_info_function, process_info, "mi_process_info");
    CULET_OF_MALLOC(culet_tc_property_function, property, "MallocExtension_GetNumericProperty");
    CULET_OF_MALLOC(culet_mallctl_function, mallctl, "mallctl");

    if (!NIL_P(own))
        return own;
    if (process_info != NULL)
        read_mimalloc(process_info, stats);
    else if (property != NULL)
        read_tcmalloc(property, stats);
    else if (mallctl != NULL)
        read_jemalloc(mallctl, stats);
    return stats;
}

void culet_statistics_write(struct culet_buffer *buffer)
{
    VALUE allocator = rb_funcall(rb_const_get(rb_cObject, rb_intern("Culet")), rb_intern("allocator"), 0);
    VALUE stats = malloc_stats();

    culet_buffer_format(buffer, "{\"kind\":\"allocator_statistics\"");
    culet_buffer_json_members(buffer, allocator);
    culet_buffer_text(buffer, ",\"figures\":");
    culet_buffer_json(buffer, stats);
    culet_buffer_text(buffer, "}\n");
}
