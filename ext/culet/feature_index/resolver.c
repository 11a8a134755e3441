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

/* For another process that is writing the index: that takes it a tenth of a second. */
#define LOCK_MILLISECONDS 500

/* A folder that changed is read again at once, then after so long, then after ever twice as long; a young one when it
 * has grown older. */
#define RETRY_MILLISECONDS 2500
#define LONGEST_MILLISECONDS (1 << 24)

/* No process reads folders more often: a load path that never comes to rest is none to keep an index of. */
#define MOST_BUILDS 64

/* An index beyond this is begun anew with the folders of this load path. */
#define FULL_BYTES ((size_t)32 << 20)

enum state {
  INDEXED,
  ASKED,  /* the index is not sure of it: the folder is asked */
  ABSENT, /* there is no such folder */
  WALL    /* none that the index knows: what comes behind it is Ruby's to tell */
};

struct place {
  char *written; /* as in the load path; NULL: a wall */
  char *path;    /* its real path; as written, where it is absent */
  enum state state;
  uint32_t root;
  int missing;   /* from the index, or changed since */
  int below;     /* a folder below it was not as the index has it */
  uint32_t looked; /* when it was found to be as the index has it */
  struct culet_stamp stamp;
};

struct culet_finder {
  char *file;
  char flavour[16];
  struct culet_image image;
  void *own;         /* the image, where it is in memory */
  int tried_file;
  struct place *places;
  size_t count;
  size_t wall;       /* the first one; count: none */
  size_t asked;
  uint32_t *positions; /* of the roots: place + 1, or 0 */
  uint32_t *looked;    /* when each stamp was found to be right */
  uint32_t retry;      /* when to read folders again; 0: no need */
  uint32_t patience;   /* milliseconds */
  uint32_t builds;
  char problem[512];
  int told; /* whether the problem has been */
};

struct culet_finder *
culet_finder_new(const char *file, const char *flavour)
{
  struct culet_finder *finder = calloc(1, sizeof(*finder));

  if (finder == NULL) return NULL;
  strncpy(finder->flavour, flavour, sizeof(finder->flavour) - 1);
  if (file != NULL && (finder->file = strdup(file)) == NULL) {
    free(finder);
    return NULL;
  }
  return finder;
}

int
culet_finder_plain(const char *name, size_t length)
{
  size_t i;

  if (length == 0 || length >= PATH_MAX / 2 || name[0] == '~' || name[length - 1] == '/') return 0;
  for (i = 0; i < length; i++) {
    if (name[i] <= ' ' || name[i] >= 127) return 0;
    if ((i == 0 || name[i - 1] == '/') && (name[i] == '.' || name[i] == '/')) return 0;
  }
  return 1;
}

/* ------------------------------------------------------------------ the image */

static void
drop_image(struct culet_finder *finder)
{
  if (finder->own != NULL) free(finder->own);
  else culet_store_free(&finder->image);
  finder->own = NULL;
  memset(&finder->image, 0, sizeof(finder->image));
}

/* Takes an image over; `own` is its memory, or NULL where it was read from its file. Returns 0 where memory is short. */
static int
take_image(struct culet_finder *finder, const struct culet_image *image, void *own)
{
  uint32_t *positions = calloc(image->header->roots + 1, sizeof(*positions));
  uint32_t *looked = calloc(image->header->stamps + 1, sizeof(*looked));

  if (positions == NULL || looked == NULL) {
    free(positions);
    free(looked);
    return 0;
  }
  drop_image(finder);
  free(finder->positions);
  free(finder->looked);
  finder->positions = positions;
  finder->looked = looked;
  finder->image = *image;
  finder->own = own;
  return 1;
}

static void
map_image(struct culet_finder *finder)
{
  struct culet_image image;

  finder->tried_file = 1;
  if (finder->file == NULL || culet_store_read(&image, finder->file, finder->flavour) != NULL) return;
  if (!take_image(finder, &image, NULL)) culet_store_free(&image);
}

/* ------------------------------------------------------------------ the places */

