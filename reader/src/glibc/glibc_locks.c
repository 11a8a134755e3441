#define _GNU_SOURCE
#include "glibc/glibc_heap.h"

#include <sys/syscall.h>

/* How often the process is released because of one lock. Each rest takes at least a millisecond, much longer than a
 * change of the heap. */
#define WAITS 50u
/* Limit for the whole reading: in a damaged heap locks may stay taken for ever. */
#define MOST_WAITS 400u
/* From this wait on threads are run one by one, which makes the pause longer. */
#define PATIENT_WAITS 3u

/* How often a single thread is run to get it out of malloc. */
#define THREAD_RUNS 16u

static bool is_locked(struct culet_reading *reading, const struct culet_glibc_arena *arena)
{
    uint64_t word;

    /* The mutex, an int, is the first member of an arena. */
    return culet_memory_word(&reading->memory, arena->address, &word) && (uint32_t)word != 0;
}

static size_t count_locked(struct culet_reading *reading, const struct culet_glibc *heap)
{
    size_t count = 0;

    for (size_t i = 0; i < heap->arena_count; i++)
        count += is_locked(reading, &heap->arenas[i]);
    return count;
}

/* Whether a thread is in libc's code, perhaps in malloc. */
static bool is_in_libc(const struct culet_reading *reading, const struct culet_glibc *heap, size_t thread)
{
    uint64_t instruction;
    long call;

    if (!culet_target_position(&reading->target, thread, &instruction, &call))
        return false;
    if (instruction < heap->text_start || instruction >= heap->text_end)
        return false;
    /* Of all system calls malloc makes only these. */
    return call < 0 || call == SYS_brk || call == SYS_mmap || call == SYS_munmap || call == SYS_mremap ||
           call == SYS_madvise || call == SYS_mprotect;
}

/* Whether a thread is changing this arena (NULL: any arena). A single thread takes no locks. */
static bool is_busy(struct culet_reading *reading, const struct culet_glibc *heap,
                    const struct culet_glibc_arena *arena)
{
    if (reading->target.tracing.count == 1 && is_in_libc(reading, heap, 0))
        return true;
    return arena ? is_locked(reading, arena) : count_locked(reading, heap) > 0;
}

/* Runs one thread until fewer arenas are locked. If that does not happen soon the locks are not held by this thread. */
static void run_thread(struct culet_reading *reading, const struct culet_glibc *heap, size_t thread)
{
    size_t before = count_locked(reading, heap);

    for (unsigned i = 0;
         i < THREAD_RUNS && before && !culet_target_due(&reading->target) && is_in_libc(reading, heap, thread); i++) {
        bool ran = culet_tracing_run_thread(&reading->target.tracing, thread);
        culet_pages_forget(&reading->pages);
        culet_memory_forget(&reading->memory);
        size_t after = count_locked(reading, heap);
        if (!ran || after < before || (after == before && i >= THREAD_RUNS / 4))
            return;
    }
}

/* Runs the threads that are in libc one by one until none holds a lock: a thread that holds one may wait long for a
 * processor, and in one long pause all arenas must be unlocked at once. */
static void run_threads(struct culet_reading *reading, const struct culet_glibc *heap,
                        const struct culet_glibc_arena *arena)
{
    for (size_t thread = 0;
         thread < reading->target.tracing.count && !culet_target_due(&reading->target) && is_busy(reading, heap, arena);
         thread++)
        run_thread(reading, heap, thread);
}

void culet_glibc_wait_until_idle(struct culet_reading *reading, struct culet_glibc *heap,
                                 const struct culet_glibc_arena *arena)
{
    struct culet_target *target = &reading->target;

    /* In one long pause nothing may change any more once the walk has begun. */
    if (!target->paused || (target->mode == CULET_STOPPED && heap->walking))
        return;
    for (unsigned i = 0; i < WAITS && heap->lock_waits < MOST_WAITS && is_busy(reading, heap, arena); i++) {
        heap->lock_waits++;
        if (target->tracing.count > 1 && (target->mode == CULET_STOPPED || i >= PATIENT_WAITS)) {
            run_threads(reading, heap, arena);
            if (!is_busy(reading, heap, arena))
                return;
        }
        culet_target_release(target);
        culet_reading_pause(reading);
    }
}
