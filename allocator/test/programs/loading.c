/* loading.c - the scavenger's start: beside the dynamic loader, where a heap becomes large in the middle of dlopen, and
 * in forked children.
 *
 * MANY_LIBRARIES: a hundred libraries with thread-local storage, paths separated by colons; MANY_AT_ONCE: one that
 * needs all of them. The loader allocates some 5 KB for each. */
#define _GNU_SOURCE
#define CHECK_SECONDS 300
#include "programs.h"

#include <dirent.h>

/* Bytes in use before the loading, up to more than the scavenger's bound (12 MiB, including the heap's own needs), in
 * steps smaller than what a hundred libraries take. */
#define LEAST ((size_t)9 << 20)
#define MOST ((size_t)13 << 20)
#define STEP ((size_t)96 << 10)

static size_t own_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    size_t count = 0;

    CHECK(folder != NULL, "/proc/self/task");
    while ((entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void fill_heap(size_t bytes)
{
    for (size_t held = 0; held < bytes; held += 1000)
        fill(malloc(1000), 1, 1000);
}

static void *load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW);

    CHECK(handle != NULL, "%s", dlerror());
    return handle;
}

/* Touches every library's variables, in a thread that is new. */
static void *touch_all(void *paths)
{
    char *list = strdup(paths), *rest = list;
    size_t count = 0;

    for (char *path; (path = strsep(&rest, ":")); count++) {
        int (*touch)(int) = (int (*)(int))dlsym(load(path), "tls_touch");
        CHECK(touch && touch(1), "a new thread's variables are not new");
    }
    CHECK(count >= 100, "only %zu libraries", count);
    free(list);
    return NULL;
}

static void load_one_by_one(char *paths)
{
    char *list = strdup(paths), *rest = list;

    for (char *path; (path = strsep(&rest, ":"));)
        load(path);
    free(list);
}

/* Loads beside a heap of so many bytes. Returns whether the heap became large meanwhile. */
static bool load_at(size_t bytes, bool at_once)
{
    char *paths = getenv("MANY_LIBRARIES"), *top = getenv("MANY_AT_ONCE");
    pthread_t thread;

    CHECK(paths && top, "the libraries are not named");
    fill_heap(bytes);
    bool before = own_threads() > 1;
    if (at_once)
        load(top);
    else
        load_one_by_one(paths);
    fill(malloc(20000), 1, 20000);
    bool after = own_threads() > 1;
    start_thread(&thread, touch_all, paths);
    join_thread(thread);
    fill_heap(MOST);
    CHECK(!on_culet() || own_threads() > 1, "a large heap has no scavenger");
    return after && !before;
}

static void load_at_all_sizes(bool at_once)
{
    unsigned meanwhile = 0;

    for (size_t bytes = LEAST; bytes < MOST; bytes += STEP) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(load_at(bytes, at_once) ? 10 : 0);
        CHECK(child > 0 && waitpid(child, &status, 0) == child, "fork");
        CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 10),
              "with %zu KiB in use loading ended with wait status 0x%x", bytes >> 10, (unsigned)status);
        meanwhile += WEXITSTATUS(status) == 10;
    }
    CHECK(!on_culet() || meanwhile, "the heap never became large in the middle of it");
}

TEST(a_hundred_libraries_loaded_at_once)
{
    load_at_all_sizes(true);
}

TEST(a_hundred_libraries_loaded_one_by_one)
{
    load_at_all_sizes(false);
}

/* Frees blocks of many classes, and large ones whose pages a small heap returns at once. */
static void use_small_heap(void)
{
    void *large[4];

    for (size_t bytes = 16; bytes < 100000; bytes += bytes / 2)
        free(malloc(bytes));
    for (size_t i = 0; i < 4; i++)
        fill(large[i] = malloc(700000), 1, 700000);
    for (size_t i = 0; i < 4; i++)
        free(large[i]);
}

static size_t threads_of_a_child(void)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        use_small_heap();
        free(malloc(9 << 20));
        use_small_heap();
        _exit((int)own_threads());
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status), "fork");
    return (size_t)WEXITSTATUS(status);
}

/* Forked beside a dlopen, it may be unable to start one (allocator/DESIGN.md, "libc's locks"). */
static void fork_from_a_small_heap(void)
{
    CHECK_EQUAL(own_threads(), on_culet() ? 2 : 1);
    CHECK_EQUAL(threads_of_a_child(), 1);
}

TEST(a_child_of_a_small_heap_that_returned_pages_starts_no_thread)
{
    for (unsigned i = 0; i < 20; i++)
        use_small_heap();
    fork_from_a_small_heap();
}

TEST(a_child_of_a_small_heap_that_freed_huge_blocks_starts_no_thread)
{
    for (unsigned i = 0; i < 4; i++)
        free(malloc(9 << 20));
    use_small_heap();
    fork_from_a_small_heap();
}

TEST(a_child_of_a_large_heap_starts_a_scavenger)
{
    fill_heap(MOST);
    CHECK_EQUAL(own_threads(), on_culet() ? 2 : 1);
    CHECK_EQUAL(threads_of_a_child(), on_culet() ? 2 : 1);
}

CHECK_MAIN
