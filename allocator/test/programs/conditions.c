/* conditions.c - conditions in which allocators fail: signals, small stacks, threads that end, thread-local storage of
 * libraries that are loaded and unloaded, exits at any moment. */
#define _GNU_SOURCE
#include "programs.h"

#include <limits.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>

#define MEBIBYTE ((size_t)1 << 20)

static _Atomic bool stop;

/* Allocates, writes, checks and frees blocks of all kinds. */
static void use_heap(uint64_t *random, int rounds)
{
    struct {
        unsigned char *block;
        size_t bytes;
        int with;
    } held[64] = {0};

    for (int i = 0; i < rounds; i++) {
        uint64_t n = check_random(random);
        size_t k = n % 64, bytes = n / 64 % 50 ? n % 3001 : n % 200001;
        if (held[k].block && !filled(held[k].block, held[k].with, held[k].bytes))
            CHECK(false, "the block %p of %zu bytes changed", (void *)held[k].block, held[k].bytes);
        if (n / 4096 % 4 == 0 && held[k].block) {
            void *moved = realloc(held[k].block, bytes + 1);
            size_t least = bytes + 1 < held[k].bytes ? bytes + 1 : held[k].bytes;
            if (!moved || !filled(moved, held[k].with, least))
                CHECK(false, "realloc to %zu bytes", bytes + 1);
            held[k].block = moved;
        } else {
            free(held[k].block);
            held[k].block = n % 5 ? malloc(bytes + 1) : memalign(64, bytes + 1);
        }
        if (!held[k].block)
            CHECK(false, "no block of %zu bytes", bytes + 1);
        held[k].bytes = bytes + 1;
        held[k].with = (int)(n >> 32 & 0x7f);
        memset(held[k].block, held[k].with, held[k].bytes);
    }
    for (size_t k = 0; k < 64; k++)
        free(held[k].block);
    CHECK(true, "done");
}

static void *use_heap_until_stop(void *data)
{
    uint64_t random = (uintptr_t)data;

    while (!atomic_load(&stop))
        use_heap(&random, 500);
    return NULL;
}

static void *use_heap_once(void *data)
{
    uint64_t random = (uintptr_t)data;

    use_heap(&random, 2000);
    return NULL;
}

static void run_threads(size_t count, void *(*body)(void *))
{
    pthread_t thread[64];

    for (size_t i = 0; i < count; i++)
        start_thread(&thread[i], body, (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; i < count; i++)
        join_thread(thread[i]);
}

/* ---- signals ---- */

static _Atomic long signals;

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add(&signals, 1);
}

TEST(storm_of_signals)
{
    struct sigaction action = {.sa_handler = count_signal}; /* without SA_RESTART: system calls are interrupted */
    struct itimerval often = {.it_interval = {.tv_usec = 100}, .it_value = {.tv_usec = 100}}, never = {0};

    CHECK(sigaction(SIGALRM, &action, NULL) == 0, "sigaction");
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer");
    for (int i = 0; i < 4; i++)
        run_threads(4, use_heap_once);
    while (atomic_load(&signals) < 1000)
        run_threads(4, use_heap_once);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0, "setitimer");
}

static void *volatile from_handler;

static void allocate_in_handler(int number)
{
    uint64_t random = (uint64_t)number;

    from_handler = malloc(100);
    use_heap(&random, 200);
}

/* The signal is raised outside of any allocation, so the handler may allocate. */
TEST(handler_on_an_alternate_stack)
{
    stack_t stack = {.ss_size = 64 * 1024};
    struct sigaction action = {.sa_handler = allocate_in_handler, .sa_flags = SA_ONSTACK};

    stack.ss_sp = malloc(stack.ss_size);
    CHECK(stack.ss_sp && sigaltstack(&stack, NULL) == 0, "sigaltstack");
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
    for (int i = 0; i < 50; i++) {
        raise(SIGUSR1);
        CHECK(from_handler != NULL, "the handler got no block");
        free(from_handler);
    }
}

/* ---- threads ---- */

/* What fits a small stack: a thread's first allocation, and every kind of block. */
static void *use_small_stack(void *unused)
{
    static const size_t sizes[] = {1, 100, 1000, 5000, 40000, 200000, 2000000};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block = malloc(sizes[i]);
        block = realloc(block, sizes[i] * 2);
        free(block);
        free(calloc(3, sizes[i]));
        free(memalign(4096, sizes[i]));
    }
    malloc_trim(0);
    return unused;
}

