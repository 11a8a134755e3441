#define _GNU_SOURCE
#include "os.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifdef CULET_TEST
bool (*culet_os_refuse)(void);
bool (*culet_os_refuse_purge)(void);
#define REFUSED() (culet_os_refuse && culet_os_refuse())
#define PURGE_REFUSED() (culet_os_refuse_purge && culet_os_refuse_purge())
#define PURGES_ARE_REFUSED() (culet_os_refuse_purge != NULL)
#else
#define REFUSED() false
#define PURGE_REFUSED() false
#define PURGES_ARE_REFUSED() false
#endif

/* The value of an expression; errno stays as it is. */
#define KEEPING_ERRNO(expression)                                                                                      \
    ({                                                                                                                 \
        int saved = errno;                                                                                             \
        __typeof__(expression) result = (expression);                                                                  \
        errno = saved;                                                                                                 \
        result;                                                                                                        \
    })

size_t culet_os_page_bytes(void)
{
    static _Atomic size_t page;
    size_t known = atomic_load_explicit(&page, memory_order_relaxed);

    if (CULET_UNLIKELY(!known)) {
        known = getauxval(AT_PAGESZ);
        atomic_store_explicit(&page, known, memory_order_relaxed);
    }
    return known;
}

unsigned culet_os_processors(void)
{
    unsigned long mask[16] = {0};
    long bytes = KEEPING_ERRNO(syscall(SYS_sched_getaffinity, 0, sizeof mask, mask));
    unsigned count = 0;

    for (size_t i = 0; bytes > 0 && i < (size_t)bytes / sizeof mask[0]; i++)
        count += (unsigned)__builtin_popcountl(mask[i]);
    return count ? count : 1;
}

static void *map(void *at, size_t bytes, int protection, int flags)
{
    if (REFUSED())
        return NULL;
    void *start = KEEPING_ERRNO(mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0));
    return start == MAP_FAILED ? NULL : start;
}

void *culet_os_map(size_t bytes)
{
    return map(NULL, bytes, PROT_READ | PROT_WRITE, 0);
}

void *culet_os_map_aligned(size_t bytes, size_t alignment)
{
    size_t page = culet_os_page_bytes();

    if (alignment <= page)
        return culet_os_map(bytes);
    if (bytes > SIZE_MAX - alignment)
        return NULL;

    size_t slack = alignment - page;
    uintptr_t start = (uintptr_t)culet_os_map(bytes + slack);
    if (!start)
        return NULL;

    uintptr_t aligned = (start + slack) & ~(alignment - 1);
    size_t before = aligned - start, after = slack - before;
    if (before)
        culet_os_unmap((void *)start, before);
    if (after)
        culet_os_unmap((void *)(aligned + bytes), after);
    return (void *)aligned;
}

bool culet_os_map_at(void *start, size_t bytes)
{
    return map(start, bytes, PROT_READ | PROT_WRITE, MAP_FIXED) != NULL;
}

#define DONTNEED_LOCKED 24 /* Linux 5.18; older headers lack it */

/* MADV_DONTNEED, which the kernel refuses for locked memory; from the first such refusal on DONTNEED_LOCKED, which takes
 * back any page, if the kernel knows it. */
static _Atomic int purge_advice = MADV_DONTNEED;

/* Whether the kernel has taken back whole pages. */
static bool purge(void *start, size_t bytes)
{
    int advice = atomic_load_explicit(&purge_advice, memory_order_relaxed), saved = errno;
    bool done = madvise(start, bytes, advice) == 0;

    if (!done && errno == EINVAL && advice == MADV_DONTNEED && madvise(start, bytes, DONTNEED_LOCKED) == 0) {
        atomic_store_explicit(&purge_advice, DONTNEED_LOCKED, memory_order_relaxed);
        done = true;
    }
    errno = saved;
    return done;
}

bool culet_os_unmap(void *start, size_t bytes)
{
    if (KEEPING_ERRNO(munmap(start, bytes)) == 0)
        return true;
    purge(start, bytes);
    return false;
}

size_t culet_os_purge(uintptr_t start, size_t bytes)
{
    size_t page = culet_os_page_bytes();
    uintptr_t from = (start + page - 1) & ~(page - 1), to = (start + bytes) & ~(page - 1);

    return from < to && !PURGE_REFUSED() && purge((void *)from, to - from) ? to - from : 0;
}

void culet_os_clear(uintptr_t start, size_t bytes)
{
    size_t returned = culet_os_purge(start, bytes), before = returned ? -start & (culet_os_page_bytes() - 1) : 0;

    memset((void *)start, 0, before);
    memset((void *)(start + before + returned), 0, bytes - before - returned);
}

/* Older headers have neither. */
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef PIDFD_SELF_THREAD
#define PIDFD_SELF_THREAD (-10000)
#endif

static _Atomic enum { UNKNOWN, WORKS, MISSING } vectors;

/* Whether process_madvise takes back pages of the calling process, as it does where the kernel knows PIDFD_SELF_THREAD
 * (Linux 6.15). Asked by another call first, since systemd's filters permit that one for longer: a filter may end the
 * program for a call that it does not know. */
static bool has_vectors(void)
{
    if (CULET_UNLIKELY(atomic_load_explicit(&vectors, memory_order_relaxed) == UNKNOWN)) {
        long refused = KEEPING_ERRNO(syscall(SYS_pidfd_send_signal, PIDFD_SELF_THREAD, 0, NULL, 0));
        atomic_store_explicit(&vectors, refused ? MISSING : WORKS, memory_order_relaxed);
    }
    return atomic_load_explicit(&vectors, memory_order_relaxed) == WORKS && !PURGES_ARE_REFUSED();
}

