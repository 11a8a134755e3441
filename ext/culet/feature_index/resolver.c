#define _GNU_SOURCE

#include "feature_index/resolver.h"

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

/* A changed folder is read again at once, then after this time, which then doubles up to the maximum. */
#define RETRY_MILLISECONDS 2500
#define MAX_RETRY_MILLISECONDS (1 << 24)

/* Per process: a load path that keeps changing is not worth an index. */
#define MAX_BUILDS 64

/* A larger index is rebuilt from the folders of this load path only. */
#define FULL_BYTES ((size_t)32 << 20)

enum state {
  INDEXED,
  PROBED,  /* not up to date in the index: looked up by stat(2) */
  ABSENT, /* does not exist */
  OPAQUE    /* unknown to the index: the lookup stops here, and Ruby searches the rest */
};

struct entry {
  char *written; /* as in the load path; NULL: opaque */
  char *path;    /* real path; `written` if the folder does not exist */
  enum state state;
  uint32_t root;
  int missing;   /* not in the index, or changed since */
  int changed_below;     /* a subfolder changed */
  uint32_t checked; /* when it was last found unchanged */
  struct culet_stamp stamp;
};

struct culet_resolver {
  char *file;
  char native_extension[16];
  struct culet_index index;
  void *in_memory;         /* memory of an index that was built here, else NULL */
  int file_read;
  struct entry *entries;
  size_t count;
  size_t first_opaque;       /* index of the first opaque entry; count: none */
  size_t probed;
  uint32_t *entry_of_root; /* per root: number of its entry + 1, or 0 */
  uint32_t *checked;    /* per stamp: when it was last found right */
  uint32_t retry;      /* when to read folders again; 0: never */
  uint32_t backoff;   /* milliseconds */
  uint32_t builds;
  char problem[512];
  int problem_reported;
};

struct culet_resolver *
culet_resolver_new(const char *file, const char *native_extension)
{
  struct culet_resolver *resolver = calloc(1, sizeof(*resolver));

  if (resolver == NULL) return NULL;
  strncpy(resolver->native_extension, native_extension, sizeof(resolver->native_extension) - 1);
  if (file != NULL && (resolver->file = strdup(file)) == NULL) {
    free(resolver);
    return NULL;
  }
  return resolver;
}

int
culet_resolver_plain(const char *name, size_t length)
{
  size_t i;

  if (length == 0 || length >= PATH_MAX / 2 || name[0] == '~' || name[length - 1] == '/') return 0;
  for (i = 0; i < length; i++) {
    if (name[i] <= ' ' || name[i] >= 127) return 0;
    if ((i == 0 || name[i - 1] == '/') && (name[i] == '.' || name[i] == '/')) return 0;
  }
  return 1;
}

/* ---- the index ---- */

static void
drop_index(struct culet_resolver *resolver)
{
  if (resolver->in_memory != NULL) free(resolver->in_memory);
  else culet_store_free(&resolver->index);
  resolver->in_memory = NULL;
  memset(&resolver->index, 0, sizeof(resolver->index));
}

/* Takes over an index. in_memory: its memory, or NULL for a file's. Returns 0 without memory. */
static int
take_index(struct culet_resolver *resolver, const struct culet_index *index, void *in_memory)
{
  uint32_t *entry_of_root = calloc(index->header->roots + 1, sizeof(*entry_of_root));
  uint32_t *checked = calloc(index->header->stamps + 1, sizeof(*checked));

  if (entry_of_root == NULL || checked == NULL) {
    free(entry_of_root);
    free(checked);
    return 0;
  }
  drop_index(resolver);
  free(resolver->entry_of_root);
  free(resolver->checked);
  resolver->entry_of_root = entry_of_root;
  resolver->checked = checked;
  resolver->index = *index;
  resolver->in_memory = in_memory;
  return 1;
}

static void
read_index(struct culet_resolver *resolver)
{
  struct culet_index index;

  resolver->file_read = 1;
  if (resolver->file == NULL || culet_store_read(&index, resolver->file, resolver->native_extension) != NULL) return;
  if (!take_index(resolver, &index, NULL)) culet_store_free(&index);
}

/* ---- load path entries ---- */

static void
free_entries(struct culet_resolver *resolver)
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

