#include "mappings/stacks.h"

#include "base/bytes.h"
#include "base/search.h"
#include "base/text.h"
#include "process/proc.h"
#include "ruby/interpreter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many mappings of one length are fibers: Ruby maps the stacks of several at a time. */
#define FIBERS 3

/* The inaccessible mapping right below this one, which guards a stack, or NULL. */
static struct culet_mapping *guard_of(const struct culet_reading *reading, const struct culet_mapping *mapping)
{
    struct culet_mapping *before = mapping->id ? &reading->maps.all[mapping->id - 1] : NULL;
    bool is_adjacent = before && before->end == mapping->start;

    return is_adjacent && culet_starts_with(before->perms, "---p") && !before->inode ? before : NULL;
}

static uint64_t length_of(const struct culet_mapping *mapping)
{
    return mapping->end - mapping->start;
}

/* ---- lengths of mappings ---- */

struct lengths {
    uint64_t *all;
    size_t count, room;
};

static void sort_lengths(struct lengths *lengths)
{
    if (lengths->count)
        qsort(lengths->all, lengths->count, sizeof *lengths->all, culet_by_word);
}

/* Index of the first length that is not shorter. */
static size_t lower_bound(const struct lengths *lengths, uint64_t length)
{
    return CULET_FIRST_WHERE(i, 0, lengths->count, lengths->all[i] >= length);
}

static size_t count_equal(const struct lengths *lengths, uint64_t length)
{
    return lower_bound(lengths, length + 1) - lower_bound(lengths, length);
}

/* ---- reading ---- */

static bool read_line(pid_t process, pid_t tid, const char *file, char *line, size_t room)
{
    return culet_proc_line(culet_proc_path("/proc/%d/task/%d/%s", (int)process, (int)tid, file).text, line, room);
}

/* The last word but one of /proc/PID/task/TID/syscall: "NUMBER ARGUMENTS... STACK-POINTER INSTRUCTION", "-1 STACK-POINTER
 * INSTRUCTION", or "running". 0: the thread runs or has ended. */
static uint64_t stack_pointer(pid_t process, pid_t tid)
{
    char line[512];
    const char *last = read_line(process, tid, "syscall", line, sizeof line) ? strrchr(line, ' ') : NULL;

    while (last && last > line && last[-1] != ' ')
        last--;
    return last && last > line ? strtoull(last, NULL, 16) : 0;
}

/* Looks up the unknown stack pointers. The process runs on when the slice is over: waiting threads report theirs all
 * the same. Returns how many are still unknown. */
static size_t find_pointers(struct culet_reading *reading, struct culet_thread_stacks *threads)
{
    size_t unknown = 0;

    for (size_t i = 0; i < threads->count; i++) {
        if (culet_target_due(&reading->target))
            culet_reading_resume(reading);
        if (!threads->all[i].pointer)
            threads->all[i].pointer = stack_pointer(reading->target.process, threads->all[i].tid);
        unknown += !threads->all[i].pointer;
    }
    return unknown;
}

void culet_stacks_read(struct culet_reading *reading, struct culet_thread_stacks *threads)
{
    bool paused = reading->target.paused;
    pid_t *tids;

    threads->count = culet_proc_threads(reading->target.process, &tids);
    threads->all = culet_new(threads->count, sizeof *threads->all);
    for (size_t i = 0; i < threads->count; i++)
        threads->all[i].tid = tids[i];
    free(tids);
    /* Unknown pointers may be those of threads that ran after the slice. */
    if (find_pointers(reading, threads) && paused && !reading->target.paused) {
        culet_reading_pause(reading);
        find_pointers(reading, threads);
    }
}

/* ---- control blocks ---- */

/* Whether a thread of glibc's has, or had, its stack here: its control block is in the last page and begins with a
 * pointer to itself, with another one 16 bytes on (tcbhead_t, sysdeps/x86_64/nptl/tls.h). Other machines have no
 * such block. */
static bool has_control_block(struct culet_reading *reading, const struct culet_mapping *mapping)
{
#ifdef __x86_64__
    uint64_t page = mapping->end - reading->page_bytes, first, second;

    for (uint64_t at = page; reading->readable && at < mapping->end - 64; at += 64)
        if (culet_memory_word(&reading->memory, at, &first) && first == at &&
            culet_memory_word(&reading->memory, at + 16, &second) && second == at)
            return true;
#endif
    (void)reading;
    (void)mapping;
    return false;
}

/* ---- fibers ---- */

/* Whether the mapping can be a fiber's stack: a guard page below, and not named by a walker. */
static bool can_be_fiber(const struct culet_reading *reading, const struct culet_mapping *mapping)
{
    const struct culet_mapping *guard = guard_of(reading, mapping);

    return !mapping->use && guard && length_of(guard) == reading->page_bytes && culet_mapping_is_heap_like(mapping);
}

static struct lengths fiber_lengths(const struct culet_reading *reading)
{
    struct lengths lengths = {0};

    for (size_t i = 0; i < reading->maps.count; i++)
        if (can_be_fiber(reading, &reading->maps.all[i]))
            CULET_APPEND(lengths.all, lengths.count, lengths.room) = length_of(&reading->maps.all[i]);
    sort_lengths(&lengths);
    return lengths;
}

