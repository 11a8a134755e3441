#include "feature_index/scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A folder with more entries is no library, but perhaps an application with its uploads. It is probed, not indexed. */
#define MAX_ENTRIES 50000

/* deeper than any library; ends loops of links */
#define MAX_LEVELS 32

/* Folder times are those of the kernel's last tick, up to 10 ms old, and on some file systems (ext3, network) have a
 * resolution of 1 or 2 s. A folder changed more recently may change again and keep its time. */
#define RECENT_SECONDS 2

struct scan {
    struct culet_builder *builder;
    uint32_t root;
    time_t now;
    unsigned entries;
    size_t length; /* of the path */
    char path[PATH_MAX];
};

static int is_too_recent(const struct scan *scan, const struct culet_stamp *stamp)
{
    return stamp->modified_seconds + RECENT_SECONDS >= scan->now ||
           stamp->changed_seconds + RECENT_SECONDS >= scan->now;
}

static enum culet_scanned scan_folder(struct scan *scan, int folder, const struct culet_stamp *stamp, unsigned level);

#define DANGLING (-1)

/* The type of an entry, through links: DT_REG, DT_DIR, another type, or DANGLING for a link to nothing. */
static int type_of(int folder, const struct dirent *entry)
{
    struct stat status;

    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return entry->d_type;
    if (fstatat(folder, entry->d_name, &status, 0) != 0)
        return DANGLING;
    return S_ISREG(status.st_mode) ? DT_REG : S_ISDIR(status.st_mode) ? DT_DIR : DT_FIFO;
}

/* Opens a folder and takes its stamp. Returns a descriptor, or -1. */
static int open_folder(int parent, const char *name, struct culet_stamp *stamp)
{
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat status;

    if (folder < 0)
        return -1;
    if (fstat(folder, &status) != 0) {
        close(folder);
        return -1;
    }
    culet_stamp_of(stamp, &status);
    return folder;
}

static enum culet_scanned scan_below(struct scan *scan, int folder, const char *name, unsigned level)
{
    struct culet_stamp stamp;
    int below = open_folder(folder, name, &stamp);

    if (below < 0)
        return CULET_UNREADABLE;
    if (culet_builder_add(scan->builder, scan->root, scan->path, scan->length, CULET_NODE_FOLDER, &stamp))
        return scan_folder(scan, below, &stamp, level);
    close(below);
    return CULET_NO_MEMORY;
}

/* The target of a dangling link may be created without any folder's time changing. A file is checked before it is
 * loaded; a folder gets a stamp that never matches. */
static int add_dangling(const struct scan *scan, int ruby, int native)
{
    static const struct culet_stamp never = {0};
    enum culet_node_kind kind = ruby ? CULET_NODE_RUBY : native ? CULET_NODE_NATIVE : CULET_NODE_FOLDER;

    return culet_builder_add(scan->builder, scan->root, scan->path, scan->length, kind,
                             kind == CULET_NODE_FOLDER ? &never : NULL);
}

static enum culet_scanned scan_entry(struct scan *scan, int folder, const struct dirent *entry, unsigned level)
{
    size_t length = strlen(entry->d_name), before = scan->length;
    int ruby = culet_scan_ends_with(entry->d_name, length, ".rb"),
        native = culet_scan_ends_with(entry->d_name, length, CULET_NATIVE_EXTENSION);
    int type = type_of(folder, entry);
    enum culet_scanned scanned = CULET_SCANNED;

    if (++scan->entries > MAX_ENTRIES)
        return CULET_UNREADABLE;
    if (type != DT_DIR && type != DANGLING && !ruby && !native)
        return CULET_SCANNED;
    if (type != DT_DIR && type != DANGLING && type != DT_REG)
        return CULET_UNREADABLE;
    if (scan->length + 1 + length >= sizeof(scan->path))
        return CULET_UNREADABLE;

    if (scan->length > 1)
        scan->path[scan->length++] = '/';
    memcpy(scan->path + scan->length, entry->d_name, length + 1);
    scan->length += length;
    if (type == DANGLING)
        scanned = add_dangling(scan, ruby, native) ? CULET_SCANNED : CULET_NO_MEMORY;
    else if (type == DT_DIR)
        scanned = scan_below(scan, folder, entry->d_name, level + 1);
    else if (!culet_builder_add(scan->builder, scan->root, scan->path, scan->length,
                                ruby ? CULET_NODE_RUBY : CULET_NODE_NATIVE, NULL))
        scanned = CULET_NO_MEMORY;
    scan->length = before;
    scan->path[before] = '\0';
    return scanned;
}

/* Closes the descriptor. */
static enum culet_scanned scan_folder(struct scan *scan, int folder, const struct culet_stamp *stamp, unsigned level)
{
    int recent = is_too_recent(scan, stamp);
    DIR *stream = !recent && level < MAX_LEVELS ? fdopendir(folder) : NULL;
    enum culet_scanned scanned = CULET_SCANNED;
    const struct dirent *entry;

    if (stream == NULL) {
        close(folder);
        return recent ? CULET_TOO_RECENT : CULET_UNREADABLE;
    }
    while (scanned == CULET_SCANNED && (entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] != '.')
            scanned = scan_entry(scan, folder, entry, level);
    }
    closedir(stream);
    return scanned;
}

enum culet_scanned culet_scan(struct culet_builder *builder, const char *path)
{
    struct scan scan = {.builder = builder, .now = time(NULL), .length = strlen(path)};
    struct culet_stamp stamp;
    enum culet_scanned scanned;
    int folder;

    if (scan.length == 0 || scan.length >= sizeof(scan.path))
        return CULET_GONE;
    memcpy(scan.path, path, scan.length + 1);
    folder = open_folder(AT_FDCWD, path, &stamp);
    if (folder < 0)
        return CULET_GONE;
    scan.root = culet_builder_root(builder, path, scan.length, &stamp, 0);
    if (scan.root == CULET_INDEX_NONE) {
        close(folder);
        return CULET_NO_MEMORY;
    }
    scanned = scan_folder(&scan, folder, &stamp, 0);
    if (scanned == CULET_SCANNED)
        return scanned;

    culet_builder_withdraw(builder, scan.root);
    if (scanned == CULET_UNREADABLE && culet_builder_root(builder, path, scan.length, &stamp, 1) == CULET_INDEX_NONE)
        return CULET_NO_MEMORY;
    return scanned;
}