/* The real path of an entry; sets `state` to ABSENT or PROBED. NULL without memory. */
static char *
real_path(const char *written, enum state *state)
{
  size_t length = strlen(written);
  char *path;

  while (length > 1 && written[length - 1] == '/') length--;
  *state = PROBED;
  if (culet_realpath_is_folder(written, length)) return strndup(written, length);
  if (culet_realpath_is_absent(written)) *state = ABSENT;
  else if ((path = realpath(written, NULL)) != NULL) return path;
  else if (errno == ENOENT || errno == ENOTDIR) *state = ABSENT;
  return strndup(written, length);
}

/* Whether a folder still has its stamp. */
static int
unchanged(const struct culet_index *index, const struct culet_node *node, const char *path, struct culet_stamp *now)
{
  const struct culet_stamp *stamp = culet_index_stamp(index, node);
  struct stat status;

  if (stamp == NULL || stat(path, &status) != 0) return 0;
  culet_stamp_of(now, &status);
  return culet_stamp_same(now, stamp);
}

/* The same for a root and all folders below it. */
static int
unchanged_below(const struct culet_index *index, const struct culet_index_root *root)
{
  struct culet_stamp now;
  const char *path;
  uint32_t i;

  for (i = root->node; i <= root->last_node; i++) {
    const struct culet_node *node = culet_index_node(index, i, &path);

    if (node == NULL || (node->kind >= CULET_NODE_FOLDER && !unchanged(index, node, path, &now))) return 0;
  }
  return 1;
}

/* Sets an entry's state by the index. */
static void
classify(const struct culet_resolver *resolver, struct entry *entry)
{
  const struct culet_index *index = &resolver->index;
  const struct culet_node *node;
  const char *path;

  entry->missing = 0;
  entry->checked = culet_coarse_milliseconds();
  free(entry->path);
  entry->path = entry->written == NULL ? NULL : real_path(entry->written, &entry->state);
  if (entry->path == NULL) entry->state = OPAQUE;
  if (entry->state != PROBED) return;

  entry->missing = 1;
  entry->root = index->base == NULL ? CULET_INDEX_NONE : culet_index_root(index, entry->path, strlen(entry->path));
  if (entry->root == CULET_INDEX_NONE) return;
  node = culet_index_node(index, index->roots[entry->root].node, &path);
  if (node == NULL || !unchanged(index, node, path, &entry->stamp)) return;
  if (entry->changed_below && !unchanged_below(index, &index->roots[entry->root])) return;
  entry->missing = entry->changed_below = 0;
  if (!index->roots[entry->root].unreadable) entry->state = INDEXED;
}

/* Returns how many entries are missing from the index. */
static size_t
classify_all(struct culet_resolver *resolver)
{
  size_t missing = 0, i;

  resolver->probed = 0;
  resolver->first_opaque = resolver->count;
  if (resolver->entry_of_root != NULL) memset(resolver->entry_of_root, 0, resolver->index.header->roots * sizeof(*resolver->entry_of_root));
  for (i = 0; i < resolver->count; i++) {
    struct entry *entry = &resolver->entries[i];

    classify(resolver, entry);
    missing += entry->missing != 0;
    resolver->probed += entry->state == PROBED;
    if (entry->state == OPAQUE && resolver->first_opaque == resolver->count) resolver->first_opaque = i;
    if (entry->state == INDEXED && resolver->entry_of_root[entry->root] == 0) resolver->entry_of_root[entry->root] = (uint32_t)i + 1;
  }
  return missing;
}

static void
retry_later(struct culet_resolver *resolver, uint32_t milliseconds)
{
  if (resolver->retry != 0) return;
  resolver->retry = culet_coarse_milliseconds() + (milliseconds > resolver->backoff ? milliseconds : resolver->backoff);
  if (resolver->retry == 0) resolver->retry = 1;
}

/* The entry's folder has changed since it was read. */
static void
distrust(struct culet_resolver *resolver, struct entry *entry)
{
  entry->state = PROBED;
  resolver->probed++;
  retry_later(resolver, 0);
}

/* ---- building ---- */

static int
is_missing(const struct culet_resolver *resolver, const char *path)
{
  size_t i;

  for (i = 0; i < resolver->count; i++) {
    if (resolver->entries[i].missing && strcmp(resolver->entries[i].path, path) == 0) return 1;
  }
  return 0;
}