static void
free_places(struct culet_finder *finder)
{
  size_t i;

  for (i = 0; i < finder->count; i++) {
    free(finder->places[i].written);
    free(finder->places[i].path);
  }
  free(finder->places);
  finder->places = NULL;
  finder->count = finder->wall = finder->asked = 0;
}

/* What is written, by its real path; says in `state` what that is. NULL where memory is short. */
static char *
real_path(const char *written, enum state *state)
{
  size_t length = strlen(written);
  char *path;

  while (length > 1 && written[length - 1] == '/') length--;
  *state = ASKED;
  if (culet_real_folder(written, length)) return strndup(written, length);
  if (culet_real_absent(written)) *state = ABSENT;
  else if ((path = realpath(written, NULL)) != NULL) return path;
  else if (errno == ENOENT || errno == ENOTDIR) *state = ABSENT;
  return strndup(written, length);
}

/* Whether a folder of an index still is what it was. */
static int
unchanged(const struct culet_image *image, const struct culet_node *node, const char *path, struct culet_stamp *now)
{
  const struct culet_stamp *stamp = culet_image_stamp(image, node);
  struct stat status;

  if (stamp == NULL || stat(path, &status) != 0) return 0;
  culet_stamp_of(now, &status);
  return culet_stamp_same(now, stamp);
}

/* The same for all folders below a root. */
static int
unchanged_below(const struct culet_image *image, const struct culet_image_root *root)
{
  struct culet_stamp now;
  const char *path;
  uint32_t i;

  for (i = root->node; i <= root->last_node; i++) {
    const struct culet_node *node = culet_image_node(image, i, &path);

    if (node == NULL || (node->kind >= CULET_NODE_FOLDER && !unchanged(image, node, path, &now))) return 0;
  }
  return 1;
}

/* Looks a place up in the index. */
static void
settle(const struct culet_finder *finder, struct place *place)
{
  const struct culet_image *image = &finder->image;
  const struct culet_node *node;
  const char *path;

  place->missing = 0;
  place->looked = culet_real_now();
  free(place->path);
  place->path = place->written == NULL ? NULL : real_path(place->written, &place->state);
  if (place->path == NULL) place->state = WALL;
  if (place->state != ASKED) return;

  place->missing = 1;
  place->root = image->base == NULL ? CULET_IMAGE_NONE : culet_image_root(image, place->path, strlen(place->path));
  if (place->root == CULET_IMAGE_NONE) return;
  node = culet_image_node(image, image->roots[place->root].node, &path);
  if (node == NULL || !unchanged(image, node, path, &place->stamp)) return;
  if (place->below && !unchanged_below(image, &image->roots[place->root])) return;
  place->missing = place->below = 0;
  if (!image->roots[place->root].unreadable) place->state = INDEXED;
}

/* Looks all of them up. Returns how many are missing from the index. */
static size_t
arrange(struct culet_finder *finder)
{
  size_t missing = 0, i;

  finder->asked = 0;
  finder->wall = finder->count;
  if (finder->positions != NULL) memset(finder->positions, 0, finder->image.header->roots * sizeof(*finder->positions));
  for (i = 0; i < finder->count; i++) {
    struct place *place = &finder->places[i];

    settle(finder, place);
    missing += place->missing != 0;
    finder->asked += place->state == ASKED;
    if (place->state == WALL && finder->wall == finder->count) finder->wall = i;
    if (place->state == INDEXED && finder->positions[place->root] == 0) finder->positions[place->root] = (uint32_t)i + 1;
  }
  return missing;
}

static void
retry_later(struct culet_finder *finder, uint32_t milliseconds)
{
  if (finder->retry != 0) return;
  finder->retry = culet_real_now() + (milliseconds > finder->patience ? milliseconds : finder->patience);
  if (finder->retry == 0) finder->retry = 1;
}

/* The index is not sure of a place any more. */
static void
doubt(struct culet_finder *finder, struct place *place)
{
  place->state = ASKED;
  finder->asked++;
  retry_later(finder, 0);
}

/* ------------------------------------------------------------------ building */

