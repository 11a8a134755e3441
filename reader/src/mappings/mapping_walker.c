/* The walker that names the mappings that no other walker has named. */
#include "base/text.h"
#include "mappings/stacks.h"
#include "process/mapping_names.h"
#include "walker.h"

/* ---- files ---- */

static bool is_shared_memory(const char *path)
{
    return culet_starts_with(path, "/memfd:") || culet_starts_with(path, "/dev/zero") ||
           culet_starts_with(path, "/dev/shm/") || culet_starts_with(path, "/SYSV") ||
           culet_starts_with(path, "anon_inode:");
}

/* The end of the adjacent mappings of one file from number `from` on. The file is a library if one of them is
 * executable. */
static size_t file_end(const struct culet_reading *reading, size_t from, bool *is_library)
{
    const struct culet_mapping *all = reading->maps.all;
    size_t to = from;

    *is_library = strstr(all[from].path, ".so") || strcmp(all[from].path, reading->program) == 0;
    for (; to < reading->maps.count && strcmp(all[to].path, all[from].path) == 0; to++)
        *is_library |= all[to].perms[2] == 'x';
    return to;
}

static void name_file(struct culet_mapping *mapping, bool is_library)
{
    if (is_shared_memory(mapping->path))
        culet_mapping_name(mapping, "file", "shared memory: %s", mapping->path);
    else
        culet_mapping_name(mapping, is_library ? "library" : "file", "%s", culet_mapping_base(mapping->path));
}

static void name_files(struct culet_reading *reading)
{
    bool is_library;

    for (size_t from = 0, to; from < reading->maps.count; from = to) {
        to = file_end(reading, from, &is_library);
        for (size_t i = from; i < to; i++)
            if (reading->maps.all[i].inode)
                name_file(&reading->maps.all[i], is_library);
    }
}

/* ---- the rest ---- */

/* Zero-initialised data of a library or program follow the mappings of its file. */
static const struct culet_mapping *data_before(const struct culet_reading *reading, const struct culet_mapping *mapping)
{
    const struct culet_mapping *before = mapping->id ? &reading->maps.all[mapping->id - 1] : NULL;

    return before && before->end == mapping->start && before->inode && before->perms[1] == 'w' && before->use &&
                   strcmp(before->use, "library") == 0
               ? before
               : NULL;
}

static void name_anonymous(const struct culet_reading *reading, struct culet_mapping *mapping)
{
    const struct culet_mapping *data = data_before(reading, mapping);

    if (mapping->perms[2] == 'x')
        culet_mapping_name(mapping, "jit", "executable memory");
    else if (data && culet_mapping_is_heap_like(mapping))
        culet_mapping_name(mapping, "library", "%s, zero-initialised data", culet_mapping_base(data->path));
    else if (reading->malloc_by_pages && culet_mapping_is_heap_like(mapping))
        culet_mapping_name(mapping, "malloc", "attributed to %s's heap", reading->malloc_by_pages);
    else if (strncmp(mapping->perms, "---", 3) == 0)
        culet_mapping_name(mapping, "other", "reserved, not accessible");
}

/* The label is the NAME of "[anon:NAME]". */
static void name_special(struct culet_mapping *mapping)
{
    const char *use = culet_mapping_special_use(mapping->path);
    size_t length = strlen(mapping->path);

    if (!use)
        return;
    if (strcmp(mapping->path, "[stack]") == 0)
        culet_mapping_name(mapping, use, "main thread");
    else if (culet_starts_with(mapping->path, "[anon:") && length > 7)
        culet_mapping_name(mapping, use, "%.*s", (int)length - 7, mapping->path + 6);
    else
        culet_mapping_name(mapping, use, "%s", mapping->path);
}

/* ---- the walker; its context is the list of threads ---- */

static bool mapping_recognize(struct culet_reading *reading, void *context)
{
    culet_stacks_read(reading, context);
    return true;
}

static void mapping_walk(struct culet_reading *reading, void *context)
{
    name_files(reading);
    culet_stacks_name(reading, context);
    for (size_t i = 0; i < reading->maps.count; i++)
        name_special(&reading->maps.all[i]);
    for (size_t i = 0; i < reading->maps.count; i++)
        if (!reading->maps.all[i].inode)
            name_anonymous(reading, &reading->maps.all[i]);
}

const struct culet_walker culet_mapping_walker = {.name = "mappings",
                                                  .context_bytes = sizeof(struct culet_thread_stacks),
                                                  .without_memory = true,
                                                  .recognize = mapping_recognize,
                                                  .walk = mapping_walk};