/* Copies the roots that need not be read again. */
static void
copy_roots(const struct culet_resolver *resolver, struct culet_builder *builder)
{
  const struct culet_index *index = &resolver->index;
  uint32_t i;

  if (index->base == NULL) return;
  for (i = 0; i < index->header->roots; i++) {
    const char *path;
    const struct culet_node *node = culet_index_node(index, index->roots[i].node, &path);

    if (node == NULL || node->kind != CULET_NODE_ROOT || is_missing(resolver, path)) continue;
    if (resolver->entry_of_root[i] == 0 && (index->bytes > FULL_BYTES || access(path, F_OK) != 0)) continue;
    culet_builder_copy(builder, index, i);
  }
}

/* Reads the missing folders. Returns whether any was added. */
static int
scan_missing(struct culet_resolver *resolver, struct culet_builder *builder)
{
  int found = 0;
  size_t i, j;

  for (i = 0; i < resolver->count; i++) {
    struct entry *entry = &resolver->entries[i];
    enum culet_scanned scanned;

    if (!entry->missing) continue;
    for (j = 0; j < i && !(resolver->entries[j].missing && strcmp(resolver->entries[j].path, entry->path) == 0);) j++;
    if (j < i) continue; /* duplicate entry */
    scanned = culet_scan(builder, entry->path, resolver->native_extension);
    if (scanned == CULET_SCANNED || scanned == CULET_UNREADABLE) found = 1;
    else retry_later(resolver, RETRY_MILLISECONDS);
  }
  return found;
}

static void
record_problem(struct culet_resolver *resolver, int error)
{
  if (resolver->problem[0] != '\0') return;
  snprintf(resolver->problem, sizeof(resolver->problem), "cannot write %s: %s", resolver->file, strerror(error));
}

/* Serializes an index, writes it to its file if allowed, and takes it over. */
static void
finish(struct culet_resolver *resolver, const struct culet_builder *builder, int may_write)
{
  struct culet_index index;
  size_t bytes;
  void *base = culet_builder_finish(builder, &bytes);
  int error;

  if (base == NULL) return;
  if (may_write) {
    error = culet_store_write(resolver->file, base, bytes);
    if (error != 0) record_problem(resolver, error);
    else if (culet_store_read(&index, resolver->file, resolver->native_extension) == NULL) {
      free(base);
      if (!take_index(resolver, &index, NULL)) culet_store_free(&index);
      return;
    }
  }
  if (culet_index_check(&index, base, bytes, resolver->native_extension) != NULL || !take_index(resolver, &index, base)) free(base);
}

/* Reads the missing folders and merges them with the current contents of the file. */
static void
build(struct culet_resolver *resolver)
{
  struct culet_builder *builder;
  int lock = CULET_LOCK_BUSY, error;

  resolver->builds++;
  resolver->retry = 0;
  if (resolver->file != NULL && resolver->problem[0] == '\0') {
    error = culet_store_prepare(resolver->file);
    lock = error != 0 ? CULET_LOCK_REFUSED : culet_store_lock(resolver->file, LOCK_MILLISECONDS);
    if (lock == CULET_LOCK_REFUSED) record_problem(resolver, error != 0 ? error : errno);
    read_index(resolver);
  }
  if (classify_all(resolver) > 0 && (builder = culet_builder_new(resolver->native_extension)) != NULL) {
    copy_roots(resolver, builder);
    if (scan_missing(resolver, builder)) finish(resolver, builder, lock >= 0);
    culet_builder_free(builder);
    classify_all(resolver);
  }
  culet_store_unlock(lock);
}

static void
refresh(struct culet_resolver *resolver)
{
  if (classify_all(resolver) > 0 && resolver->builds < MAX_BUILDS) build(resolver);
}

void
culet_resolver_set_load_path(struct culet_resolver *resolver, const struct culet_load_path_entry *paths, size_t count)
{
  size_t i;

  free_entries(resolver);
  if (!resolver->file_read) read_index(resolver);
  resolver->entries = calloc(count + 1, sizeof(*resolver->entries));
  if (resolver->entries == NULL) return;
  resolver->count = count;
  for (i = 0; i < count; i++) {
    if (paths[i].path != NULL) resolver->entries[i].written = strndup(paths[i].path, paths[i].length);
  }
  refresh(resolver);
}

