#define _GNU_SOURCE
#include "process/maps.h"

#include "base/search.h"
#include "base/text.h"
#include "process/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES ((size_t)1 << 18)

/* Parses "start-end perms offset device inode      path", the first line of a mapping. */
static bool read_head(struct culet_maps *maps, const char *line)
{
    struct culet_mapping mapping = {0};
    int path = 0;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*x:%*x %" SCNu64 " %n", &mapping.start, &mapping.end,
               mapping.perms, &mapping.offset, &mapping.inode, &path) < 5 ||
        !path)
        return false;
    if (mapping.end <= mapping.start || (maps->count && mapping.start < maps->all[maps->count - 1].end))
        return false;
    mapping.path = strndup(line + path, strcspn(line + path, "\n"));
    mapping.id = (uint32_t)maps->count;
    CULET_APPEND(maps->all, maps->count, maps->room) = mapping;
    return true;
}

/* Parses "Rss:       12 kB", a size of the current mapping. */
static void read_size(struct culet_mapping *mapping, const char *line)
{
    static const struct {
        const char *name;
        size_t at;
    } sizes[] = {
        {"Rss:", offsetof(struct culet_mapping, rss)},
        {"Pss:", offsetof(struct culet_mapping, pss)},
        {"Shared_Clean:", offsetof(struct culet_mapping, shared_clean)},
        {"Shared_Dirty:", offsetof(struct culet_mapping, shared_dirty)},
        {"Private_Clean:", offsetof(struct culet_mapping, private_clean)},
        {"Private_Dirty:", offsetof(struct culet_mapping, private_dirty)},
        {"Swap:", offsetof(struct culet_mapping, swap)},
    };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (culet_starts_with(line, sizes[i].name))
            *(uint64_t *)((char *)mapping + sizes[i].at) = strtoull(line + strlen(sizes[i].name), NULL, 10) << 10;
}

static void add_up(struct culet_maps *maps)
{
    for (size_t i = 0; i < maps->count; i++) {
        const struct culet_mapping *mapping = &maps->all[i];
        maps->rss += mapping->rss;
        maps->pss += mapping->pss;
        maps->shared += mapping->shared_clean + mapping->shared_dirty;
        maps->private_dirty += mapping->private_dirty;
        maps->swap += mapping->swap;
    }
}

bool culet_maps_read(struct culet_maps *maps, pid_t pid, bool sized)
{
    FILE *file = fopen(culet_proc_path("/proc/%d/%s", (int)pid, sized ? "smaps" : "maps").text, "re");
    char *line = NULL;
    size_t room = 0;

    if (!file)
        return false;
    /* Large: a read returns whole mappings only. */
    char *buffer = culet_new(READ_BYTES, 1);
    setvbuf(file, buffer, _IOFBF, READ_BYTES);
    *maps = (struct culet_maps){.sized = sized};
    errno = 0;
    while (getline(&line, &room, file) > 0)
        /* Sizes have capitalized names; addresses are in lowercase. */
        if (line[0] < 'A' || line[0] > 'Z')
            read_head(maps, line);
        else if (sized && maps->count)
            read_size(&maps->all[maps->count - 1], line);
    int failed = ferror(file) ? errno ? errno : EIO : 0;
    free(line);
    fclose(file);
    free(buffer);
    add_up(maps);
    errno = failed;
    return !failed;
}

struct culet_mapping *culet_maps_at(const struct culet_maps *maps, uint64_t address)
{
    size_t at = CULET_FIRST_WHERE(i, 0, maps->count, maps->all[i].end > address);

    return at < maps->count && maps->all[at].start <= address ? &maps->all[at] : NULL;
}

bool culet_mapping_is_heap_like(const struct culet_mapping *mapping)
{
    return strncmp(mapping->perms, "rw-p", 4) == 0 && !mapping->inode &&
           (!*mapping->path || strcmp(mapping->path, "[heap]") == 0 || strncmp(mapping->path, "[anon:", 6) == 0);
}

void culet_mapping_name(struct culet_mapping *mapping, const char *use, const char *label, ...)
{
    va_list arguments;

    if (mapping->use)
        return;
    mapping->use = use;
    if (!label)
        return;
    va_start(arguments, label);
    if (vasprintf(&mapping->label, label, arguments) < 0)
        mapping->label = NULL;
    va_end(arguments);
}

void culet_maps_name_range(const struct culet_maps *maps, uint64_t from, uint64_t to, const char *use,
                           const char *label)
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

void culet_maps_free(struct culet_maps *maps)
{
    for (size_t i = 0; i < maps->count; i++) {
        free(maps->all[i].path);
        free(maps->all[i].label);
        culet_buffer_free(&maps->all[i].pages);
    }
    free(maps->all);
    *maps = (struct culet_maps){0};
}
