/* malloc_info.c - libc's statistics interface, answered from culet_stats: mallinfo, malloc_info, malloc_stats; and
 * malloc_trim, mallopt. */
#define _GNU_SOURCE
#include "culet.h"

#include "heap.h"
#include "libc.h"
#include "stack.h"
#include "stats.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>

#define API(name) CULET_NAME(name)

/* In a dormant process: returns from libc's own function, or with `missing` if libc has none. */
#define FORWARD_IF_DORMANT(function, missing, ...)                                                                     \
    do {                                                                                                               \
        __typeof__(&API(function)) next;                                                                               \
        if (!culet_heap_dormant())                                                                                     \
            break;                                                                                                     \
        next = (__typeof__(next))culet_libc_function(#function);                                                       \
        return next ? next(__VA_ARGS__) : missing;                                                                     \
    } while (0)

/* mallopt's parameters, as the ABI numbers them. */
enum {
    M_MXFAST = 1,
    M_ARENA_MAX = -8,
    M_ARENA_TEST = -7,
    M_MMAP_MAX = -4,
    M_MMAP_THRESHOLD = -3,
    M_TOP_PAD = -2,
    M_TRIM_THRESHOLD = -1,
};

int API(malloc_trim)(size_t pad)
{
    FORWARD_IF_DORMANT(malloc_trim, 0, pad);
    culet_stack_trim();
    return culet_heap_trim(pad) != 0;
}

/* glibc's tuning parameters are accepted and ignored. M_PERTURB and M_CHECK_ACTION promise what culet does not do, so
 * they are refused. */
int API(mallopt)(int parameter, int value)
{
    FORWARD_IF_DORMANT(mallopt, 0, parameter, value);
    switch (parameter) {
    case M_MXFAST:
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
        return 1;
    default:
        return 0;
    }
}

/* arena == uordblks + fordblks, as in glibc; huge blocks are counted in hblks and hblkhd only. */
struct mallinfo2 API(mallinfo2)(void)
{
    struct mallinfo2 info = {0};
    struct culet_stats s;

    FORWARD_IF_DORMANT(mallinfo2, info);
    culet_stats(&s, sizeof s);
    info.arena = s.heap_bytes;
    info.hblks = s.large_blocks;
    info.hblkhd = s.large_bytes;
    info.uordblks = s.used_bytes;
    info.fordblks = s.free_bytes;
    info.keepcost = s.free_resident_bytes;
    for (unsigned klass = 1; klass < s.classes; klass++)
        info.ordblks += s.class[klass].free + s.class[klass].cached;
    return info;
}

static int saturate(size_t n)
{
    return n > INT_MAX ? INT_MAX : (int)n;
}

struct mallinfo API(mallinfo)(void)
{
    struct mallinfo2 wide = API(mallinfo2)();
    struct mallinfo info = {
        .arena = saturate(wide.arena),
        .ordblks = saturate(wide.ordblks),
        .hblks = saturate(wide.hblks),
        .hblkhd = saturate(wide.hblkhd),
        .uordblks = saturate(wide.uordblks),
        .fordblks = saturate(wide.fordblks),
        .keepcost = saturate(wide.keepcost),
    };
    return info;
}

void API(malloc_stats)(void)
{
    struct culet_stats s;

    FORWARD_IF_DORMANT(malloc_stats, (void)0);
    culet_stats(&s, sizeof s);
    fprintf(stderr,
            "culet %s\n"
            "mapped bytes     = %10" PRIu64 "\n"
            "in use bytes     = %10" PRIu64 "\n"
            "held by threads  = %10" PRIu64 " (%" PRIu64 " threads)\n"
            "free, resident   = %10" PRIu64 " at the most\n"
            "returned         = %10" PRIu64 " (%" PRIu64 " purges)\n"
            "descriptors      = %10" PRIu64 "\n"
            "huge blocks      = %10" PRIu64 " (%" PRIu64 " bytes)\n",
            culet_version(), s.mapped_bytes, s.used_bytes + s.large_bytes, s.cached_bytes, s.threads,
            s.free_resident_bytes, s.returned_bytes, s.purges, s.descriptor_bytes, s.large_blocks, s.large_bytes);
}

/* One line per class in use. `count` and `total` are glibc's names for its free blocks; here they include cached
 * ones. */
static void write_classes(const struct culet_stats *s, FILE *stream)
{
    for (unsigned klass = 1; klass < s->classes; klass++) {
        const struct culet_stats_class *c = &s->class[klass];
        uint64_t idle = c->free + c->cached;
        if (c->slabs)
            fprintf(stream,
                    "  <size from=\"%" PRIu64 "\" to=\"%" PRIu64 "\" slabs=\"%" PRIu64 "\" used=\"%" PRIu64
                    "\" free=\"%" PRIu64 "\" cached=\"%" PRIu64 "\" count=\"%" PRIu64 "\" total=\"%" PRIu64 "\"/>\n",
                    s->class[klass - 1].block_bytes + 1, c->block_bytes, c->slabs, c->used, c->free, c->cached, idle,
                    idle * c->block_bytes);
    }
}

static void write_total(FILE *stream, const char *type, uint64_t bytes)
{
    fprintf(stream, "<total type=\"%s\" size=\"%" PRIu64 "\"/>\n", type, bytes);
}

static void write_counted(FILE *stream, const char *type, uint64_t count, uint64_t bytes)
{
    fprintf(stream, "<total type=\"%s\" count=\"%" PRIu64 "\" size=\"%" PRIu64 "\"/>\n", type, count, bytes);
}

/* "used", "rest", "mmap" and the system's "current" mean what they mean in glibc: used + rest is all that is mapped.
 * The other names are those of struct culet_stats without `_bytes`. */
static void write_totals(const struct culet_stats *s, FILE *stream)
{
    write_total(stream, "used", s->used_bytes + s->large_bytes);
    write_total(stream, "rest", s->free_bytes);
    write_total(stream, "cached", s->cached_bytes);
    write_total(stream, "slab", s->slab_bytes);
    write_counted(stream, "run", s->runs, s->run_bytes);
    write_counted(stream, "mmap", s->large_blocks, s->large_bytes);
    write_total(stream, "free_resident", s->free_resident_bytes);
    write_total(stream, "free_returned", s->free_returned_bytes);
    write_counted(stream, "returned", s->purges, s->returned_bytes);
    write_total(stream, "descriptor", s->descriptor_bytes);
    fprintf(stream, "<system type=\"current\" size=\"%" PRIu64 "\"/>\n", s->mapped_bytes);
    fprintf(stream, "<threads count=\"%" PRIu64 "\"/>\n", s->threads);
    fprintf(stream, "<arenas count=\"%" PRIu64 "\"/>\n", s->arenas);
    fprintf(stream, "<forks count=\"%" PRIu64 "\"/>\n", s->forks);
}

int API(malloc_info)(int options, FILE *stream)
{
    struct culet_stats s;

    FORWARD_IF_DORMANT(malloc_info, ENOSYS, options, stream);
    if (options != 0)
        return EINVAL;
    culet_stats(&s, sizeof s);
    fprintf(stream, "<malloc version=\"1\" allocator=\"culet\" allocator-version=\"%s\">\n<heap nr=\"0\">\n<sizes>\n",
            culet_version());
    write_classes(&s, stream);
    fputs("</sizes>\n</heap>\n", stream);
    write_totals(&s, stream);
    fputs("</malloc>\n", stream);
    return ferror(stream) ? EIO : 0;
}
