/* fork_locks.c - fork beside a thread that holds one of libc's locks and allocates: neither hangs.
 *
 * In each test one thread repeats calls that take a lock in libc and allocate under it, while the main thread forks.
 * The children only allocate and free: under any allocator libc's locks may stay locked there. TLS_LIBRARIES: libraries
 * to load, paths separated by colons. */
#define _GNU_SOURCE
#define CHECK_SECONDS 120
#include "programs.h"

#include <grp.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <time.h>

#define FORKS 25
#define PATIENCE_SECONDS 30 /* of a child that needs milliseconds */

static _Atomic bool stop;
static _Atomic unsigned long rounds; /* that the other thread has done */

/* What a child does: tiny and small classes, a large block, a huge block, all ways to resize and query. */
static void use_heap(unsigned seed)
{
    static const size_t sizes[] = {24, 200, 1000, 3000, 30000, 200000, 1200000};
    uint64_t random = seed;
    char *block[7 * 3];

    for (size_t i = 0; i < sizeof block / sizeof *block; i++) {
        size_t bytes = sizes[i % 7];
        block[i] = i % 2 ? malloc(bytes) : calloc(1, bytes);
        CHECK(block[i] && malloc_usable_size(block[i]) >= bytes, "no block of %zu bytes", bytes);
        CHECK(i % 2 || filled(block[i], 0, bytes), "calloc's block is not zeroed");
        memset(block[i], (int)i, 24);
    }
    for (size_t i = 0; i < sizeof block / sizeof *block; i++) {
        block[i] = realloc(block[i], 24 + check_random(&random) % 5000);
        CHECK(block[i] && filled(block[i], (int)i, 24), "realloc lost what the block held");
    }
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        free(block[i]);
}

/* A child that hangs is ended by its alarm, which fails the test. */
static void child_begins(void)
{
    signal(SIGALRM, SIG_DFL);
    alarm(PATIENCE_SECONDS);
}

static void fork_beside(void *(*body)(void *))
{
    pthread_t thread;

    atomic_store(&stop, false);
    atomic_store(&rounds, 0);
    start_thread(&thread, body, NULL);
    for (unsigned i = 0; i < FORKS; i++) {
        unsigned long before = atomic_load(&rounds);
        struct timespec nap = {.tv_nsec = 20000 + i % 16 * 10000};
        pid_t child = fork();
        if (child == 0) {
            child_begins();
            use_heap(i);
            _exit(0);
        }
        check_child(child);
        /* The thread must be running at the next fork. */
        do
            nanosleep(&nap, NULL);
        while (atomic_load(&rounds) == before);
    }
    atomic_store(&stop, true);
    join_thread(thread);
}

/* BESIDE(name) { one round of the other thread }: a test of that name. */
#define BESIDE(name)                                                                                                   \
    static void beside_##name(unsigned round);                                                                         \
    static void *repeat_##name(void *unused)                                                                           \
    {                                                                                                                  \
        for (unsigned round = 0; !atomic_load(&stop); round++) {                                                       \
            beside_##name(round);                                                                                      \
            atomic_fetch_add(&rounds, 1);                                                                              \
        }                                                                                                              \
        return unused;                                                                                                 \
    }                                                                                                                  \
    TEST(fork_beside_##name)                                                                                           \
    {                                                                                                                  \
        fork_beside(repeat_##name);                                                                                    \
    }                                                                                                                  \
    static void beside_##name(unsigned round)

/* ---- stdio: the list of streams, and single ones ---- */

static ssize_t write_with_malloc(void *cookie, const char *data, size_t bytes)
{
    (void)cookie, (void)data;
    for (size_t size = 100; size < 200000; size *= 10) {
        char *block = malloc(size);
        CHECK(block != NULL, "no memory");
        fill(block, 1, 100);
        free(block);
    }
    return (ssize_t)bytes;
}

static FILE *stream_that_allocates(void)
{
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_with_malloc});

    CHECK(stream != NULL, "fopencookie");
    return stream;
}

BESIDE(a_flush_of_all_streams)
{
    static FILE *stream;

    (void)round;
    if (!stream)
        stream = stream_that_allocates();
    fputs("text", stream);
    fflush(NULL);
}

BESIDE(streams_that_come_and_go)
{
    FILE *stream = stream_that_allocates();

    fprintf(stream, "%u", round);
    fclose(stream);
}

BESIDE(one_stream_under_its_lock)
{
    static FILE *stream;

    if (!stream)
        stream = stream_that_allocates();
    flockfile(stream);
    fprintf(stream, "%*u", (int)(round % 3000), round);
    fflush(stream);
    funlockfile(stream);
}

