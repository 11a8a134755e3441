/* fuzz.c - random operations of the whole interface by threads that share their blocks, with forks and refused memory,
 * against a model: contents, alignment, overlap, usable sizes, zeros, errno, the bytes in use.
 *
 *   fuzz [--seed N] [--threads N] [--rounds N] [--steps N] [--uncounted 1] [TEST ...]
 *
 * --seed 0 takes a random seed and prints it. The operations of each thread follow from the seed alone; the blocks that
 * they meet depend on the other threads. So a run with one thread is repeated exactly, one with several in kind.
 * --uncounted: bytes in use cannot be compared, because samples of the memory profile count as pages, or a hardened
 * process keeps freed blocks.
 *
 * Built twice: with the sources linked in (CULET_PREFIXED) for the sanitizers, and as an ordinary program for the
 * preloaded library. */
#define _GNU_SOURCE
#include "fuzz_block.h"
#include "programs/scavenger.h"

#ifdef CULET_PREFIXED
#include "harden.h"
#include "heap.h"
#include "heap_counts.h"
#include "os.h"
#include "wakeup.h"
#endif

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#ifdef CULET_PREFIXED
#define OFFERED(function) true
#else
#define OFFERED(function) (function != NULL) /* not every libc has these two */
#pragma weak free_sized
#pragma weak free_aligned_sized
#endif

#define SLOTS 1200
#define THREADS_MOST 64
#define CHILD_SECONDS 120 /* a child needs some milliseconds; one that hangs is ended by its alarm */
#define MEBIBYTE ((size_t)1 << 20)

/* The thread that sets `taken` has the slot. */
struct slot {
    _Atomic bool taken;
    struct block block; /* start is NULL when there is none */
};

/* All random numbers of a step; their count does not depend on what the step finds. */
struct step {
    uint64_t what, slot, size, shape, tag, rare;
};

static struct slot slots[SLOTS];
static unsigned thread_count = 4, rounds = 6;
static unsigned long steps = 4000;
static unsigned fork_every;              /* steps; 0: never */
static unsigned forks_apart;             /* the main thread forks so often in a round, and does nothing else */
static unsigned statistics_every = 2048; /* steps */
static unsigned long uncounted;
static _Atomic bool forks_done;
static _Atomic bool refusals;    /* memory may be refused */
static _Atomic uint64_t refused; /* and was, so often */
static _Atomic bool limits_end;
static bool in_child;
static pthread_barrier_t gate;

static uint64_t thread_seed(unsigned number)
{
    return fuzz_seed * UINT64_C(1000003) + number;
}

static struct step draw(uint64_t *random)
{
    struct step step;

    step.what = check_random(random);
    step.slot = check_random(random);
    step.size = check_random(random);
    step.shape = check_random(random);
    step.tag = check_random(random);
    step.rare = check_random(random);
    return step;
}

/* Sizes of all kinds of block, and around the borders between them. */
static size_t step_bytes(uint64_t size)
{
    uint64_t kind = size % 256, n = size / 256;

    if (kind < 150)
        return n % 600;
    if (kind < 200)
        return n % 5000;
    if (kind < 230)
        return n % 40000;
    if (kind < 240)
        return 4096 * (1 + n % 10) + n / 10 % 3 - 1;
    if (kind < 250)
        return ((size_t)16 << n / 4 % 15) + n % 4 - 2;
    if (kind < 254)
        return n % 400000;
    return n % 8 ? n % 1200000 : n % (5 * MEBIBYTE);
}

/* A power of two, mostly a small one. */
static size_t step_alignment(uint64_t shape, unsigned least)
{
    return (size_t)1 << (least + shape % (shape / 64 % 16 ? 8 : 18));
}

/* ---- one operation each ---- */

/* Memory may be refused where that is expected, with ENOMEM only. */
static bool given(const void *got, size_t bytes)
{
    if (got)
        return true;
    AGREE(errno == ENOMEM, "no memory for %zu bytes, and errno is %d", bytes, errno);
    AGREE(atomic_load_explicit(&refusals, memory_order_relaxed), "no memory for %zu bytes", bytes);
    atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
    return false;
}