/* ---- lookup ---- */

/* Whether an entry is unchanged, by its stamp unless it was checked just now. */
static int
entry_unchanged(struct entry *entry, uint32_t time, int now)
{
  struct culet_stamp stamp;
  struct stat status;
  int there;

  if (entry->state != INDEXED && entry->state != ABSENT) return 1;
  if (!now && time - entry->checked < CULET_FRESH_MILLISECONDS) return 1;
  there = stat(entry->path, &status) == 0;
  if (there) culet_stamp_of(&stamp, &status);
  if (entry->state == ABSENT ? there : !there || !culet_stamp_same(&stamp, &entry->stamp)) return 0;
  entry->checked = time;
  return 1;
}

/* Checks all entries up to `last`; later ones cannot come first. Returns whether all are unchanged. */
static int
entries_unchanged(struct culet_resolver *resolver, size_t last, int now)
{
  uint32_t time = culet_coarse_milliseconds();
  int all = 1;
  size_t i;

  for (i = 0; i < resolver->count && i <= last; i++) {
    if (entry_unchanged(&resolver->entries[i], time, now)) continue;
    distrust(resolver, &resolver->entries[i]);
    all = 0;
  }
  return all;
}

/* The entry of a node's root, if it is INDEXED. */
static size_t
entry_of(const struct culet_resolver *resolver, const struct culet_node *node)
{
  uint32_t position = resolver->entry_of_root[node->root];

  return position != 0 && resolver->entries[position - 1].state == INDEXED ? position - 1 : resolver->count;
}

/* The first entry that has the name in the index; sets `path` to its file. */
static size_t
look_up(const struct culet_resolver *resolver, const char *name, size_t length, unsigned kinds, const char **path)
{
  size_t best = resolver->count;
  uint32_t best_kind = CULET_NODE_ROOT;
  const struct culet_node *node;
  struct culet_index_lookup lookup;
  const char *found;

  if (resolver->index.base == NULL) return best;
  culet_index_look_up(&lookup, &resolver->index, name, length);
  while ((node = culet_index_next(&lookup, &found)) != NULL) {
    size_t entry;

    if (node->kind > CULET_NODE_NATIVE || !(kinds & 1u << node->kind)) continue;
    entry = entry_of(resolver, node);
    if (entry < best || (entry == best && entry < resolver->count && node->kind < best_kind)) {
      best = entry;
      best_kind = node->kind;
      *path = found;
    }
  }
  return best;
}

/*
 * Checks the subfolders that the name passes through, of all entries up to `last`. Returns whether all are unchanged.
 */
static int
folders_unchanged(struct culet_resolver *resolver, const char *name, size_t length, size_t last, int now)
{
  uint32_t time = culet_coarse_milliseconds();
  struct culet_stamp seen;
  int all = 1;
  size_t i;

  if (resolver->index.base == NULL) return 1;
  for (i = 1; i < length; i++) {
    const struct culet_node *node;
    struct culet_index_lookup lookup;
    const char *path;

    if (name[i] != '/') continue;
    culet_index_look_up(&lookup, &resolver->index, name, i);
    while ((node = culet_index_next(&lookup, &path)) != NULL) {
      size_t entry;

      if (node->kind != CULET_NODE_FOLDER || (entry = entry_of(resolver, node)) > last || entry == resolver->count) continue;
      if (node->stamp < resolver->index.header->stamps && resolver->checked[node->stamp] != 0 && !now &&
          time - resolver->checked[node->stamp] < CULET_FRESH_MILLISECONDS)
        continue;
      if (unchanged(&resolver->index, node, path, &seen)) {
        resolver->checked[node->stamp] = time;
      } else {
        resolver->entries[entry].changed_below = 1;
        distrust(resolver, &resolver->entries[entry]);
        all = 0;
      }
    }
  }
  return all;
}