BESIDE(getline)
{
    char *line = NULL;
    size_t bytes = 0;
    FILE *stream = fopen("/proc/self/maps", "r");

    (void)round;
    CHECK(stream != NULL, "/proc/self/maps");
    for (int i = 0; i < 5 && getline(&line, &bytes, stream) > 0; i++)
        continue;
    free(line);
    fclose(stream);
}

BESIDE(popen_of_many)
{
    FILE *pipe[12];

    (void)round;
    for (size_t i = 0; i < 12; i++) {
        pipe[i] = popen(":", "r");
        CHECK(pipe[i] != NULL, "popen: %s", strerror(errno));
    }
    for (size_t i = 0; i < 12; i++)
        pclose(pipe[i]);
}

/* ---- fork within a flush of all streams, whose lock the forking thread holds already ---- */

static ssize_t write_with_fork(void *cookie, const char *data, size_t bytes)
{
    pid_t child = fork();

    (void)cookie, (void)data;
    if (child == 0) {
        child_begins();
        use_heap(1);
        _exit(0);
    }
    check_child(child);
    return (ssize_t)bytes;
}

static void flush_and_fork(void)
{
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_with_fork});

    CHECK(stream != NULL, "fopencookie");
    for (int i = 0; i < 20; i++) {
        fputs("text", stream);
        fflush(NULL);
    }
    fclose(stream);
}

static void *open_a_stream(void *unused)
{
    fclose(stream_that_allocates());
    return unused;
}

TEST(fork_within_a_flush_of_all_streams)
{
    pthread_t thread;

    flush_and_fork();
    /* Then with a second thread; and the lock is free again afterwards, here and in a child. */
    atomic_store(&stop, false);
    start_thread(&thread, repeat_streams_that_come_and_go, NULL);
    flush_and_fork();
    atomic_store(&stop, true);
    join_thread(thread);
    pid_t child = fork();
    if (child == 0) {
        child_begins();
        start_thread(&thread, open_a_stream, NULL);
        join_thread(thread);
        _exit(0);
    }
    check_child(child);
}

/* ---- the others ---- */

BESIDE(dlopen)
{
    char *paths = strdup(getenv("TLS_LIBRARIES") ? getenv("TLS_LIBRARIES") : ""), *rest = paths;
    unsigned loaded = 0;

    (void)round;
    for (char *path; (path = strsep(&rest, ":"));) {
        void *handle = dlopen(path, RTLD_NOW);
        if (!handle)
            continue;
        int (*touch)(int) = (int (*)(int))dlsym(handle, "tls_touch");
        CHECK(touch != NULL, "tls_touch");
        touch(1);
        dlclose(handle);
        loaded++;
    }
    CHECK(loaded >= 3, "only %u libraries could be loaded", loaded);
    dlopen("/no/such/library.so", RTLD_NOW);
    CHECK(dlerror() != NULL, "a library that does not exist was loaded");
    free(paths);
}

BESIDE(locales)
{
    locale_t locale = newlocale(LC_ALL_MASK, "C.UTF-8", NULL);

    setlocale(LC_ALL, round % 2 ? "C.UTF-8" : "C");
    if (locale)
        freelocale(locale);
}

BESIDE(name_services)
{
    struct addrinfo *found = NULL, hints = {.ai_flags = AI_NUMERICHOST};
    static const char *const hosts[] = {"127.0.0.1", "::1"};

    CHECK(getpwnam("root") != NULL && getgrgid(0) != NULL, "there is no root");
    setpwent();
    getpwent();
    endpwent();
    if (getaddrinfo(hosts[round % 2], NULL, &hints, &found) == 0)
        freeaddrinfo(found);
    getservbyname("http", "tcp");
}

static void *short_life(void *unused)
{
    fill(malloc(3000), 1, 3000);
    return unused;
}

BESIDE(threads)
{
    pthread_t thread[4];

    (void)round;
    for (size_t i = 0; i < 4; i++)
        start_thread(&thread[i], short_life, NULL);
    for (size_t i = 0; i < 4; i++)
        join_thread(thread[i]);
}

static void at_the_end(void)
{
}

BESIDE(atexit)
{
    struct timespec nap = {.tv_nsec = 20000};

    (void)round;
    for (int i = 0; i < 64; i++)
        CHECK(atexit(at_the_end) == 0, "atexit");
    nanosleep(&nap, NULL); /* the list only grows */
}

BESIDE(the_environment)
{
    char value[200];

    snprintf(value, sizeof value, "%0*u", (int)(round % 150) + 20, round);
    setenv("CULET_TEST_VALUE", value, 1);
    CHECK(strcmp(getenv("CULET_TEST_VALUE"), value) == 0, "setenv");
    unsetenv("CULET_TEST_VALUE");
}