#define PURGE_VECTOR 64

/* How many ranges, from the first on, the kernel has taken back by one call. */
static unsigned purge_vector(const struct culet_os_range *range, unsigned count)
{
    struct iovec vector[PURGE_VECTOR];
    unsigned purged = 0;

    if (!has_vectors())
        return 0;
    for (unsigned i = 0; i < count; i++)
        vector[i] = (struct iovec){(void *)range[i].start, range[i].bytes};
    int saved = errno, advice = atomic_load_explicit(&purge_advice, memory_order_relaxed);
    long bytes = syscall(SYS_process_madvise, PIDFD_SELF_THREAD, vector, (size_t)count, advice, 0);
    /* A container's filter may refuse it. */
    if (bytes < 0 && errno != EINVAL && errno != ENOMEM && errno != EINTR)
        atomic_store_explicit(&vectors, MISSING, memory_order_relaxed);
    errno = saved;
    for (; purged < count && bytes >= (long)range[purged].bytes; purged++)
        bytes -= (long)range[purged].bytes;
    return purged;
}

void culet_os_purge_ranges(struct culet_os_range *range, unsigned count)
{
    for (unsigned i = 0, here; i < count; i += here) {
        unsigned most = count - i < PURGE_VECTOR ? count - i : PURGE_VECTOR;
        here = most > 1 ? purge_vector(range + i, most) : 0;
        for (unsigned n = 0; n < here; n++)
            range[i + n].purged = true;
        /* The call ends at a range that the kernel refuses. */
        if (here < most) {
            range[i + here].purged = culet_os_purge(range[i + here].start, range[i + here].bytes) != 0;
            here++;
        }
    }
}

bool culet_os_resize(void *start, size_t old_bytes, size_t new_bytes)
{
    return !(new_bytes > old_bytes && REFUSED()) && KEEPING_ERRNO(mremap(start, old_bytes, new_bytes, 0)) != MAP_FAILED;
}

bool culet_os_move(void *start, size_t old_bytes, void *target, size_t new_bytes)
{
    int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

    return !REFUSED() && KEEPING_ERRNO(mremap(start, old_bytes, new_bytes, flags, target)) != MAP_FAILED;
}

void *culet_os_reserve(size_t bytes)
{
    return map(NULL, bytes, PROT_NONE, MAP_NORESERVE);
}

bool culet_os_open(void *start, size_t bytes)
{
    return !REFUSED() && KEEPING_ERRNO(mprotect(start, bytes, PROT_READ | PROT_WRITE)) == 0;
}

bool culet_os_close(void *start, size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;

    return KEEPING_ERRNO(mmap(start, bytes, PROT_NONE, flags, -1, 0)) != MAP_FAILED;
}

/* From Linux 6.13; older headers lack them. */
#define GUARD_INSTALL 102
#define GUARD_REMOVE 103
/* Guards that may have split mappings since the start, at most: the kernel allows some 65,000 mappings. */
#define SPLITS 8192
static _Atomic unsigned splits;

bool culet_os_guard(void *page)
{
    size_t bytes = culet_os_page_bytes();

    if (KEEPING_ERRNO(madvise(page, bytes, GUARD_INSTALL)) == 0)
        return true;
    if (atomic_fetch_add_explicit(&splits, 1, memory_order_relaxed) < SPLITS &&
        culet_os_purge((uintptr_t)page, bytes) == bytes && KEEPING_ERRNO(mprotect(page, bytes, PROT_NONE)) == 0)
        return true;
    atomic_fetch_sub_explicit(&splits, 1, memory_order_relaxed);
    return false;
}

bool culet_os_unguard(void *page)
{
    size_t bytes = culet_os_page_bytes();

    /* The kernel removes no guard from a page that was protected, and says that it has. */
    if (KEEPING_ERRNO(madvise(page, bytes, GUARD_REMOVE)) == 0 && !atomic_load_explicit(&splits, memory_order_relaxed))
        return true;
    return KEEPING_ERRNO(mprotect(page, bytes, PROT_READ | PROT_WRITE)) == 0;
}

void culet_os_random(void *to, size_t bytes)
{
    const unsigned char *start = (const unsigned char *)getauxval(AT_RANDOM);
    struct timespec now;
    long got = KEEPING_ERRNO(syscall(SYS_getrandom, to, bytes, GRND_NONBLOCK));

    if (got == (long)bytes)
        return;
    /* What the kernel gave the program at its start, the time and the process. */
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t state =
        (uint64_t)now.tv_nsec * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 32;
    for (size_t i = 0; i < bytes; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ((unsigned char *)to)[i] = (unsigned char)(state >> 56) ^ (start ? start[i % 16] : 0);
    }
}

bool culet_os_wipe_on_fork(void *start, size_t bytes)
{
    return KEEPING_ERRNO(madvise(start, bytes, MADV_WIPEONFORK)) == 0;
}

void culet_os_wait(_Atomic uint32_t *word, uint32_t value, unsigned microseconds)
{
    struct timespec time = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000L};

    KEEPING_ERRNO(syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, microseconds ? &time : NULL, NULL, 0));
}

void culet_os_wake(_Atomic uint32_t *word, int most)
{
    KEEPING_ERRNO(syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0));
}

bool culet_os_barrier_setup(void)
{
    return KEEPING_ERRNO(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0)) == 0;
}

bool culet_os_barrier(void)
{
    return KEEPING_ERRNO(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0)) == 0;
}

void culet_os_pause(unsigned microseconds)
{
    struct timespec time = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000L};

    KEEPING_ERRNO(microseconds ? syscall(SYS_nanosleep, &time, NULL) : sched_yield());
}