TEST(smallest_stack)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, least_stack()) == 0, "a stack of %zu bytes", least_stack());
    for (int i = 0; i < 20; i++) {
        CHECK(pthread_create(&thread, &attributes, use_small_stack, NULL) == 0, "pthread_create");
        join_thread(thread);
    }
}

static void *short_life(void *data)
{
    uint64_t random = (uintptr_t)data;

    use_heap(&random, 100);
    return malloc(100); /* for whoever joins */
}

TEST(two_thousand_threads)
{
    pthread_t thread[8];
    size_t arena = 0, used = 0;

    for (int i = 0; i < 250; i++) {
        for (size_t k = 0; k < 8; k++)
            start_thread(&thread[k], short_life, (void *)(uintptr_t)(i * 8 + (int)k));
        for (size_t k = 0; k < 8; k++) {
            void *left = NULL;
            CHECK(pthread_join(thread[k], &left) == 0 && left, "pthread_join");
            free(left);
        }
        if (i == 50) {
            arena = heap_info().arena;
            used = used_bytes();
        }
    }
    /* Threads that meet inside an arena get others, each with slabs of its own. */
    CHECK(heap_info().arena <= arena + 32 * MEBIBYTE, "%zu bytes mapped after 400 threads, %zu after 2000", arena,
          heap_info().arena);
    CHECK(used_bytes() <= used + 100000, "%zu bytes in use after 400 threads, %zu after 2000", used, used_bytes());
}

static pthread_barrier_t all_there;

static void *wait_with_blocks(void *data)
{
    uint64_t random = (uintptr_t)data;

    use_heap(&random, 100);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_there);
    return NULL;
}

#define AT_ONCE 300

TEST(three_hundred_threads_at_once)
{
    static pthread_t thread[AT_ONCE];
    size_t base = used_bytes();

    CHECK(pthread_barrier_init(&all_there, NULL, AT_ONCE + 1) == 0, "pthread_barrier_init");
    for (size_t i = 0; i < AT_ONCE; i++)
        start_thread(&thread[i], wait_with_blocks, (void *)(uintptr_t)i);
    pthread_barrier_wait(&all_there);
    /* Idle threads hold at most one unit of about 4 KiB per size class that they used. */
    CHECK(heap_info().arena <= 200 * MEBIBYTE, "%zu bytes mapped", heap_info().arena);
    pthread_barrier_wait(&all_there);
    for (size_t i = 0; i < AT_ONCE; i++)
        join_thread(thread[i]);
    malloc_trim(0);
    CHECK(used_bytes() <= base + 500000, "%zu bytes in use at first, %zu at the end", base, used_bytes());
    CHECK(heap_info().arena <= 16 * MEBIBYTE, "%zu bytes are mapped at the end", heap_info().arena);
}

#define RING 1000
static _Atomic(void *) ring[RING];

static void *consume(void *data)
{
    for (size_t i = 0; i < (size_t)(uintptr_t)data; i++) {
        void *block;
        while (!(block = atomic_exchange(&ring[i % RING], NULL)))
            sched_yield();
        free(block);
    }
    return NULL;
}

TEST(producer_and_consumer)
{
    const size_t blocks = 600000;
    uint64_t random = 3;
    pthread_t consumer;
    size_t most = 0;

    start_thread(&consumer, consume, (void *)(uintptr_t)blocks);
    for (size_t i = 0; i < blocks; i++) {
        size_t bytes = check_random(&random) % 2000;
        void *block = malloc(bytes + 1), *none = NULL;
        if (!block)
            CHECK(false, "malloc(%zu)", bytes + 1);
        memset(block, 1, bytes + 1);
        while (!atomic_compare_exchange_weak(&ring[i % RING], &none, block)) {
            none = NULL;
            sched_yield();
        }
        if (i % 10000 == 0 && heap_info().arena > most)
            most = heap_info().arena;
    }
    join_thread(consumer);
    CHECK(most <= 24 * MEBIBYTE, "up to %zu bytes were mapped for at most %d blocks at a time", most, RING);
}

/* ---- the end of threads ---- */

static pthread_key_t keys[20];
static _Atomic int destroyed;

