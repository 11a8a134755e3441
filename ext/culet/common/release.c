/* The calls that return memory, by each project's documentation and headers:
 *
 * - glibc: malloc_trim(0), all arenas in turn (malloc_trim(3)). There is no estimate: mallinfo2 walks the same lists
 *   and counts free blocks whether or not they are resident.
 * - culet: malloc_trim as well; dormant, culet passes the call on to glibc.
 * - jemalloc: mallctl "arena.<i>.purge", where i is 4096 (MALLCTL_ARENAS_ALL, since 5.0) or the number of arenas
 *   (before). "thread.tcache.flush" affects only the calling thread.
 * - tcmalloc (gperftools): MallocExtension_ReleaseToSystem and _ReleaseFreeMemory of malloc_extension_c.h. Both hold
 *   the page heap's lock throughout, so the former is called in slices.
 * - mimalloc: mi_collect(true) collects the calling thread's heap and what ended threads left. Freed pages are purged
 *   after a delay, at the thread's next slow allocation, so the delay is set to zero first. With a zero delay mimalloc
 *   skips pages that already wait for the end of a delay (in version 3, all that other threads freed), so a second call
 *   follows with the original delay. */
#include "common/release.h"

#include "common/active_malloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* what tcmalloc releases at a time while it holds its lock: a few milliseconds */
#define SLICE_BYTES ((size_t)16 << 20)

#define JEMALLOC_ALL_ARENAS 4096U

/* mi_option_purge_delay (before 2.1 decommit_delay, before 2.0 reset_delay); the number does not change */
#define MIMALLOC_PURGE_DELAY 15
#define MIMALLOC_OLDEST 170 /* 1.7.0 */

static struct {
    int (*malloc_trim)(size_t);
    culet_mallctl_function *mallctl;
    int (*mallctl_name)(const char *, size_t *, size_t *);
    void (*tc_release)(size_t);
    void (*tc_release_all)(void);
    culet_tc_property_function *tc_property;
    void (*mi_collect)(bool);
    void (*mi_option_set)(int, long); /* NULL: unknown in this version */
    long mi_purge_delay;              /* the program's setting */
    char jemalloc_purge[40];
    char jemalloc_dirty[40];
    char jemalloc_muzzy[40];
    size_t jemalloc_page_bytes; /* 0: no statistics */
} calls;

static struct culet_release found = {"unknown", NULL, "no allocator was looked for yet", 0};

/* Looks up a function of the active malloc into a member of `calls`. Returns whether it exists. */
#define LOOK_UP(name, member) look_up(name, &calls.member, sizeof(calls.member))

static int look_up(const char *name, void *member, size_t size)
{
    void *pointer = culet_malloc_function(name);

    if (pointer == NULL)
        return 0;
    memcpy(member, &pointer, size);
    return 1;
}

/* ---- jemalloc ---- */

static int jemalloc_knows(const char *name)
{
    size_t mib[8], length = sizeof(mib) / sizeof(mib[0]);

    return calls.mallctl_name(name, mib, &length) == 0;
}

static int jemalloc_tells(const char *name, void *value, size_t size)
{
    size_t got = size;

    return calls.mallctl(name, value, &got, NULL, 0) == 0 && got == size;
}

static int find_jemalloc(void)
{
    unsigned all = JEMALLOC_ALL_ARENAS;

    if (!LOOK_UP("mallctl", mallctl) || !LOOK_UP("mallctlnametomib", mallctl_name))
        return 0;
    snprintf(calls.jemalloc_purge, sizeof(calls.jemalloc_purge), "arena.%u.purge", all);
    if (!jemalloc_knows(calls.jemalloc_purge)) {
        if (!jemalloc_tells("arenas.narenas", &all, sizeof(all)))
            all = 0;
        snprintf(calls.jemalloc_purge, sizeof(calls.jemalloc_purge), "arena.%u.purge", all);
    }
    if (!jemalloc_knows(calls.jemalloc_purge)) {
        found.why_not = "this jemalloc has no mallctl \"arena.<i>.purge\"";
        return 1;
    }
    snprintf(calls.jemalloc_dirty, sizeof(calls.jemalloc_dirty), "stats.arenas.%u.pdirty", all);
    snprintf(calls.jemalloc_muzzy, sizeof(calls.jemalloc_muzzy), "stats.arenas.%u.pmuzzy", all);
    if (!jemalloc_knows(calls.jemalloc_dirty) ||
        !jemalloc_tells("arenas.page", &calls.jemalloc_page_bytes, sizeof(size_t)))
        calls.jemalloc_page_bytes = 0;
    found.call = "mallctl(\"arena.<all>.purge\")";
    return 1;
}

