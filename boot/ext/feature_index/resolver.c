#include "feature_index/resolver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature_index/load_path.h"
#include "feature_index/realpath_cache.h"

struct culet_resolver *culet_resolver_new(const char *file)
{
    struct culet_resolver *resolver = calloc(1, sizeof(*resolver));

    if (resolver == NULL)
        return NULL;
    if (file != NULL && (resolver->file = strdup(file)) == NULL) {
        free(resolver);
        return NULL;
    }
    return resolver;
}

int culet_resolver_plain(const char *name, size_t length)
{
    size_t i;

    if (length == 0 || length >= PATH_MAX / 2 || name[0] == '~' || name[length - 1] == '/')
        return 0;
    for (i = 0; i < length; i++) {
        if (name[i] <= ' ' || name[i] >= 127)
            return 0;
        if ((i == 0 || name[i - 1] == '/') && (name[i] == '.' || name[i] == '/'))
            return 0;
    }
    return 1;
}

/* ---- lookup ---- */

/* Whether an entry is unchanged, by its stamp unless it was checked just now. */
static int entry_unchanged(struct entry *entry, uint32_t time, int now)
{
    struct culet_stamp stamp;
    struct stat status;
    int there;

    if (entry->state != ENTRY_INDEXED && entry->state != ENTRY_ABSENT)
        return 1;
    if (!now && time - entry->checked < CULET_FRESH_MILLISECONDS)
        return 1;
    there = stat(entry->path, &status) == 0;
    if (there)
        culet_stamp_of(&stamp, &status);
    if (entry->state == ENTRY_ABSENT ? there : !there || !culet_stamp_same(&stamp, &entry->stamp))
        return 0;
    entry->checked = time;
    return 1;
}

/* Checks all entries up to `last`; later ones cannot come first. Returns whether all are unchanged. */
static int entries_unchanged(struct culet_resolver *resolver, size_t last, int now)
{
    uint32_t time = culet_coarse_milliseconds();
    int all = 1;
    size_t i;

    for (i = 0; i < resolver->count && i <= last; i++) {
        if (entry_unchanged(&resolver->entries[i], time, now))
            continue;
        culet_load_path_distrust(resolver, &resolver->entries[i]);
        all = 0;
    }
    return all;
}

/* The entry of a node's root, if it is ENTRY_INDEXED. */
static size_t entry_of(const struct culet_resolver *resolver, const struct culet_node *node)
{
    uint32_t position = resolver->entry_of_root[node->root];

    return position != 0 && resolver->entries[position - 1].state == ENTRY_INDEXED ? position - 1 : resolver->count;
}

/* The first entry that has the name in the index; sets `path` to its file. */
static size_t look_up(const struct culet_resolver *resolver, const char *name, size_t length, unsigned kinds,
                      const char **path)
{
    size_t best = resolver->count;
    uint32_t best_kind = CULET_NODE_ROOT;
    const struct culet_node *node;
    struct culet_index_lookup lookup;
    const char *found;

    if (resolver->index.base == NULL)
        return best;
    culet_index_look_up(&lookup, &resolver->index, name, length);
    while ((node = culet_index_next(&lookup, &found)) != NULL) {
        size_t entry;

        if (node->kind > CULET_NODE_NATIVE || !(kinds & 1u << node->kind))
            continue;
        entry = entry_of(resolver, node);
        if (entry < best || (entry == best && entry < resolver->count && node->kind < best_kind)) {
            best = entry;
            best_kind = node->kind;
            *path = found;
        }
    }
    return best;
}

/* Checks the subfolders that the name passes through, of all entries up to `last`. Returns whether all are
 * unchanged. */
static int folders_unchanged(struct culet_resolver *resolver, const char *name, size_t length, size_t last, int now)
{
    uint32_t time = culet_coarse_milliseconds();
    struct culet_stamp seen;
    int all = 1;
    size_t i;

    if (resolver->index.base == NULL)
        return 1;
    for (i = 1; i < length; i++) {
        const struct culet_node *node;
        struct culet_index_lookup lookup;
        const char *path;

        if (name[i] != '/')
            continue;
        culet_index_look_up(&lookup, &resolver->index, name, i);
        while ((node = culet_index_next(&lookup, &path)) != NULL) {
            size_t entry;

            if (node->kind != CULET_NODE_FOLDER || (entry = entry_of(resolver, node)) > last ||
                entry == resolver->count)
                continue;
            if (node->stamp < resolver->index.header->stamps && resolver->checked[node->stamp] != 0 && !now &&
                time - resolver->checked[node->stamp] < CULET_FRESH_MILLISECONDS)
                continue;
            if (culet_load_path_folder_unchanged(&resolver->index, node, path, &seen)) {
                resolver->checked[node->stamp] = time;
            } else {
                resolver->entries[entry].changed_below = 1;
                culet_load_path_distrust(resolver, &resolver->entries[entry]);
                all = 0;
            }
        }
    }
    return all;
}