static int
is_missing(const struct culet_finder *finder, const char *path)
{
  size_t i;

  for (i = 0; i < finder->count; i++) {
    if (finder->places[i].missing && strcmp(finder->places[i].path, path) == 0) return 1;
  }
  return 0;
}

/* Copies what the index has and is not to be read anew. */
static void
copy_roots(const struct culet_finder *finder, struct culet_builder *builder)
{
  const struct culet_image *image = &finder->image;
  uint32_t i;

  if (image->base == NULL) return;
  for (i = 0; i < image->header->roots; i++) {
    const char *path;
    const struct culet_node *node = culet_image_node(image, image->roots[i].node, &path);

    if (node == NULL || node->kind != CULET_NODE_ROOT || is_missing(finder, path)) continue;
    if (finder->positions[i] == 0 && (image->bytes > FULL_BYTES || access(path, F_OK) != 0)) continue;
    culet_builder_copy(builder, image, i);
  }
}

/* Reads the missing folders. Returns whether any came in. */
static int
scan_missing(struct culet_finder *finder, struct culet_builder *builder)
{
  int found = 0;
  size_t i, j;

  for (i = 0; i < finder->count; i++) {
    struct place *place = &finder->places[i];
    enum culet_scanned scanned;

    if (!place->missing) continue;
    for (j = 0; j < i && !(finder->places[j].missing && strcmp(finder->places[j].path, place->path) == 0);) j++;
    if (j < i) continue; /* it is there twice */
    scanned = culet_scan(builder, place->path, finder->flavour);
    if (scanned == CULET_SCANNED || scanned == CULET_UNREADABLE) found = 1;
    else retry_later(finder, RETRY_MILLISECONDS);
  }
  return found;
}

static void
complain(struct culet_finder *finder, int error)
{
  if (finder->problem[0] != '\0') return;
  snprintf(finder->problem, sizeof(finder->problem), "cannot write %s: %s", finder->file, strerror(error));
}

/* Finishes an index, keeps it in the file if it may, and takes it over. */
static void
finish(struct culet_finder *finder, const struct culet_builder *builder, int may_write)
{
  struct culet_image image;
  size_t bytes;
  void *base = culet_builder_finish(builder, &bytes);
  int error;

  if (base == NULL) return;
  if (may_write) {
    error = culet_store_write(finder->file, base, bytes);
    if (error != 0) complain(finder, error);
    else if (culet_store_read(&image, finder->file, finder->flavour) == NULL) {
      free(base);
      if (!take_image(finder, &image, NULL)) culet_store_free(&image);
      return;
    }
  }
  if (culet_image_check(&image, base, bytes, finder->flavour) != NULL || !take_image(finder, &image, base)) free(base);
}

/* Reads the folders that are missing, and joins them with what the file has by now. */
static void
build(struct culet_finder *finder)
{
  struct culet_builder *builder;
  int lock = CULET_LOCK_BUSY, error;

  finder->builds++;
  finder->retry = 0;
  if (finder->file != NULL && finder->problem[0] == '\0') {
    error = culet_store_prepare(finder->file);
    lock = error != 0 ? CULET_LOCK_REFUSED : culet_store_lock(finder->file, LOCK_MILLISECONDS);
    if (lock == CULET_LOCK_REFUSED) complain(finder, error != 0 ? error : errno);
    map_image(finder);
  }
  if (arrange(finder) > 0 && (builder = culet_builder_new(finder->flavour)) != NULL) {
    copy_roots(finder, builder);
    if (scan_missing(finder, builder)) finish(finder, builder, lock >= 0);
    culet_builder_free(builder);
    arrange(finder);
  }
  culet_store_unlock(lock);
}

static void
renew(struct culet_finder *finder)
{
  if (arrange(finder) > 0 && finder->builds < MOST_BUILDS) build(finder);
}