static void destroy(void *data)
{
    /* Sets its key again, as long as there are rounds. */
    size_t which = *(size_t *)data;
    size_t *again = malloc(sizeof *again);
    uint64_t random = which + 1;

    CHECK(again != NULL, "malloc in a destructor");
    *again = which;
    free(data);
    use_heap(&random, 50);
    if (atomic_fetch_add(&destroyed, 1) % 3 == 0)
        pthread_setspecific(keys[which], again);
    else
        free(again);
}

static void *set_keys(void *unused)
{
    for (size_t i = 0; i < 20; i++) {
        size_t *data = malloc(sizeof *data);
        CHECK(data != NULL, "malloc");
        *data = i;
        CHECK(pthread_setspecific(keys[i], data) == 0, "pthread_setspecific");
    }
    return unused;
}

static void *set_keys_without_allocating_before(void *data)
{
    static size_t first[20];

    (void)data;
    for (size_t i = 0; i < 20; i++)
        pthread_setspecific(keys[i], &first[i]);
    return NULL;
}

static void only_allocate(void *data)
{
    (void)data;
    for (size_t bytes = 1; bytes < 100000; bytes *= 3)
        free(malloc(bytes));
    atomic_fetch_add(&destroyed, 1);
}

TEST(destructors_that_allocate)
{
    size_t base;

    for (size_t i = 0; i < 20; i++)
        CHECK(pthread_key_create(&keys[i], destroy) == 0, "pthread_key_create");
    run_threads(8, set_keys);
    base = used_bytes();
    for (int i = 0; i < 30; i++)
        run_threads(8, set_keys);
    CHECK(atomic_load(&destroyed) >= 31 * 8 * 20, "%d destructors were called", atomic_load(&destroyed));
    /* glibc calls no destructor in a fifth round; the block is lost under any allocator. */
    CHECK(used_bytes() <= base + 50000, "%zu bytes in use, %zu after the first threads", used_bytes(), base);
}

TEST(first_allocation_in_a_destructor)
{
    for (size_t i = 0; i < 20; i++)
        CHECK(pthread_key_create(&keys[i], only_allocate) == 0, "pthread_key_create");
    run_threads(1, set_keys_without_allocating_before);
    size_t base = used_bytes();
    for (int i = 0; i < 30; i++)
        run_threads(8, set_keys_without_allocating_before);
    CHECK_EQUAL(atomic_load(&destroyed), 20 + 30 * 8 * 20);
    CHECK(used_bytes() <= base + 50000, "%zu bytes in use, %zu after the first thread", used_bytes(), base);
}

static void release(void *block)
{
    free(block);
}

static void *wait_to_be_cancelled(void *unused)
{
    void *block = malloc(5000);

    pthread_cleanup_push(release, block);
    pthread_barrier_wait(&all_there);
    for (;;)
        pause();
    pthread_cleanup_pop(1);
    return unused;
}

TEST(cancelled_threads)
{
    pthread_t thread[10];
    size_t base = 0;

    CHECK(pthread_barrier_init(&all_there, NULL, 11) == 0, "pthread_barrier_init");
    for (int i = 0; i < 20; i++) {
        for (size_t k = 0; k < 10; k++)
            start_thread(&thread[k], wait_to_be_cancelled, NULL);
        pthread_barrier_wait(&all_there);
        for (size_t k = 0; k < 10; k++)
            CHECK(pthread_cancel(thread[k]) == 0, "pthread_cancel");
        for (size_t k = 0; k < 10; k++)
            join_thread(thread[k]);
        if (i == 0)
            base = used_bytes();
    }
    CHECK(used_bytes() <= base + 50000, "%zu bytes in use, %zu after the first round", used_bytes(), base);
}

/* ---- the end of the process ---- */

static void allocate_at_exit(void)
{
    uint64_t random = 5;

    use_heap(&random, 500);
}

TEST(exit_while_threads_allocate)
{
    for (int i = 0, exits = (int)check_rounds(20, 50); i < exits; i++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t thread[4];
            alarm(200);
            CHECK(atexit(allocate_at_exit) == 0, "atexit");
            for (size_t k = 0; k < 4; k++)
                start_thread(&thread[k], use_heap_until_stop, (void *)(uintptr_t)k);
            for (int k = 0; k < i % 10; k++)
                sched_yield();
            exit(0);
        }
        check_child(child);
    }
}

