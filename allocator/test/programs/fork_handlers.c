/* fork_handlers.c - fork with other libraries' handlers that allocate, registered before and after culet's. The library
 * of handlers.c is preloaded behind culet; the same code is linked in here, where its constructor runs last. */
#define CHECK_SECONDS 300
#include "handlers.c"
#include "programs.h"

#include <sched.h>

static _Atomic bool stop;

struct library {
    pthread_mutex_t *lock;
    void (*work)(int);
    int *prepared, *in_parent, *in_child;
};

static struct library early,
    late = {&handlers_lock, handlers_work, &handlers_prepared, &handlers_in_parent, &handlers_in_child};

/* The preloaded library by its name, as the program's own symbols hide the library's. */
static void find_early(void)
{
    void *library = dlopen(getenv("HANDLERS"), RTLD_NOW | RTLD_NOLOAD);

    CHECK(library != NULL, "%s is not preloaded", getenv("HANDLERS"));
    early.lock = dlsym(library, "handlers_lock");
    early.work = (void (*)(int))dlsym(library, "handlers_work");
    early.prepared = dlsym(library, "handlers_prepared");
    early.in_parent = dlsym(library, "handlers_in_parent");
    early.in_child = dlsym(library, "handlers_in_child");
    CHECK(early.prepared && early.prepared != &handlers_prepared, "the library is the program itself");
}

static void *allocate(void *unused)
{
    uint64_t random = (uintptr_t)&unused;

    while (!atomic_load(&stop))
        free(malloc(check_random(&random) % 5000));
    return NULL;
}

/* The library's normal work: it allocates while it holds its lock. */
static void *work(void *data)
{
    struct library *library = data;

    while (!atomic_load(&stop)) {
        pthread_mutex_lock(library->lock);
        for (int i = 0; i < 5; i++)
            free(malloc(700));
        void *fresh[40];
        for (int i = 0; i < 40; i++)
            fresh[i] = malloc(3000);
        for (int i = 0; i < 40; i++)
            free(fresh[i]);
        pthread_mutex_unlock(library->lock);
        sched_yield(); /* the lock is not fair */
    }
    return NULL;
}

/* FORKS times. */
static void fork_many(void)
{
    int times = getenv("FORKS") ? atoi(getenv("FORKS")) : (int)check_rounds(10, 25);
    struct library *both[] = {&early, &late};
    int prepared = *early.prepared, in_parent = *early.in_parent, in_child = *early.in_child;

    CHECK(times > 0, "FORKS is no number");
    for (int i = 1; i <= times; i++) {
        pid_t child = fork();
        if (child == 0)
            alarm(120);
        for (int l = 0; l < 2; l++) {
            CHECK_EQUAL(*both[l]->prepared, prepared + i);
            CHECK_EQUAL(*both[l]->in_child, in_child + (child == 0));
            CHECK_EQUAL(*both[l]->in_parent, in_parent + i - (child == 0));
        }
        if (child == 0) {
            early.work(1);
            late.work(1);
            _exit(0);
        }
        check_child(child);
    }
}

TEST(handlers_that_allocate)
{
    find_early();
    fork_many();
}

static void fork_beside(size_t threads, void *(*function)(void *), void *data)
{
    pthread_t thread[3];

    find_early();
    for (size_t i = 0; i < threads; i++)
        start_thread(&thread[i], function, data);
    fork_many();
    atomic_store(&stop, true);
    for (size_t i = 0; i < threads; i++)
        join_thread(thread[i]);
}

TEST(handlers_that_allocate_while_threads_do)
{
    fork_beside(3, allocate, NULL);
}

/* A handler waits for its library's lock, whose holder may be waiting for the allocator. */
TEST(handlers_that_lock_late)
{
    fork_beside(2, work, &late);
}

TEST(handlers_that_lock_early)
{
    fork_beside(2, work, &early);
}

CHECK_MAIN