static void check_zeros(const unsigned char *start, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        AGREE(!start[i], "byte %zu of %zu from calloc is not zero", i, bytes);
}

static void *get_posix(struct block *block)
{
    void *got = block;
    int error = FUZZ(posix_memalign)(&got, block->alignment, block->bytes);

    AGREE(error == 0 || (error == ENOMEM && got == block), "posix_memalign returned %d and %p", error, got);
    errno = error; /* it does not set errno itself */
    return error ? NULL : got;
}

static void *get_calloc(struct block *block, size_t each)
{
    block->bytes = block->bytes / each * each;
    void *got = FUZZ(calloc)(block->bytes / each, each);
    if (got)
        check_zeros(got, block->bytes);
    return got;
}

static void *get_pages(struct block *block, bool whole)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

#ifdef CULET_PREFIXED
    page = culet_os_page_bytes();
#endif
    block->alignment = page;
    if (!whole)
        return FUZZ(valloc)(block->bytes);
    size_t bytes = block->bytes;
    block->bytes = bytes ? (bytes + page - 1) / page * page : page;
    return FUZZ(pvalloc)(bytes);
}

static void get(struct slot *slot, const struct step *step)
{
    struct block block = {.bytes = step_bytes(step->size), .alignment = 16};

    errno = 0;
    switch (step->what / 128 % 12) {
    case 0:
    case 1:
        block.start = get_calloc(&block, 1 + step->shape % 40);
        break;
    case 2:
        block.alignment = step_alignment(step->shape, 3);
        block.start = get_posix(&block);
        break;
    case 3:
        block.alignment = step_alignment(step->shape, 0);
        block.start = FUZZ(memalign)(block.alignment, block.bytes);
        break;
    case 4:
        block.alignment = step_alignment(step->shape, 0);
        block.start = FUZZ(aligned_alloc)(block.alignment, block.bytes);
        break;
    case 5:
        block.start = step->shape % 8 ? FUZZ(realloc)(NULL, block.bytes) : get_pages(&block, step->shape / 8 % 2);
        break;
    case 6:
        block.start = FUZZ(reallocarray)(NULL, block.bytes, 1);
        break;
    default:
        block.start = FUZZ(malloc)(block.bytes);
    }
    if (!given(block.start, block.bytes))
        return;
    block_enter(&block, step->tag);
    slot->block = block;
}

static void give_sized(const struct block *block)
{
    if (OFFERED(FUZZ(free_sized)) && block->alignment <= 16)
        FUZZ(free_sized)(block->start, block->bytes);
    else
        FUZZ(free)(block->start);
}

static void give_aligned_sized(const struct block *block)
{
    if (OFFERED(FUZZ(free_aligned_sized)))
        FUZZ(free_aligned_sized)(block->start, block->alignment, block->bytes);
    else
        FUZZ(free)(block->start);
}

static void release(struct slot *slot, uint64_t how)
{
    struct block block = slot->block;

    block_check(&block);
    slot->block.start = NULL;
    errno = 78;
    switch (how % 6) {
    case 0:
        give_sized(&block);
        break;
    case 1:
        give_aligned_sized(&block);
        break;
    case 2:
        AGREE(FUZZ(realloc)(block.start, 0) == NULL, "realloc of %p to 0 bytes returned a block", (void *)block.start);
        break;
    default:
        FUZZ(free)(block.start);
    }
    AGREE(errno == 78, "a free changed errno to %d", errno);
}

/* Any size, or one near to the block's own. */
static void resize(struct slot *slot, const struct step *step)
{
    struct block *block = &slot->block;
    size_t bytes = 1 + (step->shape % 3 ? step_bytes(step->size) : block->bytes + step->size % (block->bytes + 64));
    size_t result = bytes < block->bytes ? bytes : block->bytes;

    block_check(block);
    errno = 0;
    void *got = step->shape / 3 % 2 ? FUZZ(realloc)(block->start, bytes) : FUZZ(reallocarray)(block->start, 1, bytes);
    if (!given(got, bytes)) {
        block_check(block);
        return;
    }
    block->start = got;
    block_read(block, result);
    block->bytes = bytes;
    block->alignment = 16;
    block_enter(block, step->tag);
}

