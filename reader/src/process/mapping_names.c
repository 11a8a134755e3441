#include "process/mapping_names.h"

#include "base/text.h"

#include <string.h>

const char *culet_mapping_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

const char *culet_mapping_special_use(const char *path)
{
    /* Names given by Ruby from 3.4 on (ruby_annotate_mmap), its collector MMTk (MmapAnnotation), glibc with the tunable
     * glibc.mem.decorate_maps, and the allocators. The first match counts. */
    static const struct {
        const char *part, *use;
    } anonymous[] = {
        {"Ruby:GC:", "ruby"},
        {"mmtk:", "ruby"},
        {"fiber_pool", "fiber"},
        {"jit_reserve_addr", "jit"},
        {"nt_alloc_thread_stack", "stack"},
        {"Ruby:", "other"},
        {"glibc: pthread", "stack"},
        {"glibc: malloc", "malloc"},
        {"glibc: loader malloc", "library"},
        {"jemalloc", "malloc"},
        {"tcmalloc", "malloc"},
        {"mimalloc", "malloc"},
        {"stack_and_tls", "stack"},
        {"JIT", "jit"},
        {"jit", "jit"},
    };

    if (strcmp(path, "[stack]") == 0)
        return "stack";
    if (culet_starts_with(path, "[v") || strcmp(path, "[uprobes]") == 0 || strcmp(path, "[sigpage]") == 0)
        return "kernel";
    if (!culet_starts_with(path, "[anon:"))
        return NULL;
    for (size_t i = 0; i < sizeof anonymous / sizeof *anonymous; i++)
        if (strstr(path, anonymous[i].part))
            return anonymous[i].use;
    return NULL;
}