void
culet_finder_set(struct culet_finder *finder, const struct culet_entry *entries, size_t count)
{
  size_t i;

  free_places(finder);
  if (!finder->tried_file) map_image(finder);
  finder->places = calloc(count + 1, sizeof(*finder->places));
  if (finder->places == NULL) return;
  finder->count = count;
  for (i = 0; i < count; i++) {
    if (entries[i].path != NULL) finder->places[i].written = strndup(entries[i].path, entries[i].length);
  }
  renew(finder);
}

/* ------------------------------------------------------------------ looking up */

/* Whether a place is as the index has it; looks at it if it has not just now. */
static int
place_unchanged(struct place *place, uint32_t time, int now)
{
  struct culet_stamp stamp;
  struct stat status;
  int there;

  if (place->state != INDEXED && place->state != ABSENT) return 1;
  if (!now && time - place->looked < CULET_FRESH_MILLISECONDS) return 1;
  there = stat(place->path, &status) == 0;
  if (there) culet_stamp_of(&stamp, &status);
  if (place->state == ABSENT ? there : !there || !culet_stamp_same(&stamp, &place->stamp)) return 0;
  place->looked = time;
  return 1;
}

/* Looks at all places up to `last`: those behind it cannot hide what it has. Returns whether all are unchanged. */
static int
places_unchanged(struct culet_finder *finder, size_t last, int now)
{
  uint32_t time = culet_real_now();
  int all = 1;
  size_t i;

  for (i = 0; i < finder->count && i <= last; i++) {
    if (place_unchanged(&finder->places[i], time, now)) continue;
    doubt(finder, &finder->places[i]);
    all = 0;
  }
  return all;
}

/* The place of a node's root, if the index is sure of it. */
static size_t
place_of(const struct culet_finder *finder, const struct culet_node *node)
{
  uint32_t position = finder->positions[node->root];

  return position != 0 && finder->places[position - 1].state == INDEXED ? position - 1 : finder->count;
}

/* The first place that has the name by the index; `path` is then its file. */
static size_t
look_up(const struct culet_finder *finder, const char *name, size_t length, unsigned kinds, const char **path)
{
  size_t best = finder->count;
  uint32_t best_kind = CULET_NODE_ROOT;
  const struct culet_node *node;
  struct culet_walk walk;
  const char *found;

  if (finder->image.base == NULL) return best;
  culet_image_walk(&walk, &finder->image, name, length);
  while ((node = culet_image_next(&walk, &found)) != NULL) {
    size_t place;

    if (node->kind > CULET_NODE_NATIVE || !(kinds & 1u << node->kind)) continue;
    place = place_of(finder, node);
    if (place < best || (place == best && place < finder->count && node->kind < best_kind)) {
      best = place;
      best_kind = node->kind;
      *path = found;
    }
  }
  return best;
}

/* Looks at the folders that the name leads through, of all places up to `last`. Returns whether all are unchanged. */
static int
folders_unchanged(struct culet_finder *finder, const char *name, size_t length, size_t last, int now)
{
  uint32_t time = culet_real_now();
  struct culet_stamp seen;
  int all = 1;
  size_t i;

  if (finder->image.base == NULL) return 1;
  for (i = 1; i < length; i++) {
    const struct culet_node *node;
    struct culet_walk walk;
    const char *path;

    if (name[i] != '/') continue;
    culet_image_walk(&walk, &finder->image, name, i);
    while ((node = culet_image_next(&walk, &path)) != NULL) {
      size_t place;

      if (node->kind != CULET_NODE_FOLDER || (place = place_of(finder, node)) > last || place == finder->count) continue;
      if (node->stamp < finder->image.header->stamps && finder->looked[node->stamp] != 0 && !now &&
          time - finder->looked[node->stamp] < CULET_FRESH_MILLISECONDS)
        continue;
      if (unchanged(&finder->image, node, path, &seen)) {
        finder->looked[node->stamp] = time;
      } else {
        finder->places[place].below = 1;
        doubt(finder, &finder->places[place]);
        all = 0;
      }
    }
  }
  return all;
}