/* Impossible and invalid requests: refused, and the block is unchanged. */
static void request_too_much(const struct block *block, const struct step *step)
{
    size_t bytes = SIZE_MAX - step->size % MEBIBYTE * (step->size / MEBIBYTE % 3);
    void *got = NULL, *result = &got;
    int expected = ENOMEM, error;

    errno = 0;
    switch (step->shape % 8) {
    case 0:
        got = FUZZ(malloc)(bytes);
        break;
    case 1:
        got = FUZZ(calloc)(bytes / 2, 3 + step->shape / 8 % 100);
        break;
    case 2:
        got = FUZZ(realloc)(block->start, bytes);
        break;
    case 3:
        got = FUZZ(reallocarray)(block->start, bytes / 4, 5 + step->shape / 8 % 100);
        break;
    case 4:
        got = FUZZ(memalign)((size_t)1 << step->shape / 8 % 63, bytes / 2 + 1);
        break;
    case 5: /* no power of two, or less than a pointer */
        expected = errno = EINVAL;
        error = FUZZ(posix_memalign)(&result, step->shape / 8 % 2 ? 24 : 4, 100);
        AGREE(error == EINVAL && result == &got, "posix_memalign returned %d and %p", error, result);
        break;
    case 6:
        errno = ENOMEM;
        error = FUZZ(posix_memalign)(&result, 64, bytes);
        AGREE(error == ENOMEM && result == &got, "posix_memalign returned %d and %p", error, result);
        break;
    default:
        got = step->shape / 8 % 2 ? FUZZ(pvalloc)(bytes) : FUZZ(malloc)((size_t)PTRDIFF_MAX - step->size % 5000);
    }
    AGREE(!got, "%zu bytes were given", bytes);
    AGREE(errno == expected, "errno is %d, expected %d", errno, expected);
    block_check(block);
}

/* Moves a block to another slot, where other threads find it. */
static void move(struct slot *slot, const struct step *step)
{
    struct slot *other = &slots[step->shape % SLOTS];

    if (other == slot || atomic_exchange_explicit(&other->taken, true, memory_order_acquire))
        return;
    struct block block = other->block;
    other->block = slot->block;
    slot->block = block;
    atomic_store_explicit(&other->taken, false, memory_order_release);
}

/* In the child of a sanitized program no stream is opened: libc's malloc is the sanitizer's there, whose locks a fork
 * leaves locked (until LLVM 17). */
static bool libc_may_allocate(void)
{
#ifdef CULET_PREFIXED
    return !in_child;
#else
    return true;
#endif
}

static void read_statistics(uint64_t how)
{
    FILE *file;

    switch (how % 4) {
    case 0:
        FUZZ(malloc_trim)(how / 4 % 2 ? 0 : how / 8 % (4 * MEBIBYTE));
        break;
    case 1:
        AGREE(FUZZ(mallinfo2)().arena > 0, "a heap without %s", "memory");
        break;
    case 2: /* a stream wants memory itself, which may be refused */
        if (libc_may_allocate() && (file = fopen("/dev/null", "w"))) {
            int error = FUZZ(malloc_info)(0, file);
            AGREE(error == 0, "malloc_info returned %d", error);
            fclose(file);
        }
        break;
    default:
        AGREE(FUZZ(malloc_usable_size)(NULL) == 0, "nothing has %s", "a size");
        FUZZ(free)(NULL);
    }
}

static void act(struct slot *slot, const struct step *step)
{
    unsigned what = step->what % 128;

    if (step->rare % statistics_every == 0)
        read_statistics(step->rare / statistics_every);
    if (!slot->block.start)
        get(slot, step);
    else if (what < 50)
        release(slot, step->shape);
    else if (what < 84)
        resize(slot, step);
    else if (what < 100)
        move(slot, step);
    else if (what < 108)
        request_too_much(&slot->block, step);
    else if (what < 118)
        block_check(&slot->block);
    else
        block_write(&slot->block, step->tag);
}