BESIDE(time_zones)
{
    static const char *const zones[] = {"UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT"};
    time_t now = 1700000000;
    struct tm tm;

    setenv("TZ", zones[round % 3], 1);
    tzset();
    CHECK(localtime(&now) && localtime_r(&now, &tm), "localtime");
}

BESIDE(character_sets)
{
    static const char *const sets[] = {"UTF-16", "ISO-8859-1", "UTF-7"};
    iconv_t way = iconv_open(sets[round % 3], "UTF-8");

    if (way != (iconv_t)-1)
        iconv_close(way);
}

static void on_timer(union sigval unused)
{
    (void)unused;
    free(calloc(1, 5000));
}

BESIDE(timers)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_timer};
    struct itimerspec soon = {.it_value.tv_nsec = 1};
    timer_t timer;

    (void)round;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create: %s", strerror(errno));
    timer_settime(timer, 0, &soon, NULL);
    timer_delete(timer);
}

/* ---- forks that run no handlers, beside threads that use the heap all the time ---- */

#define SLOTS 1024
#define BUSY 4

static _Atomic(char *) slot[SLOTS];

static void replace(uint64_t *random)
{
    uint64_t n = check_random(random);
    size_t bytes = (n >> 20) % 64 ? (n >> 26) % 3000 : (n >> 26) % 300000;
    char *block = malloc(bytes + 1);

    if (block) /* CHECK counts, which would slow the threads down */
        block[0] = block[bytes] = 1;
    else
        CHECK(false, "no memory");
    free(atomic_exchange(&slot[n % SLOTS], block));
}

static void *replace_until_stop(void *seed)
{
    uint64_t random = (uintptr_t)seed;

    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        replace(&random);
    return NULL;
}

static pid_t raw_fork(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

/* What an abandoned child does, and its own ordinary child. */
static void live(unsigned seed)
{
    uint64_t random = seed;
    void *aligned = NULL;

    child_begins();
    for (int i = 0; i < 200; i++)
        replace(&random);
    use_heap(seed);
    CHECK(posix_memalign(&aligned, 4096, 5000) == 0 && (uintptr_t)aligned % 4096 == 0, "posix_memalign");
    free(aligned);
    malloc_trim(0);
    heap_info();
    if (seed % 4 == 0) {
        pid_t child = fork();
        if (child == 0) {
            child_begins();
            use_heap(seed);
            _exit(0);
        }
        check_child(child);
    }
    _exit(0);
}

static void fork_without_handlers(pid_t (*fork_some_way)(void))
{
    pthread_t busy[BUSY];

    atomic_store(&stop, false);
    for (size_t i = 0; i < BUSY; i++)
        start_thread(&busy[i], replace_until_stop, (void *)(uintptr_t)(i + 1));
    for (unsigned i = 0, forks = check_rounds(30, 60); i < forks; i++) {
        struct timespec nap = {.tv_nsec = 1000 * (i % 64)};
        pid_t child = fork_some_way();
        if (child == 0)
            live(i);
        check_child(child);
        nanosleep(&nap, NULL);
    }
    /* The parent is as it was. */
    pid_t child = fork();
    if (child == 0) {
        child_begins();
        CHECK(on_culet() == (getenv("EXPECT_CULET") != NULL), "an ordinary child lost culet");
        use_heap(1);
        _exit(0);
    }
    check_child(child);
    atomic_store(&stop, true);
    for (size_t i = 0; i < BUSY; i++)
        join_thread(busy[i]);
    CHECK(on_culet() == (getenv("EXPECT_CULET") != NULL), "the parent lost culet");
}

TEST(raw_forks_beside_busy_threads)
{
    fork_without_handlers(raw_fork);
}

TEST(forks_by__Fork_beside_busy_threads)
{
    pid_t (*fork_without)(void) = (pid_t(*)(void))dlsym(RTLD_DEFAULT, "_Fork"); /* glibc 2.34 */

    fork_without_handlers(fork_without ? fork_without : raw_fork);
}

/* With one thread nothing is half changed: the child stays on culet. */
TEST(a_raw_fork_of_a_single_thread_keeps_culet)
{
    for (unsigned i = 0; i < 5; i++) {
        pid_t child = raw_fork();
        if (child == 0) {
            child_begins();
            CHECK(on_culet() == (getenv("EXPECT_CULET") != NULL), "the child lost culet");
            use_heap(i);
            _exit(0);
        }
        check_child(child);
    }
}

CHECK_MAIN
