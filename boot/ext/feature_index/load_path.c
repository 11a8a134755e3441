#include "feature_index/load_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feature_index/builder.h"
#include "feature_index/realpath_cache.h"
#include "feature_index/scan.h"
#include "feature_index/store.h"

/* Wait for another process to write the index, which takes about 0.1 s. */
#define LOCK_MILLISECONDS 500

/* Per process: a load path that keeps changing is not worth an index. */
#define MAX_BUILDS 64

/* A larger index is rebuilt from the folders of this load path only. */
#define FULL_BYTES ((size_t)32 << 20)

/* ---- the index ---- */

/* Takes over an index, or frees it where there is no memory. */
static void take_index(struct culet_resolver *resolver, struct culet_index *index)
{
    uint32_t *entry_of_root = calloc(index->header->roots + 1, sizeof(*entry_of_root));
    uint32_t *checked = calloc(index->header->stamps + 1, sizeof(*checked));

    if (entry_of_root == NULL || checked == NULL) {
        free(entry_of_root);
        free(checked);
        culet_store_free(index);
        return;
    }
    culet_store_free(&resolver->index);
    free(resolver->entry_of_root);
    free(resolver->checked);
    resolver->entry_of_root = entry_of_root;
    resolver->checked = checked;
    resolver->index = *index;
}

static void read_index(struct culet_resolver *resolver)
{
    struct culet_index index;

    resolver->file_read = 1;
    if (resolver->file == NULL || culet_store_read(&index, resolver->file) != NULL)
        return;
    take_index(resolver, &index);
}

/* ---- load path entries ---- */

static void free_entries(struct culet_resolver *resolver)
{
    size_t i;

    for (i = 0; i < resolver->count; i++) {
        free(resolver->entries[i].written);
        free(resolver->entries[i].path);
    }
    free(resolver->entries);
    resolver->entries = NULL;
    resolver->count = resolver->first_opaque = resolver->probed = 0;
}

/* The real path of an entry; sets `state` to ENTRY_ABSENT or ENTRY_PROBED. NULL without memory. */
static char *real_path(const char *written, enum entry_state *state)
{
    size_t length = strlen(written);
    char *path;

    while (length > 1 && written[length - 1] == '/')
        length--;
    *state = ENTRY_PROBED;
    if (culet_realpath_is_folder(written, length))
        return strndup(written, length);
    if (culet_realpath_is_absent(written))
        *state = ENTRY_ABSENT;
    else if ((path = realpath(written, NULL)) != NULL)
        return path;
    else if (errno == ENOENT || errno == ENOTDIR)
        *state = ENTRY_ABSENT;
    return strndup(written, length);
}

int culet_load_path_folder_unchanged(const struct culet_index *index, const struct culet_node *node, const char *path,
                                     struct culet_stamp *now)
{
    const struct culet_stamp *stamp = culet_index_stamp(index, node);
    struct stat status;

    if (stamp == NULL || stat(path, &status) != 0)
        return 0;
    culet_stamp_of(now, &status);
    return culet_stamp_same(now, stamp);
}

/* Whether a root and all folders below it are unchanged since they were read. */
static int unchanged_below(const struct culet_index *index, const struct culet_index_root *root)
{
    struct culet_stamp now;
    const char *path;
    uint32_t i;

    for (i = root->node; i <= root->last_node; i++) {
        const struct culet_node *node = culet_index_node(index, i, &path);

        if (node == NULL ||
            (node->kind >= CULET_NODE_FOLDER && !culet_load_path_folder_unchanged(index, node, path, &now)))
            return 0;
    }
    return 1;
}

/* Sets an entry's state by the index. */
static void classify(const struct culet_resolver *resolver, struct entry *entry)
{
    const struct culet_index *index = &resolver->index;
    const struct culet_node *node;
    const char *path;

    entry->missing = 0;
    entry->checked = culet_coarse_milliseconds();
    free(entry->path);
    entry->path = entry->written == NULL ? NULL : real_path(entry->written, &entry->state);
    if (entry->path == NULL)
        entry->state = ENTRY_OPAQUE;
    if (entry->state != ENTRY_PROBED)
        return;

    entry->missing = 1;
    entry->root = index->base == NULL ? CULET_INDEX_NONE : culet_index_root(index, entry->path, strlen(entry->path));
    if (entry->root == CULET_INDEX_NONE)
        return;
    node = culet_index_node(index, index->roots[entry->root].node, &path);
    if (node == NULL || !culet_load_path_folder_unchanged(index, node, path, &entry->stamp))
        return;
    if (entry->changed_below && !unchanged_below(index, &index->roots[entry->root]))
        return;
    entry->missing = entry->changed_below = 0;
    if (!index->roots[entry->root].unreadable)
        entry->state = ENTRY_INDEXED;
}

/* Returns how many entries are missing from the index. */
static size_t classify_all(struct culet_resolver *resolver)
{
    size_t missing = 0, i;

    resolver->probed = 0;
    resolver->first_opaque = resolver->count;
    if (resolver->entry_of_root != NULL)
        memset(resolver->entry_of_root, 0, resolver->index.header->roots * sizeof(*resolver->entry_of_root));
    for (i = 0; i < resolver->count; i++) {
        struct entry *entry = &resolver->entries[i];

        classify(resolver, entry);
        missing += entry->missing != 0;
        resolver->probed += entry->state == ENTRY_PROBED;
        if (entry->state == ENTRY_OPAQUE && resolver->first_opaque == resolver->count)
            resolver->first_opaque = i;
        if (entry->state == ENTRY_INDEXED && resolver->entry_of_root[entry->root] == 0)
            resolver->entry_of_root[entry->root] = (uint32_t)i + 1;
    }
    return missing;
}