/* Bytes of free resident pages: dirty ones, and muzzy ones (MADV_FREE). */
static size_t estimate_jemalloc(void)
{
    uint64_t epoch = 1;
    size_t dirty = 0, muzzy = 0;

    if (calls.jemalloc_page_bytes == 0)
        return SIZE_MAX;
    if (calls.mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch)) != 0)
        return SIZE_MAX;
    if (!jemalloc_tells(calls.jemalloc_dirty, &dirty, sizeof(dirty)))
        return SIZE_MAX;
    if (!jemalloc_tells(calls.jemalloc_muzzy, &muzzy, sizeof(muzzy)))
        muzzy = 0; /* unknown before 5.0 */
    return (dirty + muzzy) * calls.jemalloc_page_bytes;
}

/* ---- tcmalloc ---- */

static int find_tcmalloc(void)
{
    if (!LOOK_UP("MallocExtension_ReleaseFreeMemory", tc_release_all))
        return 0;
    found.call = "MallocExtension_ReleaseFreeMemory()";
    if (LOOK_UP("MallocExtension_GetNumericProperty", tc_property) &&
        LOOK_UP("MallocExtension_ReleaseToSystem", tc_release))
        found.call = "MallocExtension_ReleaseToSystem()";
    return 1;
}

static size_t estimate_tcmalloc(void)
{
    size_t bytes;

    if (calls.tc_property == NULL || !calls.tc_property("tcmalloc.pageheap_free_bytes", &bytes))
        return SIZE_MAX;
    return bytes;
}

/* In slices, so that a thread that needs pages waits for one slice at most. */
static void release_tcmalloc(void)
{
    size_t bytes = calls.tc_release == NULL ? SIZE_MAX : estimate_tcmalloc();

    if (bytes == SIZE_MAX) {
        calls.tc_release_all();
        return;
    }
    for (size_t slices = bytes / SLICE_BYTES + 1; slices > 0 && estimate_tcmalloc() > 0; slices--)
        calls.tc_release(SLICE_BYTES);
}

/* ---- mimalloc ---- */

static void find_mimalloc(void)
{
    long (*get)(int);
    int (*version)(void);

    if (!LOOK_UP("mi_collect", mi_collect))
        return;
    found.call = "mi_collect(true)";
    found.in_ruby_threads = 1;
    if (!look_up("mi_version", &version, sizeof(version)) || version() < MIMALLOC_OLDEST)
        return;
    if (!look_up("mi_option_get", &get, sizeof(get)))
        return;
    calls.mi_purge_delay = get(MIMALLOC_PURGE_DELAY);
    (void)LOOK_UP("mi_option_set", mi_option_set);
}

/* Several threads may run this at once; the last one restores the delay. */
static void release_mimalloc(void)
{
    if (calls.mi_option_set != NULL && calls.mi_purge_delay > 0) {
        calls.mi_option_set(MIMALLOC_PURGE_DELAY, 0);
        calls.mi_collect(true);
        calls.mi_option_set(MIMALLOC_PURGE_DELAY, calls.mi_purge_delay);
    }
    calls.mi_collect(true);
}

/* ---- any allocator ---- */

static void find_by_trim(void)
{
    if (strcmp(found.allocator, "culet") != 0 && strcmp(found.allocator, "glibc") != 0)
        return;
    if (LOOK_UP("malloc_trim", malloc_trim))
        found.call = "malloc_trim(0)";
}

void culet_release_find(void)
{
    found.why_not = NULL;
    found.allocator = culet_malloc_name();
    if (strcmp(found.allocator, "mimalloc") == 0)
        find_mimalloc();
    else if (!find_tcmalloc() && !find_jemalloc())
        find_by_trim();
    if (found.call == NULL && found.why_not == NULL)
        found.why_not = "culet knows no call by which this allocator returns memory";
}

const struct culet_release *culet_release_found(void)
{
    return &found;
}

void culet_release_memory(void)
{
    if (found.call == NULL)
        return;
    if (calls.malloc_trim != NULL)
        (void)calls.malloc_trim(0); /* the result shows in the resident bytes */
    else if (calls.mi_collect != NULL)
        release_mimalloc();
    else if (calls.tc_release_all != NULL)
        release_tcmalloc();
    else
        (void)calls.mallctl(calls.jemalloc_purge, NULL, NULL, NULL, 0); /* known to exist */
}

size_t culet_release_estimate(void)
{
    if (calls.tc_release_all != NULL)
        return estimate_tcmalloc();
    if (found.call != NULL && calls.mallctl != NULL)
        return estimate_jemalloc();
    return SIZE_MAX;
}
