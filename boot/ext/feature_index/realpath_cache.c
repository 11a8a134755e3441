#include "feature_index/realpath_cache.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "reading/clock.h"

/* Folders are stored as seeded 64-bit hashes only: among some thousand, a collision has a probability of 1 in 10^12. */
struct cache {
    uint64_t hash;
    uint32_t checked; /* 0: free */
};

static struct {
    struct cache *entries;
    uint32_t capacity; /* a power of two */
    uint32_t count;
    uint64_t seed;
} cache;

#define FIRST_CAPACITY 512
#define MAX_ENTRIES (1 << 16)

uint32_t culet_coarse_milliseconds(void)
{
    uint32_t milliseconds = (uint32_t)(culet_clock(CLOCK_MONOTONIC_COARSE) / 1000000);

    return milliseconds == 0 ? 1 : milliseconds;
}

static uint64_t hash_of(const char *path, size_t length)
{
    uint64_t hash = cache.seed;
    size_t i;

    for (i = 0; i < length; i++) {
        hash = (hash ^ (uint8_t)path[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash;
}

static struct cache *find(uint64_t hash)
{
    uint32_t entry = (uint32_t)hash & (cache.capacity - 1);

    while (cache.entries[entry].checked != 0 && cache.entries[entry].hash != hash)
        entry = (entry + 1) & (cache.capacity - 1);
    return &cache.entries[entry];
}

/* The table stays at most half full. At MAX_ENTRIES it is cleared; without memory it stays as it is. */
static int reserve(void)
{
    struct cache *old = cache.entries;
    uint32_t capacity = cache.capacity == 0 ? FIRST_CAPACITY : cache.capacity * 2, old_room = cache.capacity, i;

    if (cache.capacity != 0 && cache.count < cache.capacity / 2)
        return 1;
    if (capacity > MAX_ENTRIES) {
        memset(cache.entries, 0, cache.capacity * sizeof(*cache.entries));
        cache.count = 0;
        return 1;
    }
    cache.entries = calloc(capacity, sizeof(*cache.entries));
    if (cache.entries == NULL) {
        cache.entries = old;
        return 0;
    }
    if (cache.seed == 0)
        cache.seed = (uint64_t)(uintptr_t)&cache ^ (uint64_t)time(NULL) << 32 ^ (uint64_t)(uintptr_t)cache.entries;
    cache.capacity = capacity;
    for (i = 0; i < old_room; i++) {
        if (old[i].checked != 0)
            *find(old[i].hash) = old[i];
    }
    free(old);
    return 1;
}

/* Whether the last part is neither empty nor "." nor ".."; the other parts are checked as folders. */
static int plain_part(const char *part, size_t length)
{
    return !(length == 0 || (part[0] == '.' && (length == 1 || (length == 2 && part[1] == '.'))));
}

int culet_realpath_is_folder(const char *path, size_t length)
{
    char part[PATH_MAX];
    struct cache *entry;
    struct stat status;
    const char *slash;
    uint64_t hash;
    uint32_t now;

    if (length == 1 && path[0] == '/')
        return 1;
    if (length == 0 || length >= sizeof(part) || path[0] != '/' || !reserve())
        return 0;
    now = culet_coarse_milliseconds();
    hash = hash_of(path, length);
    entry = find(hash);
    if (entry->checked != 0 && now - entry->checked < CULET_FRESH_MILLISECONDS)
        return 1;

    slash = memrchr(path, '/', length);
    if (!plain_part(slash + 1, length - (size_t)(slash + 1 - path)))
        return 0;
    if (!culet_realpath_is_folder(path, slash == path ? 1 : (size_t)(slash - path)))
        return 0;
    memcpy(part, path, length);
    part[length] = '\0';
    if (lstat(part, &status) != 0 || !S_ISDIR(status.st_mode))
        return 0;
    if (!reserve())
        return 0;
    entry = find(hash); /* the recursion may have grown the table */
    if (entry->checked == 0)
        cache.count++;
    entry->hash = hash;
    entry->checked = now;
    return 1;
}

int culet_realpath_is_file(const char *path, struct stat *status)
{
    size_t length = strlen(path);
    const char *slash = strrchr(path, '/');

    if (path[0] != '/' || length >= PATH_MAX || !plain_part(slash + 1, length - (size_t)(slash + 1 - path)))
        return 0;
    if (!culet_realpath_is_folder(path, slash == path ? 1 : (size_t)(slash - path)))
        return 0;
    return lstat(path, status) == 0 && !S_ISLNK(status->st_mode);
}

int culet_realpath_is_absent(const char *path)
{
    char part[PATH_MAX];
    struct stat status;
    const char *slash = path;

    if (path[0] != '/' || strlen(path) >= sizeof(part))
        return 0;
    for (;;) {
        const char *next = strchr(slash + 1, '/');
        size_t length = next == NULL ? strlen(path) : (size_t)(next - path);

        if (!plain_part(slash + 1, length - (size_t)(slash + 1 - path)))
            return 0;
        memcpy(part, path, length);
        part[length] = '\0';
        if (!culet_realpath_is_folder(path, length))
            return lstat(part, &status) != 0 && errno == ENOENT;
        if (next == NULL)
            return 0;
        slash = next;
    }
}