static void *outlive_main(void *unused)
{
    uint64_t random = 11;

    for (int i = 0; i < 20; i++) {
        use_heap(&random, 100);
        sched_yield();
    }
    exit(0);
    return unused;
}

TEST(main_thread_ends_first)
{
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t thread;
            uint64_t random = 1;
            alarm(200);
            use_heap(&random, 100);
            start_thread(&thread, outlive_main, NULL);
            pthread_exit(NULL);
        }
        check_child(child);
    }
}

/* ---- libraries with thread-local storage ---- */

/* TLS_LIBRARIES: their paths, with colons between them. */
static size_t libraries(char *paths[16])
{
    static char text[8192];
    size_t count = 0;

    CHECK(getenv("TLS_LIBRARIES") && strlen(getenv("TLS_LIBRARIES")) < sizeof text, "TLS_LIBRARIES is not set");
    strcpy(text, getenv("TLS_LIBRARIES"));
    for (char *rest = text, *path; count < 16 && (path = strtok_r(rest, ":", &rest));)
        paths[count++] = path;
    CHECK(count > 2, "TLS_LIBRARIES names %zu libraries", count);
    return count;
}

static int (*touch[16])(int);
static size_t touches;

static void *touch_all(void *data)
{
    int with = 1 + (int)((uintptr_t)data % 100);
    uint64_t random = (uint64_t)with;

    for (size_t i = 0; i < touches; i++)
        CHECK(touch[i](with), "a new thread's variables are not new");
    use_heap(&random, 300);
    for (size_t i = 0; i < touches; i++)
        CHECK(!touch[i](with), "the thread's variables are new again");
    return NULL;
}

/* Libraries are loaded and unloaded while threads allocate; each thread's variables are allocated at their first
 * use. */
TEST(libraries_with_thread_local_storage)
{
    char *paths[16];
    void *handle[16];
    size_t count = libraries(paths), base = 0;
    pthread_t busy[2];

    for (size_t i = 0; i < 2; i++)
        start_thread(&busy[i], use_heap_until_stop, (void *)(uintptr_t)i);
    for (int round = 0; round < 25; round++) {
        touches = 0;
        for (size_t i = 0; i < count; i++) {
            handle[i] = dlopen(paths[i], RTLD_NOW);
            /* Static thread-local storage may be used up: the library is refused then, and the test goes on. */
            CHECK(handle[i] || strstr(dlerror(), "TLS"), "%s cannot be loaded", paths[i]);
            if (handle[i])
                touch[touches++] = (int (*)(int))dlsym(handle[i], "tls_touch");
        }
        CHECK(touches >= 3, "only %zu libraries could be loaded", touches);
        run_threads(8, touch_all);
        for (size_t i = 0; i < count; i++)
            CHECK(!handle[i] || dlclose(handle[i]) == 0, "dlclose");
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < 2; i++)
        join_thread(busy[i]);

    /* Loading again uses no more memory. */
    for (int round = 0; round < 10; round++) {
        for (size_t i = 0; i < count; i++)
            handle[i] = dlopen(paths[i], RTLD_NOW);
        for (size_t i = 0; i < count; i++)
            CHECK(!handle[i] || dlclose(handle[i]) == 0, "dlclose");
        if (round == 1)
            base = used_bytes();
    }
    CHECK(used_bytes() <= base + 10000, "%zu bytes in use, %zu after the first rounds", used_bytes(), base);
}

static void *open_and_close(void *data)
{
    char *const *paths = data;

    for (int i = 0; i < 60; i++) {
        void *handle = dlopen(paths[i % 3], RTLD_NOW);
        uint64_t random = (uint64_t)i;
        CHECK(handle != NULL, "%s", dlerror());
        int (*call)(int) = (int (*)(int))dlsym(handle, "tls_touch");
        CHECK(call != NULL, "tls_touch");
        call(1);
        use_heap(&random, 50);
        CHECK(dlclose(handle) == 0, "dlclose");
    }
    return NULL;
}

TEST(threads_that_load_libraries)
{
    char *paths[16];
    pthread_t thread[4];

    libraries(paths);
    for (size_t i = 0; i < 4; i++)
        start_thread(&thread[i], open_and_close, paths);
    for (size_t i = 0; i < 4; i++)
        join_thread(thread[i]);
}

CHECK_MAIN