static void step(uint64_t *random)
{
    struct step step = draw(random);
    struct slot *slot = &slots[step.slot % SLOTS];

    if (atomic_exchange_explicit(&slot->taken, true, memory_order_acquire))
        return;
    act(slot, &step);
    atomic_store_explicit(&slot->taken, false, memory_order_release);
}

/* ---- everything at once; no other thread is at work then ---- */

/* Bytes in use, as the allocator counts them. */
static size_t used_bytes(void)
{
    struct mallinfo2 info = FUZZ(mallinfo2)();
    return info.uordblks + info.hblkhd;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)(*(struct block *const *)a)->start, y = (uintptr_t)(*(struct block *const *)b)->start;
    return (x > y) - (x < y);
}

/* A sort that allocates nothing: qsort may. */
static void sort(struct block **at, size_t count)
{
    for (size_t gap = count / 2; gap; gap /= 2)
        for (size_t i = gap; i < count; i++)
            for (size_t k = i; k >= gap && by_address(&at[k - gap], &at[k]) > 0; k -= gap) {
                struct block *swap = at[k];
                at[k] = at[k - gap];
                at[k - gap] = swap;
            }
}

/* Checks every block that no thread has taken; returns their bytes. */
static size_t check_all(void)
{
    struct block *sorted[SLOTS];
    size_t count = 0, bytes = 0;

    for (size_t i = 0; i < SLOTS; i++)
        if (!atomic_load(&slots[i].taken) && slots[i].block.start) {
            block_check(&slots[i].block);
            bytes += slots[i].block.usable;
            sorted[count++] = &slots[i].block;
        }
    sort(sorted, count);
    for (size_t i = 1; i < count; i++)
        AGREE(sorted[i - 1]->start + sorted[i - 1]->usable <= sorted[i]->start, "%p of %zu bytes overlaps %p",
              (void *)sorted[i - 1]->start, sorted[i - 1]->usable, (void *)sorted[i]->start);
    return bytes;
}

/* Only culet counts whole blocks and nothing else; glibc adds headers and per-thread caches. */
static bool on_culet(void)
{
    int (*active)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "culet_active");
#ifdef CULET_PREFIXED
    active = culet_active;
#endif
    return active && active() == 1;
}

static void check_books(size_t expected)
{
    size_t used = used_bytes();

    if (!on_culet())
        return;
    CHECK(used == expected || uncounted, "--seed %lu: %zu bytes in use by the heap's count, %zu by the model's",
          (unsigned long)fuzz_seed, used, expected);
#ifdef CULET_PREFIXED
    culet_heap_check();
#endif
}

/* Of a heap that libc does not use. */
static void check_empty(void)
{
#ifdef CULET_PREFIXED
    struct heap_counts counts;

    if (culet_harden_level)
        return;
    count_heap(&counts);
    CHECK_EQUAL(counts.used_bytes, 0);
    CHECK_EQUAL(counts.pages.used, 0);
#endif
}

static void give_all(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (!atomic_load(&slots[i].taken) && slots[i].block.start)
            release(&slots[i], i);
}

/* ---- forks ---- */

/* The thread sanitizer's own allocator may have been locked by a thread that the child lacks, and a new thread needs it. */
static void begin_scavenger_of_child(void)
{
#ifdef __SANITIZE_THREAD__
    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_UNAVAILABLE);
#else
    begin_scavenger_of(FUZZ(malloc), FUZZ(free));
#endif
}

/* A child has all blocks and uses them. Blocks that other threads had taken are lost to it. */
static void live_as_child(uint64_t random, unsigned long life)
{
    in_child = true;
    begin_scavenger_of_child();
    size_t lost = used_bytes(), all = check_all();

    AGREE(lost >= all || !on_culet(), "%zu bytes in use by the heap's count, %zu by the model's", lost, all);
    lost -= all;
    for (unsigned long i = 0; i < life; i++)
        step(&random);
    check_books(lost + check_all());
    give_all();
    FUZZ(malloc_trim)(0);
    check_books(lost);
}