/* Whether Ruby would take a file: CULET_UNSURE where it depends on who asks, or it is neither file nor folder. */
static enum culet_answer
would_load(const char *path)
{
  struct stat status;

  if (stat(path, &status) != 0) return errno == ENOENT || errno == ENOTDIR ? CULET_NOWHERE : CULET_UNSURE;
  if (S_ISDIR(status.st_mode)) return CULET_NOWHERE;
  return S_ISREG(status.st_mode) && (status.st_mode & 0444) == 0444 ? CULET_FOUND : CULET_UNSURE;
}

static enum culet_answer
ask_place(const struct culet_finder *finder, const struct place *place, const char *name, size_t length, unsigned kinds, char path[PATH_MAX])
{
  static const char ruby[] = ".rb";
  enum culet_answer answer = CULET_NOWHERE;
  uint32_t kind;

  for (kind = CULET_NODE_RUBY; kind <= CULET_NODE_NATIVE && answer == CULET_NOWHERE; kind++) {
    int written;

    if (!(kinds & 1u << kind)) continue;
    written = snprintf(path, PATH_MAX, "%s/%.*s%s", place->path[1] == '\0' ? "" : place->path, (int)length, name,
                       kind == CULET_NODE_RUBY ? ruby : finder->flavour);
    answer = written < PATH_MAX ? would_load(path) : CULET_UNSURE;
  }
  return answer;
}

static enum culet_answer
search(struct culet_finder *finder, const char *name, size_t length, unsigned kinds, int now, char path[PATH_MAX])
{
  const char *found = NULL;
  enum culet_answer answer;
  size_t best, i;

  do best = look_up(finder, name, length, kinds, &found);
  while (!places_unchanged(finder, best, now) || !folders_unchanged(finder, name, length, best, now));

  for (i = 0; finder->asked > 0 && i < best; i++) {
    if (i >= finder->wall) return CULET_UNSURE;
    if (finder->places[i].state != ASKED) continue;
    answer = ask_place(finder, &finder->places[i], name, length, kinds, path);
    if (answer != CULET_NOWHERE) return answer;
  }
  if (finder->wall < best) return CULET_UNSURE;
  if (best == finder->count) return CULET_NOWHERE;
  if (strlen(found) >= PATH_MAX) return CULET_UNSURE;
  strcpy(path, found);
  /* Gone in this very moment, or not readable: Ruby will go on searching. */
  return would_load(path) == CULET_FOUND ? CULET_FOUND : CULET_UNSURE;
}

enum culet_answer
culet_finder_find(struct culet_finder *finder, const char *name, size_t length, unsigned kinds, int now, char path[PATH_MAX])
{
  if (finder->retry != 0 && (int32_t)(culet_real_now() - finder->retry) >= 0) {
    finder->retry = 0;
    finder->patience = finder->patience == 0 ? RETRY_MILLISECONDS : finder->patience < LONGEST_MILLISECONDS ? finder->patience * 2 : finder->patience;
    renew(finder);
  }
  return search(finder, name, length, kinds, now, path);
}

unsigned
culet_finder_kinds(const struct culet_finder *finder, const char *name, size_t length)
{
  const struct culet_node *node;
  struct culet_walk walk;
  const char *path;
  unsigned kinds = 0;

  if (finder->image.base == NULL) return 0;
  culet_image_walk(&walk, &finder->image, name, length);
  while ((node = culet_image_next(&walk, &path)) != NULL) {
    if (node->kind <= CULET_NODE_NATIVE) kinds |= 1u << node->kind;
  }
  return kinds;
}

const char *
culet_finder_problem(struct culet_finder *finder)
{
  if (finder->problem[0] == '\0' || finder->told) return NULL;
  finder->told = 1;
  return finder->problem;
}

void
culet_finder_tell(const struct culet_finder *finder, struct culet_finder_figures *figures)
{
  memset(figures, 0, sizeof(*figures));
  if (finder->image.base != NULL) {
    figures->bytes = finder->image.bytes;
    figures->folders = finder->image.header->roots;
    figures->files = finder->image.header->nodes - finder->image.header->roots;
    figures->shared = finder->own == NULL;
  }
  figures->asked = (uint32_t)finder->asked;
  figures->builds = finder->builds;
}