static void retry_later(struct culet_resolver *resolver, uint32_t milliseconds)
{
    if (resolver->retry != 0)
        return;
    resolver->retry =
        culet_coarse_milliseconds() + (milliseconds > resolver->backoff ? milliseconds : resolver->backoff);
    if (resolver->retry == 0)
        resolver->retry = 1;
}

void culet_load_path_distrust(struct culet_resolver *resolver, struct entry *entry)
{
    entry->state = ENTRY_PROBED;
    resolver->probed++;
    retry_later(resolver, 0);
}

/* ---- building ---- */

static int is_missing(const struct culet_resolver *resolver, const char *path)
{
    size_t i;

    for (i = 0; i < resolver->count; i++) {
        if (resolver->entries[i].missing && strcmp(resolver->entries[i].path, path) == 0)
            return 1;
    }
    return 0;
}

/* Copies the roots that need not be read again. */
static void copy_roots(const struct culet_resolver *resolver, struct culet_builder *builder)
{
    const struct culet_index *index = &resolver->index;
    uint32_t i;

    if (index->base == NULL)
        return;
    for (i = 0; i < index->header->roots; i++) {
        const char *path;
        const struct culet_node *node = culet_index_node(index, index->roots[i].node, &path);

        if (node == NULL || node->kind != CULET_NODE_ROOT || is_missing(resolver, path))
            continue;
        if (resolver->entry_of_root[i] == 0 && (index->bytes > FULL_BYTES || access(path, F_OK) != 0))
            continue;
        culet_builder_copy(builder, index, i);
    }
}

/* Reads the missing folders. Returns whether any was added. */
static int scan_missing(struct culet_resolver *resolver, struct culet_builder *builder)
{
    int found = 0;
    size_t i, j;

    for (i = 0; i < resolver->count; i++) {
        struct entry *entry = &resolver->entries[i];
        enum culet_scanned scanned;

        if (!entry->missing)
            continue;
        for (j = 0; j < i && !(resolver->entries[j].missing && strcmp(resolver->entries[j].path, entry->path) == 0);)
            j++;
        if (j < i)
            continue; /* duplicate entry */
        scanned = culet_scan(builder, entry->path);
        if (scanned == CULET_SCANNED || scanned == CULET_UNREADABLE)
            found = 1;
        else
            retry_later(resolver, CULET_LOAD_PATH_RETRY_MS);
    }
    return found;
}

static void record_problem(struct culet_resolver *resolver, int error)
{
    if (resolver->problem[0] != '\0')
        return;
    snprintf(resolver->problem, sizeof(resolver->problem), "cannot write %s: %s", resolver->file, strerror(error));
}

/* Serializes an index, writes it to its file if allowed, and takes it over. */
static void finish(struct culet_resolver *resolver, const struct culet_builder *builder, int may_write)
{
    struct culet_index index;
    size_t bytes;
    void *base = culet_builder_finish(builder, &bytes);
    int error;

    if (base == NULL)
        return;
    if (may_write) {
        error = culet_store_write(resolver->file, base, bytes);
        if (error != 0)
            record_problem(resolver, error);
        else if (culet_store_read(&index, resolver->file) == NULL) {
            free(base);
            take_index(resolver, &index);
            return;
        }
    }
    if (culet_index_check(&index, base, bytes) != NULL) {
        free(base);
        return;
    }
    index.in_memory = 1;
    take_index(resolver, &index);
}

/* Reads the missing folders and merges them with the current contents of the file. */
static void build(struct culet_resolver *resolver)
{
    struct culet_builder *builder;
    int lock = CULET_LOCK_BUSY, error;

    resolver->builds++;
    resolver->retry = 0;
    if (resolver->file != NULL && resolver->problem[0] == '\0') {
        error = culet_store_prepare(resolver->file);
        lock = error != 0 ? CULET_LOCK_REFUSED : culet_store_lock(resolver->file, LOCK_MILLISECONDS);
        if (lock == CULET_LOCK_REFUSED)
            record_problem(resolver, error != 0 ? error : errno);
        read_index(resolver);
    }
    if (classify_all(resolver) > 0 && (builder = culet_builder_new()) != NULL) {
        copy_roots(resolver, builder);
        if (scan_missing(resolver, builder))
            finish(resolver, builder, lock >= 0);
        culet_builder_free(builder);
        classify_all(resolver);
    }
    culet_store_unlock(lock);
}

void culet_load_path_refresh(struct culet_resolver *resolver)
{
    if (classify_all(resolver) > 0 && resolver->builds < MAX_BUILDS)
        build(resolver);
}

void culet_load_path_set(struct culet_resolver *resolver, const struct culet_load_path_entry *paths, size_t count)
{
    size_t i;

    free_entries(resolver);
    if (!resolver->file_read)
        read_index(resolver);
    resolver->entries = calloc(count + 1, sizeof(*resolver->entries));
    if (resolver->entries == NULL)
        return;
    resolver->count = count;
    for (i = 0; i < count; i++) {
        if (paths[i].path != NULL)
            resolver->entries[i].written = strndup(paths[i].path, paths[i].length);
    }
    culet_load_path_refresh(resolver);
}