/* Whether Ruby would load the file. CULET_UNSURE if that depends on the user, or if it is neither file nor folder. */
static enum culet_answer
check_file(const char *path)
{
  struct stat status;

  if (stat(path, &status) != 0) return errno == ENOENT || errno == ENOTDIR ? CULET_NOWHERE : CULET_UNSURE;
  if (S_ISDIR(status.st_mode)) return CULET_NOWHERE;
  return S_ISREG(status.st_mode) && (status.st_mode & 0444) == 0444 ? CULET_FOUND : CULET_UNSURE;
}

static enum culet_answer
probe_entry(const struct culet_resolver *resolver, const struct entry *entry, const char *name, size_t length, unsigned kinds, char path[PATH_MAX])
{
  static const char ruby[] = ".rb";
  enum culet_answer answer = CULET_NOWHERE;
  uint32_t kind;

  for (kind = CULET_NODE_RUBY; kind <= CULET_NODE_NATIVE && answer == CULET_NOWHERE; kind++) {
    int written;

    if (!(kinds & 1u << kind)) continue;
    written = snprintf(path, PATH_MAX, "%s/%.*s%s", entry->path[1] == '\0' ? "" : entry->path, (int)length, name,
                       kind == CULET_NODE_RUBY ? ruby : resolver->native_extension);
    answer = written < PATH_MAX ? check_file(path) : CULET_UNSURE;
  }
  return answer;
}

static enum culet_answer
search(struct culet_resolver *resolver, const char *name, size_t length, unsigned kinds, int now, char path[PATH_MAX])
{
  const char *found = NULL;
  enum culet_answer answer;
  size_t best, i;

  do best = look_up(resolver, name, length, kinds, &found);
  while (!entries_unchanged(resolver, best, now) || !folders_unchanged(resolver, name, length, best, now));

  for (i = 0; resolver->probed > 0 && i < best; i++) {
    if (i >= resolver->first_opaque) return CULET_UNSURE;
    if (resolver->entries[i].state != PROBED) continue;
    answer = probe_entry(resolver, &resolver->entries[i], name, length, kinds, path);
    if (answer != CULET_NOWHERE) return answer;
  }
  if (resolver->first_opaque < best) return CULET_UNSURE;
  if (best == resolver->count) return CULET_NOWHERE;
  if (strlen(found) >= PATH_MAX) return CULET_UNSURE;
  strcpy(path, found);
  /* If the file has just disappeared or is unreadable, Ruby continues the search. */
  return check_file(path) == CULET_FOUND ? CULET_FOUND : CULET_UNSURE;
}

enum culet_answer
culet_resolver_find(struct culet_resolver *resolver, const char *name, size_t length, unsigned kinds, int now, char path[PATH_MAX])
{
  if (resolver->retry != 0 && (int32_t)(culet_coarse_milliseconds() - resolver->retry) >= 0) {
    resolver->retry = 0;
    resolver->backoff = resolver->backoff == 0 ? RETRY_MILLISECONDS : resolver->backoff < MAX_RETRY_MILLISECONDS ? resolver->backoff * 2 : resolver->backoff;
    refresh(resolver);
  }
  return search(resolver, name, length, kinds, now, path);
}

unsigned
culet_resolver_kinds(const struct culet_resolver *resolver, const char *name, size_t length)
{
  const struct culet_node *node;
  struct culet_index_lookup lookup;
  const char *path;
  unsigned kinds = 0;

  if (resolver->index.base == NULL) return 0;
  culet_index_look_up(&lookup, &resolver->index, name, length);
  while ((node = culet_index_next(&lookup, &path)) != NULL) {
    if (node->kind <= CULET_NODE_NATIVE) kinds |= 1u << node->kind;
  }
  return kinds;
}

const char *
culet_resolver_problem(struct culet_resolver *resolver)
{
  if (resolver->problem[0] == '\0' || resolver->problem_reported) return NULL;
  resolver->problem_reported = 1;
  return resolver->problem;
}

void
culet_resolver_read_stats(const struct culet_resolver *resolver, struct culet_resolver_stats *stats)
{
  memset(stats, 0, sizeof(*stats));
  if (resolver->index.base != NULL) {
    stats->bytes = resolver->index.bytes;
    stats->folders = resolver->index.header->roots;
    stats->files = resolver->index.header->nodes - resolver->index.header->roots;
    stats->shared = resolver->in_memory == NULL;
  }
  stats->probed = (uint32_t)resolver->probed;
  stats->builds = resolver->builds;
}
