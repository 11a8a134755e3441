/* Forks in signal handlers, also of signals that come in the middle of malloc and free: none hangs. Half of the children
 * exit in the handler, half return from it and go on. */
#include "abandoned.h"
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "threads.h"
#include "wakeup.h"

#include <errno.h>
#include <pthread.h>
#include <sys/time.h>

#define BLOCKS 500
#define MORE 300 /* rounds of a child that goes on */

static unsigned char *block[BLOCKS];
static size_t bytes[BLOCKS];
static uint64_t seed = 1;
static volatile sig_atomic_t forks, failures, child_rounds, awaited;
static bool children_return;

static void fork_now(int signal)
{
    int saved = errno, status;

    (void)signal;
    awaited = 0;
    pid_t child = fork();
    if (child == 0 && !(children_return && forks % 2))
        _exit(0);
    if (child == 0) {
        child_rounds = 1;
    } else if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        failures = failures + 1;
    }
    forks = forks + 1;
    errno = saved;
}

/* One signal, after up to 200 us. The next one is sent when the handler has returned: else none of the program would run
 * where a fork takes longer. */
static void start_timer(void)
{
    struct itimerval once = {.it_value = {.tv_usec = 1 + (suseconds_t)(check_random(&seed) % 200)}};

    awaited = 1;
    CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0, "no timer");
}

/* Of all kinds of blocks; slabs and segments come and go. */
static size_t size(void)
{
    uint64_t random = check_random(&seed);

    return random % 64 == 0  ? 1 + random / 64 % 3000000
           : random % 8 == 0 ? 1 + random / 64 % 100000
                             : random / 64 % 3000;
}

static void check_block(size_t i)
{
    unsigned char mark = (unsigned char)(i % 251 + 1);

    if (block[i] && bytes[i] && (block[i][0] != mark || block[i][bytes[i] - 1] != mark))
        CHECK(false, "block %zu of %zu bytes was changed", i, bytes[i]);
}

static void replace(void)
{
    size_t i = check_random(&seed) % BLOCKS;

    check_block(i);
    bytes[i] = size();
    if (i % 3) {
        culet_free(block[i]);
        block[i] = i % 2 ? culet_malloc(bytes[i]) : culet_calloc(1, bytes[i]);
    } else {
        block[i] = culet_realloc(block[i], bytes[i] + 1);
    }
    CHECK(block[i], "no memory");
    if (bytes[i]) {
        block[i][0] = (unsigned char)(i % 251 + 1);
        block[i][bytes[i] - 1] = (unsigned char)(i % 251 + 1);
    }
}

/* A child returns here, too. */
static void replace_under_signals(bool whole_heap)
{
    const char *given = getenv("SIGNAL_FORKS");
    int most = given ? atoi(given) : (int)check_rounds(120, 300);
    struct sigaction action = {.sa_handler = fork_now, .sa_flags = SA_RESTART};

    CHECK(sigaction(SIGALRM, &action, NULL) == 0, "no handler");
    CHECK(most > 0, "SIGNAL_FORKS is not a number");
    while (forks < most) {
        if (!awaited && !child_rounds)
            start_timer();
        replace();
        if (child_rounds && ++child_rounds > MORE)
            break;
    }
    for (size_t i = 0; i < BLOCKS; i++)
        check_block(i);
    if (whole_heap && !culet_abandoned())
        culet_heap_check();
    if (child_rounds)
        _exit(0);
    CHECK(failures == 0, "%d of %d children failed", (int)failures, (int)forks);
}

TEST(forks_in_handlers_of_a_single_thread)
{
    culet_free(culet_malloc(1));
    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_UNAVAILABLE);
    children_return = true;
    replace_under_signals(true);
}

TEST(forks_in_handlers_beside_the_scavenger)
{
    culet_free(culet_malloc(1));
    culet_wakeup_request_scavenger();
    children_return = true;
    replace_under_signals(true);
    CHECK(atomic_load(&culet_scavenger_state) >= CULET_SCAVENGER_ASLEEP, "there is no scavenger");
}

/* As if the handler had interrupted culet_abandoned() between its loads. */
TEST(a_child_that_goes_on_is_not_abandoned_by_the_mark_of_its_parent)
{
    culet_free(culet_malloc(1));
    culet_abandoned_watch();
    _Atomic uint32_t *mark = atomic_load(&culet_abandoned_mark);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQUAL(atomic_load(mark), 0);
        CHECK(!culet_abandoned_confirm(), "the child is taken for an abandoned one");
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child failed");
}

static _Atomic bool stop;

static void *churn(void *data)
{
    uint64_t own = (uintptr_t)data;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (!atomic_load(&stop))
        culet_free(culet_malloc(check_random(&own) % 50000));
    return NULL;
}

/* Where another thread exists only a child that ends in the handler may expect anything. */
TEST(forks_in_handlers_beside_another_thread)
{
    pthread_t thread;

    culet_free(culet_malloc(1));
    CHECK(pthread_create(&thread, NULL, churn, (void *)7) == 0, "no thread");
    replace_under_signals(false);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    culet_heap_check();
}

CHECK_MAIN
