/* figures.c - libc's questions about the heap: mallinfo, malloc_info, malloc_stats, malloc_trim, mallopt. */
#define _GNU_SOURCE
#include "culet.h"

#include "heap.h"
#include "libc.h"
#include "size_class.h"

#include <errno.h>
#include <limits.h>

#define API(name) CULET_NAME(name)

/* mallopt's parameters, by the numbers of the ABI. */
enum {
    M_MXFAST = 1,
    M_ARENA_MAX = -8,
    M_ARENA_TEST = -7,
    M_MMAP_MAX = -4,
    M_MMAP_THRESHOLD = -3,
    M_TOP_PAD = -2,
    M_TRIM_THRESHOLD = -1,
};

static bool dormant(void)
{
    return culet_heap_state() == CULET_DORMANT;
}

int API(malloc_trim)(size_t pad)
{
    if (dormant()) {
        int (*next)(size_t) = (int (*)(size_t))culet_libc_find("malloc_trim");
        return next ? next(pad) : 0;
    }
    return culet_heap_trim(pad) != 0;
}

/* The tuning parameters are hints for another design: taken, without effect. M_PERTURB and M_CHECK_ACTION
 * promise something culet does not do, so they are refused. */
int API(mallopt)(int parameter, int value)
{
    if (dormant()) {
        int (*next)(int, int) = (int (*)(int, int))culet_libc_find("mallopt");
        return next ? next(parameter, value) : 0;
    }
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

/* arena == uordblks - hblkhd + fordblks, as in glibc; uordblks counts whole blocks, here with the huge. */
struct mallinfo2 API(mallinfo2)(void)
{
    struct mallinfo2 info = {0};
    struct culet_figures figures;

    if (dormant()) {
        struct mallinfo2 (*next)(void) = (struct mallinfo2(*)(void))culet_libc_find("mallinfo2");
        return next ? next() : info;
    }
    culet_heap_figures(&figures);
    info.arena = figures.pages.segments * CULET_SEGMENT_BYTES;
    info.hblks = figures.large.huge;
    info.hblkhd = figures.large.huge_bytes;
    info.uordblks = figures.used_bytes - figures.large.huge_bytes;
    info.fordblks = info.arena - info.uordblks;
    info.keepcost = figures.pages.dirty << CULET_GRANULE_SHIFT;
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        info.ordblks += figures.bins[klass].blocks - figures.bins[klass].live;
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
    struct culet_figures figures;

    if (dormant()) {
        void (*next)(void) = (void (*)(void))culet_libc_find("malloc_stats");
        if (next)
            next();
        return;
    }
    culet_heap_figures(&figures);
    fprintf(stderr,
            "culet %s\n"
            "mapped bytes     = %10zu\n"
            "in use bytes     = %10zu\n"
            "held by threads  = %10zu (%zu threads)\n"
            "free, resident   = %10zu at the most\n"
            "descriptors      = %10zu\n"
            "huge blocks      = %10zu (%zu bytes)\n",
            culet_version(), figures.mapped_bytes, figures.used_bytes, figures.cached_bytes, figures.threads,
            figures.pages.dirty << CULET_GRANULE_SHIFT, figures.meta_bytes, figures.large.huge,
            figures.large.huge_bytes);
}

int API(malloc_info)(int options, FILE *stream)
{
    struct culet_figures f;

    if (dormant()) {
        int (*next)(int, FILE *) = (int (*)(int, FILE *))culet_libc_find("malloc_info");
        return next ? next(options, stream) : ENOSYS;
    }
    if (options != 0)
        return EINVAL;
    culet_heap_figures(&f);
    fprintf(stream, "<malloc version=\"1\" allocator=\"culet\" allocator-version=\"%s\">\n<heap nr=\"0\">\n<sizes>\n",
            culet_version());
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        if (f.bins[klass].slabs)
            fprintf(stream, "  <size from=\"%u\" to=\"%u\" slabs=\"%zu\" used=\"%zu\" claimed=\"%zu\" count=\"%zu\" total=\"%zu\"/>\n",
                    culet_classes[klass - 1].size + 1, culet_classes[klass].size, f.bins[klass].slabs,
                    f.bins[klass].live, f.bins[klass].claimed, f.bins[klass].blocks - f.bins[klass].live,
                    (f.bins[klass].blocks - f.bins[klass].live) * culet_classes[klass].size);
    fprintf(stream,
            "</sizes>\n</heap>\n"
            "<total type=\"used\" size=\"%zu\"/>\n"
            "<total type=\"claimed\" size=\"%zu\"/>\n"
            "<total type=\"rest\" size=\"%zu\"/>\n"
            "<total type=\"dirty\" size=\"%zu\"/>\n"
            "<total type=\"returned\" size=\"%zu\"/>\n"
            "<total type=\"run\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"descriptors\" size=\"%zu\"/>\n"
            "<system type=\"current\" size=\"%zu\"/>\n"
            "<threads count=\"%zu\"/>\n"
            "</malloc>\n",
            f.used_bytes, f.cached_bytes, f.mapped_bytes - f.used_bytes, f.pages.dirty << CULET_GRANULE_SHIFT,
            f.pages.purged_bytes, f.large.runs, f.large.run_bytes, f.large.huge, f.large.huge_bytes, f.meta_bytes,
            f.mapped_bytes, f.threads);
    return ferror(stream) ? EIO : 0;
}
