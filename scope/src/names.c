/* Names mappings by what the kernel tells of them. */
#include "names.h"

#include "scope.h"
#include "stacks.h"

#include <string.h>

const char *culet_names_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

void culet_names_range(const struct culet_maps *maps, uint64_t from, uint64_t to, const char *use, const char *label)
{
    while (from < to) {
        struct culet_mapping *mapping = culet_maps_at(maps, from);
        if (!mapping)
            return;
        if (label)
            culet_mapping_name(mapping, use, "%s", label);
        else
            culet_mapping_name(mapping, use, NULL);
        from = mapping->end;
    }
}

const char *culet_names_special(const char *path)
{
    /* Ruby's from 3.4 on (ruby_annotate_mmap in its sources) and its collector MMTk's (MmapAnnotation in that one's);
     * glibc's where the tunable glibc.mem.decorate_maps is set; the allocators' by their own sources. */
    static const struct {
        const char *part, *use;
    } anonymous[] = {
        {"Ruby:GC:", "ruby"},         {"mmtk:", "ruby"},
        {"fiber_pool", "fiber"},      {"jit_reserve_addr", "jit"},
        {"nt_alloc_thread_stack", "stack"},
        {"Ruby:", "other"},           {"glibc: pthread", "stack"},
        {"glibc: malloc", "malloc"},  {"glibc: loader malloc", "library"},
        {"jemalloc", "malloc"},       {"tcmalloc", "malloc"},
        {"mimalloc", "malloc"},       {"stack_and_tls", "stack"},
        {"JIT", "jit"},               {"jit", "jit"},
    };

    if (strcmp(path, "[stack]") == 0)
        return "stack";
    if (starts_with(path, "[v") || strcmp(path, "[uprobes]") == 0 || strcmp(path, "[sigpage]") == 0)
        return "kernel";
    if (!starts_with(path, "[anon:"))
        return NULL;
    for (size_t i = 0; i < sizeof anonymous / sizeof *anonymous; i++)
        if (strstr(path, anonymous[i].part))
            return anonymous[i].use;
    return NULL;
}

/* ---- files ---- */

static bool is_shared_memory(const char *path)
{
    return starts_with(path, "/memfd:") || starts_with(path, "/dev/zero") || starts_with(path, "/dev/shm/") ||
           starts_with(path, "/SYSV") || starts_with(path, "anon_inode:");
}

/* Mappings of one file lie side by side; one that is executable makes them all a library's. Where those from number `from`
 * on end. */
static size_t end_of_file(const struct culet_scope *scope, size_t from, bool *is_library)
{
    const struct culet_mapping *all = scope->maps.all;
    size_t to = from;

    *is_library = strstr(all[from].path, ".so") || strcmp(all[from].path, scope->program) == 0;
    for (; to < scope->maps.count && strcmp(all[to].path, all[from].path) == 0; to++)
        *is_library |= all[to].perms[2] == 'x';
    return to;
}

static void name_file(struct culet_mapping *mapping, bool is_library)
{
    if (is_shared_memory(mapping->path))
        culet_mapping_name(mapping, "file", "shared memory: %s", mapping->path);
    else
        culet_mapping_name(mapping, is_library ? "library" : "file", "%s", culet_names_base(mapping->path));
}

static void name_files(struct culet_scope *scope)
{
    bool is_library;

    for (size_t from = 0, to; from < scope->maps.count; from = to) {
        to = end_of_file(scope, from, &is_library);
        for (size_t i = from; i < to; i++)
            if (scope->maps.all[i].inode)
                name_file(&scope->maps.all[i], is_library);
    }
}

/* ---- the rest ---- */

/* Zero-initialised data of a library or program come behind what is read from its file. */
static const struct culet_mapping *data_before(const struct culet_scope *scope, const struct culet_mapping *mapping)
{
    const struct culet_mapping *before = mapping->id ? &scope->maps.all[mapping->id - 1] : NULL;

    return before && before->end == mapping->start && before->inode && before->perms[1] == 'w' && before->use &&
                   strcmp(before->use, "library") == 0
               ? before
               : NULL;
}

static void name_anonymous(const struct culet_scope *scope, struct culet_mapping *mapping)
{
    const struct culet_mapping *data = data_before(scope, mapping);

    if (mapping->perms[2] == 'x')
        culet_mapping_name(mapping, "jit", "executable memory");
    else if (data && culet_mapping_is_heap_like(mapping))
        culet_mapping_name(mapping, "library", "%s, zero-initialised data", culet_names_base(data->path));
    else if (scope->by_pages && culet_mapping_is_heap_like(mapping))
        culet_mapping_name(mapping, "malloc", "taken for %s's heap", scope->by_pages);
    else if (strncmp(mapping->perms, "---", 3) == 0)
        culet_mapping_name(mapping, "other", "reserved, not accessible");
}

/* The bare words of a name such as "[anon:Ruby:fiber_pool_allocate_memory]". */
static void name_special(struct culet_mapping *mapping)
{
    const char *use = culet_names_special(mapping->path);
    size_t length = strlen(mapping->path);

    if (!use)
        return;
    if (strcmp(mapping->path, "[stack]") == 0)
        culet_mapping_name(mapping, use, "main thread");
    else if (starts_with(mapping->path, "[anon:") && length > 7)
        culet_mapping_name(mapping, use, "%.*s", (int)length - 7, mapping->path + 6);
    else
        culet_mapping_name(mapping, use, "%s", mapping->path);
}

static bool names_recognise(struct culet_scope *scope)
{
    culet_stacks_read(scope);
    return true;
}

static void names_walk(struct culet_scope *scope)
{
    name_files(scope);
    culet_stacks_name(scope);
    for (size_t i = 0; i < scope->maps.count; i++)
        name_special(&scope->maps.all[i]);
    for (size_t i = 0; i < scope->maps.count; i++)
        if (!scope->maps.all[i].inode)
            name_anonymous(scope, &scope->maps.all[i]);
}

static void names_tell(struct culet_scope *scope)
{
    (void)scope;
    culet_stacks_tell();
}

const struct culet_walker culet_names_walker = {
    .name = "names", .unread = true, .recognise = names_recognise, .walk = names_walk, .tell = names_tell};