/* Whether the thread runs in a fiber: its stack pointer is where no thread's own stack can be. */
static bool is_in_fiber(struct culet_reading *reading, const struct culet_thread_stack *thread,
                        const struct lengths *fibers)
{
    bool main_thread = thread->tid == reading->target.process, decidable = main_thread;

#ifdef __x86_64__
    decidable = true;
#endif
    return decidable && can_be_fiber(reading, thread->mapping) &&
           count_equal(fibers, length_of(thread->mapping)) >= FIBERS &&
           (main_thread || !has_control_block(reading, thread->mapping));
}

/* Finds the mapping of each thread's stack pointer. */
static void find_stacks(struct culet_reading *reading, struct culet_thread_stacks *threads)
{
    bool is_ruby = culet_ruby_is_loaded(reading);
    struct lengths fibers = fiber_lengths(reading);

    for (size_t i = 0; i < threads->count; i++) {
        struct culet_thread_stack *thread = &threads->all[i];
        thread->mapping = thread->pointer ? culet_maps_at(&reading->maps, thread->pointer) : NULL;
        thread->in_fiber = is_ruby && thread->mapping && is_in_fiber(reading, thread, &fibers);
    }
    free(fibers.all);
}

/* ---- naming ---- */

static void name_stack(const struct culet_reading *reading, struct culet_mapping *mapping, const char *use,
                       const char *label)
{
    struct culet_mapping *guard = guard_of(reading, mapping);

    culet_mapping_name(mapping, use, "%s", label);
    if (guard)
        culet_mapping_name(guard, use, "guard");
}

/* Lengths of the threads' own stacks. */
static struct lengths stack_lengths(const struct culet_thread_stacks *threads)
{
    struct lengths lengths = {0};

    for (size_t i = 0; i < threads->count; i++)
        if (threads->all[i].mapping && !threads->all[i].in_fiber)
            CULET_APPEND(lengths.all, lengths.count, lengths.room) = length_of(threads->all[i].mapping);
    sort_lengths(&lengths);
    return lengths;
}

/* Number of stacks in each mapping, to be freed: newer kernels need no mappings between guarded stacks, so one
 * mapping can have several. */
static uint32_t *count_stacks(const struct culet_reading *reading, const struct culet_thread_stacks *threads)
{
    uint32_t *counts = culet_new(reading->maps.count, sizeof *counts);

    for (size_t i = 0; i < threads->count; i++)
        if (threads->all[i].mapping)
            counts[threads->all[i].mapping->id]++;
    return counts;
}

static void label_thread(const struct culet_reading *reading, const struct culet_thread_stack *thread,
                         uint32_t in_mapping, char *label, size_t room)
{
    const char *where = thread->in_fiber ? " in it" : "", *fiber = thread->in_fiber ? "fiber, " : "";

    if (in_mapping > 1)
        snprintf(label, room, "stacks of %u threads", (unsigned)in_mapping);
    else if (thread->tid == reading->target.process)
        snprintf(label, room, "%smain thread%s", fiber, where);
    else
        snprintf(label, room, "%sthread %s (%d)%s", fiber, thread->name, (int)thread->tid, where);
}

static void name_threads(const struct culet_reading *reading, const struct culet_thread_stacks *threads, bool in_fiber)
{
    uint32_t *counts = count_stacks(reading, threads);
    char label[128];

    for (size_t i = 0; i < threads->count; i++) {
        const struct culet_thread_stack *thread = &threads->all[i];
        if (!thread->mapping || thread->in_fiber != in_fiber)
            continue;
        label_thread(reading, thread, counts[thread->mapping->id], label, sizeof label);
        name_stack(reading, &reading->maps.all[thread->mapping->id], in_fiber ? "fiber" : "stack", label);
    }
    free(counts);
}

/* glibc keeps the stacks of ended threads for new ones. */
static void name_ended(struct culet_reading *reading, const struct lengths *own)
{
    for (size_t i = 0; i < reading->maps.count; i++) {
        struct culet_mapping *mapping = &reading->maps.all[i];
        if (!mapping->use && culet_mapping_is_heap_like(mapping) && guard_of(reading, mapping) &&
            (count_equal(own, length_of(mapping)) || has_control_block(reading, mapping)))
            name_stack(reading, mapping, "stack", "of an ended thread");
    }
}

static void name_fibers(const struct culet_reading *reading, const struct lengths *own)
{
    struct lengths fibers = fiber_lengths(reading);

    for (size_t i = 0; i < reading->maps.count; i++) {
        struct culet_mapping *mapping = &reading->maps.all[i];
        uint64_t length = length_of(mapping);
        if (can_be_fiber(reading, mapping) && !count_equal(own, length) && count_equal(&fibers, length) >= FIBERS)
            name_stack(reading, mapping, "fiber", "fiber");
    }
    free(fibers.all);
}

void culet_stacks_name(struct culet_reading *reading, struct culet_thread_stacks *threads)
{
    for (size_t i = 0; i < threads->count; i++)
        read_line(reading->target.process, threads->all[i].tid, "comm", threads->all[i].name,
                  sizeof threads->all[i].name);
    find_stacks(reading, threads);
    struct lengths own = stack_lengths(threads);
    name_threads(reading, threads, false);
    name_ended(reading, &own);
    name_threads(reading, threads, true);
    if (culet_ruby_is_loaded(reading))
        name_fibers(reading, &own);
    free(own.all);
}
