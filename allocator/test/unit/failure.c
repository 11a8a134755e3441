/* The kernel refuses memory: the k-th request, for every k (FAILURE_STEP in the environment: for every so many) that a scenario of all functions, threads and forks makes;
 * once, and from then on. The function returns NULL and ENOMEM, nothing else changes, and the program goes on. */
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "heap_counts.h"
#include "os.h"

#include <errno.h>
#include <pthread.h>

#define SLOTS 64
#define THREADS 2

static _Atomic long requests; /* since the scenario began */
static long refuse_at;        /* the request that is refused, from 1 */
static bool refuse_on;        /* and all behind it */

static bool refuse(void)
{
    long now = atomic_fetch_add(&requests, 1) + 1;

    return now == refuse_at || (refuse_on && now > refuse_at);
}

struct slot {
    unsigned char *start;
    size_t bytes;
    unsigned char mark;
};

static void fill(struct slot *slot, unsigned char *start, size_t bytes)
{
    slot->start = start;
    slot->bytes = bytes;
    slot->mark = (unsigned char)(bytes * 31 + 7);
    memset(start, slot->mark, bytes);
}

/* Every byte equals the one before it, and the first is as expected. */
static bool all_are(const unsigned char *start, size_t bytes, unsigned char expected)
{
    return bytes == 0 || (start[0] == expected && memcmp(start, start + 1, bytes - 1) == 0);
}

static void verify(const struct slot *slot, size_t bytes)
{
    CHECK(all_are(slot->start, bytes, slot->mark), "a block of %zu bytes was changed", slot->bytes);
}

/* A request may fail only while the kernel refuses, and only as documented. */
static bool given(const void *got)
{
    if (!got) {
        CHECK_EQUAL(errno, ENOMEM);
        CHECK(atomic_load(&requests) >= refuse_at && refuse_at > 0, "NULL though nothing was refused");
    }
    errno = 0;
    return got != NULL;
}

static void clear(struct slot *slot)
{
    if (slot->start)
        verify(slot, slot->bytes);
    errno = 5;
    culet_free(slot->start);
    CHECK_EQUAL(errno, 5);
    errno = 0;
    slot->start = NULL;
}

static void get_one(struct slot *slot, unsigned how, size_t bytes)
{
    void *got = slot;

    switch (how % 6) {
    case 0:
        got = culet_malloc(bytes);
        break;
    case 1:
        got = culet_calloc(3, bytes / 3 + 1);
        CHECK(!got || all_are(got, bytes, 0), "calloc's %zu bytes are not zero", bytes);
        break;
    case 2:
        got = culet_memalign(256, bytes);
        break;
    case 3:
        if (culet_posix_memalign(&got, 8192, bytes) == ENOMEM) {
            CHECK(got == slot, "a failed posix_memalign wrote its result");
            errno = ENOMEM;
            got = NULL;
        }
        break;
    case 4:
        got = culet_aligned_alloc((size_t)4 << 20, bytes);
        break;
    case 5:
        got = culet_pvalloc(bytes);
        break;
    }
    if (given(got))
        fill(slot, got, bytes);
}

static void resize_one(struct slot *slot, size_t bytes)
{
    size_t kept = bytes < slot->bytes ? bytes : slot->bytes;
    unsigned char *got = culet_realloc(slot->start, bytes);

    if (!given(got)) {
        CHECK(bytes > slot->bytes, "a shrinking realloc failed");
        verify(slot, slot->bytes);
        return;
    }
    slot->start = got;
    verify(slot, kept);
    fill(slot, got, bytes);
}

/* Sizes of every kind: slabs of many classes, large and huge blocks. */
static size_t size_of(unsigned i)
{
    static const size_t sizes[] = {1, 24, 100, 700, 1500, 6000, 20000, 32768, 50000, 400000, 1 << 20, (1 << 20) + 1};

    return sizes[i % (sizeof sizes / sizeof *sizes)];
}

static void use_everything(struct slot *slots, unsigned rounds)
{
    uint64_t seed = 1;

    for (unsigned i = 0; i < rounds; i++) {
        struct slot *slot = &slots[check_random(&seed) % SLOTS];
        if (!slot->start)
            get_one(slot, i, size_of((unsigned)check_random(&seed)));
        else if (check_random(&seed) % 2)
            resize_one(slot, size_of((unsigned)check_random(&seed)));
        else
            clear(slot);
    }
    culet_malloc_trim(0);
    CHECK(culet_mallinfo2().arena < (size_t)1 << 40, "counts out of nothing");
}

static void *thread(void *data)
{
    (void)data;
    struct slot slots[SLOTS] = {{.start = NULL}};

    use_everything(slots, 40);
    for (unsigned i = 0; i < SLOTS; i++)
        clear(&slots[i]);
    return NULL;
}

static void check_fork(struct slot *slots)
{
    pid_t child = fork();

    if (child == 0) {
        use_everything(slots, 40);
        for (unsigned i = 0; i < SLOTS; i++)
            clear(&slots[i]);
        culet_heap_check();
        _exit(0);
    }
    check_child(child);
}

static void scenario(void)
{
    static struct slot slots[SLOTS];
    pthread_t threads[THREADS];
    struct heap_counts counts;

    culet_os_refuse = refuse;
    use_everything(slots, 100);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, thread, NULL) == 0, "no thread");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    check_fork(slots);
    use_everything(slots, 100);
    culet_heap_check();

    /* The kernel grants memory again, so the heap does. */
    culet_os_refuse = NULL;
    for (unsigned i = 0; i < SLOTS; i++) {
        clear(&slots[i]);
        size_t bytes = size_of(i);
        unsigned char *got = culet_malloc(bytes);
        CHECK(got, "no memory for %zu bytes though the kernel grants memory again", bytes);
        fill(&slots[i], got, bytes);
    }
    for (unsigned i = 0; i < SLOTS; i++)
        clear(&slots[i]);
    culet_heap_check();
    count_heap(&counts);
    CHECK_EQUAL(counts.used_bytes, 0);
    CHECK_EQUAL(counts.large.large + counts.large.huge, 0);
}

/* Runs the scenario in a process of its own, with a fresh heap. Returns the requests it made. */
static long run_refusing(long at, bool on)
{
    _Atomic long *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(made != MAP_FAILED, "no shared page");
    pid_t child = fork();

    if (child == 0) {
        alarm(200);
        refuse_at = at;
        refuse_on = on;
        scenario();
        atomic_store(made, atomic_load(&requests));
        _exit(0);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "request %ld refused%s: wait status 0x%x", at,
          on ? ", and all later ones" : "", (unsigned)status);
    long count = atomic_load(made);
    munmap((void *)made, 4096);
    return count;
}

static void refuse_each(bool on)
{
    const char *given = getenv("FAILURE_STEP");
    long k = 1, made, step = given && !getenv("CULET_TEST_ALL") ? atol(given) : 1;

    CHECK(step > 0, "FAILURE_STEP is no number");
    do {
        alarm(CHECK_SECONDS);
        made = run_refusing(k, on);
        k += step;
    } while (made >= k - step);
    CHECK(k > 20, "the scenario made only %ld requests", k - 1);
}

TEST(nothing_fails_while_nothing_is_refused)
{
    CHECK(run_refusing(0, false) > 20, "the scenario asks for too little");
}

TEST(each_single_request_may_be_refused)
{
    refuse_each(false);
}

TEST(each_request_and_all_later_ones_may_be_refused)
{
    refuse_each(true);
}

CHECK_MAIN