/* Whether Ruby would load the file. CULET_UNSURE if that depends on the user, or if it is neither file nor folder. */
static enum culet_answer check_file(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return errno == ENOENT || errno == ENOTDIR ? CULET_NOWHERE : CULET_UNSURE;
    if (S_ISDIR(status.st_mode))
        return CULET_NOWHERE;
    return S_ISREG(status.st_mode) && (status.st_mode & 0444) == 0444 ? CULET_FOUND : CULET_UNSURE;
}

static enum culet_answer probe_entry(const struct entry *entry, const char *name, size_t length, unsigned kinds,
                                     char path[PATH_MAX])
{
    enum culet_answer answer = CULET_NOWHERE;
    uint32_t kind;

    for (kind = CULET_NODE_RUBY; kind <= CULET_NODE_NATIVE && answer == CULET_NOWHERE; kind++) {
        int written;

        if (!(kinds & 1u << kind))
            continue;
        written = snprintf(path, PATH_MAX, "%s/%.*s%s", entry->path[1] == '\0' ? "" : entry->path, (int)length, name,
                           kind == CULET_NODE_RUBY ? ".rb" : CULET_NATIVE_EXTENSION);
        answer = written < PATH_MAX ? check_file(path) : CULET_UNSURE;
    }
    return answer;
}

static enum culet_answer search(struct culet_resolver *resolver, const char *name, size_t length, unsigned kinds,
                                int now, char path[PATH_MAX])
{
    const char *found = NULL;
    enum culet_answer answer;
    size_t best, i;

    do
        best = look_up(resolver, name, length, kinds, &found);
    while (!entries_unchanged(resolver, best, now) || !folders_unchanged(resolver, name, length, best, now));

    for (i = 0; resolver->probed > 0 && i < best; i++) {
        if (i >= resolver->first_opaque)
            return CULET_UNSURE;
        if (resolver->entries[i].state != ENTRY_PROBED)
            continue;
        answer = probe_entry(&resolver->entries[i], name, length, kinds, path);
        if (answer != CULET_NOWHERE)
            return answer;
    }
    if (resolver->first_opaque < best)
        return CULET_UNSURE;
    if (best == resolver->count)
        return CULET_NOWHERE;
    if (strlen(found) >= PATH_MAX)
        return CULET_UNSURE;
    strcpy(path, found);
    /* If the file has just disappeared or is unreadable, Ruby continues the search. */
    return check_file(path) == CULET_FOUND ? CULET_FOUND : CULET_UNSURE;
}

enum culet_answer culet_resolver_find(struct culet_resolver *resolver, const char *name, size_t length, unsigned kinds,
                                      int now, char path[PATH_MAX])
{
    if (resolver->retry != 0 && (int32_t)(culet_coarse_milliseconds() - resolver->retry) >= 0) {
        resolver->retry = 0;
        resolver->backoff = resolver->backoff == 0                             ? CULET_LOAD_PATH_RETRY_MS
                            : resolver->backoff < CULET_LOAD_PATH_MAX_RETRY_MS ? resolver->backoff * 2
                                                                               : resolver->backoff;
        culet_load_path_refresh(resolver);
    }
    return search(resolver, name, length, kinds, now, path);
}

unsigned culet_resolver_kinds(const struct culet_resolver *resolver, const char *name, size_t length)
{
    const struct culet_node *node;
    struct culet_index_lookup lookup;
    const char *path;
    unsigned kinds = 0;

    if (resolver->index.base == NULL)
        return 0;
    culet_index_look_up(&lookup, &resolver->index, name, length);
    while ((node = culet_index_next(&lookup, &path)) != NULL) {
        if (node->kind <= CULET_NODE_NATIVE)
            kinds |= 1u << node->kind;
    }
    return kinds;
}

const char *culet_resolver_problem(struct culet_resolver *resolver)
{
    if (resolver->problem[0] == '\0' || resolver->problem_reported)
        return NULL;
    resolver->problem_reported = 1;
    return resolver->problem;
}