static void fork_a_child(uint64_t *random)
{
    uint64_t seed = check_random(random);
    pid_t child = fork();

    if (child == 0) {
        alarm(CHILD_SECONDS);
        live_as_child(seed, seed % 600);
        _exit(0);
    }
    check_child(child);
}

/* ---- refusals ---- */

#ifdef CULET_PREFIXED

static bool refuse_some(void)
{
    static __thread uint64_t random = 5;
    return check_random(&random) % 3 != 0;
}

static void start_refusals(void)
{
    culet_os_refuse = refuse_some;
}

static void *change_limits(void *data)
{
    return data;
}

static void end_refusals(void)
{
    culet_os_refuse = NULL;
}

#else

static rlim_t mapped_bytes(void)
{
    char text[100] = "";
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

    CHECK(file >= 0 && read(file, text, sizeof text - 1) > 0, "/proc/self/statm cannot be read");
    close(file);
    return strtoul(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void set_limit(int resource, rlim_t bytes)
{
    struct rlimit limit;

    CHECK(getrlimit(resource, &limit) == 0, "getrlimit failed");
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    CHECK(setrlimit(resource, &limit) == 0, "setrlimit failed");
}

/* The limits move around the mapped bytes while the others allocate. They stay where start_refusals set them until
 * memory was refused once. */
static void *change_limits(void *data)
{
    static const int resources[] = {RLIMIT_AS, RLIMIT_DATA};
    uint64_t random = thread_seed(1000);
    struct timespec nap = {.tv_nsec = 300000};

    while (!atomic_load(&limits_end)) {
        uint64_t n = check_random(&random);
        if (atomic_load(&refused))
            set_limit(resources[n / 4 % 2], n % 4 == 0 ? RLIM_INFINITY : mapped_bytes() * (n / 8 % 48 + 64) / 96);
        nanosleep(&nap, NULL);
    }
    return data;
}

static void start_refusals(void)
{
    set_limit(RLIMIT_AS, 1);
}

static void end_refusals(void)
{
    set_limit(RLIMIT_AS, RLIM_INFINITY);
    set_limit(RLIMIT_DATA, RLIM_INFINITY);
}

#endif

/* ---- runs ---- */

static void work(unsigned number)
{
    uint64_t random = thread_seed(number);

    for (unsigned long i = 0; forks_apart ? !atomic_load(&forks_done) : i < steps; i++) {
        step(&random);
        if (fork_every && i % fork_every == number * 7 % fork_every)
            fork_a_child(&random);
    }
}

/* The heap is used by one other thread alone then. */
static void fork_apart(unsigned number)
{
    uint64_t random = thread_seed(number);

    for (unsigned i = 0; i < forks_apart; i++)
        fork_a_child(&random);
    atomic_store(&forks_done, true);
}

/* All threads wait for one another before and behind each round. */
static void *take_part(void *data)
{
    pthread_barrier_wait(&gate);
    work((unsigned)(uintptr_t)data);
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate); /* the counts are checked in between */
    return NULL;
}

/* A round with new threads; the blocks stay from one to the next. */
static void run_round(unsigned round)
{
    pthread_t thread[THREADS_MOST], limiter;
    unsigned first = round * THREADS_MOST + 1;

    CHECK(pthread_barrier_init(&gate, NULL, thread_count) == 0, "pthread_barrier_init");
    for (unsigned t = 1; t < thread_count; t++)
        CHECK(pthread_create(&thread[t], NULL, take_part, (void *)(uintptr_t)(first + t)) == 0, "pthread_create");
    atomic_store(&limits_end, false);
    if (refusals)
        CHECK(pthread_create(&limiter, NULL, change_limits, NULL) == 0, "pthread_create");
    size_t base = used_bytes() - check_all(); /* what libc holds for the threads */
    if (refusals)
        start_refusals();

    atomic_store(&forks_done, false);
    pthread_barrier_wait(&gate);
    if (forks_apart)
        fork_apart(first);
    else
        work(first);
    pthread_barrier_wait(&gate);
    check_books(base + check_all());
    pthread_barrier_wait(&gate);

    if (refusals) {
        atomic_store(&limits_end, true);
        CHECK(pthread_join(limiter, NULL) == 0, "pthread_join");
        end_refusals();
    }
    for (unsigned t = 1; t < thread_count; t++)
        CHECK(pthread_join(thread[t], NULL) == 0, "pthread_join");
    pthread_barrier_destroy(&gate);
}

static void run_rounds(void)
{
    begin_scavenger_of(FUZZ(malloc), FUZZ(free));
    /* More where the heap asked the kernel for nothing in the moments that it would have been refused. */
    for (unsigned round = 0; round < rounds || (refusals && !refused && round < rounds + 100); round++) {
        alarm(CHECK_SECONDS); /* a bound for each */
        run_round(round);
    }
    size_t base = used_bytes() - check_all();
    give_all();
    check_books(base);
    FUZZ(malloc_trim)(0);
    check_books(base);
    check_empty();
}

TEST(served_by_the_expected_allocator)
{
#ifdef CULET_PREFIXED
    bool expected = true;
#else
    bool expected = getenv("EXPECT_CULET") != NULL;
#endif
    CHECK(on_culet() == expected, "culet is %sactive", expected ? "not " : "");
}

TEST(one_thread)
{
    thread_count = 1;
    run_rounds();
}

TEST(threads_that_share_blocks)
{
    run_rounds();
}

TEST(trims_and_statistics_in_the_middle)
{
    statistics_every = 16;
    run_rounds();
}

TEST(forks_in_the_middle)
{
    fork_every = 256;
    run_rounds();
}

TEST(forks_by_a_thread_that_only_forks)
{
    thread_count = 2;
    forks_apart = (unsigned)(steps / 64 + 1);
    run_rounds();
}

TEST(refusals_in_the_middle)
{
    refusals = true;
    run_rounds();
    CHECK(refused > 0, "--seed %lu: no memory was ever refused", (unsigned long)fuzz_seed);
    void *block = FUZZ(malloc)(64 * MEBIBYTE);
    CHECK(block, "no memory although nothing is refused any more");
    FUZZ(free)(block);
}

TEST(refusals_and_forks_in_the_middle)
{
    refusals = true;
    fork_every = 512;
    run_rounds();
}

/* ---- options ---- */

static unsigned long number(const char *option, const char *text, unsigned long least, unsigned long most)
{
    char *end = NULL;
    unsigned long value = text && *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;

    if (!end || *end || value < least || value > most) {
        fprintf(stderr, "fuzz: %s wants a number from %lu to %lu.\n", option, least, most);
        exit(2);
    }
    return value;
}

static void set_option(const char *option, const char *text)
{
    if (strcmp(option, "--seed") == 0)
        fuzz_seed = number(option, text, 0, ULONG_MAX);
    else if (strcmp(option, "--threads") == 0)
        thread_count = (unsigned)number(option, text, 1, THREADS_MOST);
    else if (strcmp(option, "--rounds") == 0)
        rounds = (unsigned)number(option, text, 1, 1000000);
    else if (strcmp(option, "--steps") == 0)
        steps = number(option, text, 1, ULONG_MAX);
    else if (strcmp(option, "--uncounted") == 0)
        uncounted = number(option, text, 0, 1);
    else {
        fprintf(stderr, "usage: fuzz [--seed N] [--threads N] [--rounds N] [--steps N] [--uncounted 1] [TEST ...]\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    int first = 1;

    for (; first < argc && strncmp(argv[first], "--", 2) == 0; first += 2)
        set_option(argv[first], first + 1 < argc ? argv[first + 1] : NULL);
    argv[first - 1] = argv[0];
    while (fuzz_seed == 0)
        if (getrandom(&fuzz_seed, sizeof fuzz_seed, 0) < 0)
            fuzz_seed = (uint64_t)getpid();
    printf("# --seed %lu --threads %u --rounds %u --steps %lu\n", (unsigned long)fuzz_seed, thread_count, rounds,
           steps);
    return check_main(argc - first + 1, argv + first - 1);
}
