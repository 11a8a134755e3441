#include "stacks.h"

#include "ruby.h"
#include "threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As many mappings of one length are fibers: Ruby maps the stacks of several at a time. */
#define FIBERS 3

static struct culet_threads threads;

/* The mapping without access right below this one, which keeps a stack from growing into what is there; or NULL. */
static struct culet_mapping *guard_of(const struct culet_scope *scope, const struct culet_mapping *mapping)
{
    struct culet_mapping *before = mapping->id ? &scope->maps.all[mapping->id - 1] : NULL;

    return before && before->end == mapping->start && strncmp(before->perms, "---p", 4) == 0 && !before->inode ? before
                                                                                                             : NULL;
}

/* Lengths of mappings, sorted: how many are alike is asked for each of many. */
struct lengths {
    uint64_t *all;
    size_t count, room;
};

static void note_length(struct lengths *lengths, uint64_t length)
{
    lengths->all = culet_grow(lengths->all, &lengths->room, lengths->count + 1, sizeof *lengths->all);
    lengths->all[lengths->count++] = length;
}

static int compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

    return first < second ? -1 : first > second;
}

static void sort_lengths(struct lengths *lengths)
{
    if (lengths->count)
        qsort(lengths->all, lengths->count, sizeof *lengths->all, compare);
}

/* Index of the first that is not shorter. */
static size_t not_shorter(const struct lengths *lengths, uint64_t length)
{
    size_t from = 0, to = lengths->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (lengths->all[middle] < length)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static size_t count_alike(const struct lengths *lengths, uint64_t length)
{
    return not_shorter(lengths, length + 1) - not_shorter(lengths, length);
}

static void free_lengths(struct lengths *lengths)
{
    free(lengths->all);
    *lengths = (struct lengths){0};
}

static uint64_t length_of(const struct culet_mapping *mapping)
{
    return mapping->end - mapping->start;
}

static void name_stack(const struct culet_scope *scope, struct culet_mapping *mapping, const char *use, const char *label)
{
    struct culet_mapping *guard = guard_of(scope, mapping);

    culet_mapping_name(mapping, use, "%s", label);
    if (guard)
        culet_mapping_name(guard, use, "guard");
}

/* Whether a thread of glibc's has, or had, its stack here: its control block is in the last page, and begins with a
 * pointer to itself and has another one 16 bytes on (tcbhead_t, sysdeps/x86_64/nptl/tls.h). Other machines' have none. */
static bool has_control_block(struct culet_scope *scope, const struct culet_mapping *mapping)
{
#ifdef __x86_64__
    uint64_t page = mapping->end - scope->page_bytes, first, second;

    for (uint64_t at = page; scope->readable && at < mapping->end - 64; at += 64)
        if (culet_memory_word(&scope->memory, at, &first) && first == at &&
            culet_memory_word(&scope->memory, at + 16, &second) && second == at)
            return true;
#endif
    (void)scope;
    (void)mapping;
    return false;
}

/* The stack pointers that are not known yet. When the slice is over the process runs on, as threads that wait tell theirs
 * all the same. Returns how many do not. */
static size_t find_pointers(struct culet_scope *scope)
{
    size_t unknown = 0;

    for (size_t i = 0; i < threads.count; i++) {
        if (culet_target_due(&scope->target))
            culet_scope_resume(scope);
        if (!threads.all[i].pointer && !culet_thread_find_pointer(&threads.all[i], scope->target.process))
            unknown++;
    }
    return unknown;
}

void culet_stacks_read(struct culet_scope *scope)
{
    culet_threads_list(&threads, scope->target.process);
    bool paused = culet_target_still(&scope->target);
    /* One that ran by then was not paused any more. */
    if (find_pointers(scope) && paused && !culet_target_still(&scope->target)) {
        culet_scope_pause(scope);
        find_pointers(scope);
    }
}

/* Of the threads' own stacks. */
static struct lengths thread_lengths(void)
{
    struct lengths lengths = {0};

    for (size_t i = 0; i < threads.count; i++)
        if (threads.all[i].mapping && !threads.all[i].in_fiber)
            note_length(&lengths, length_of(threads.all[i].mapping));
    sort_lengths(&lengths);
    return lengths;
}

/* ---- fibers ---- */

/* What could be a fiber's stack by itself: a guard page below, and nothing that a walker knows. */
static bool is_fiber_like(const struct culet_scope *scope, const struct culet_mapping *mapping)
{
    const struct culet_mapping *guard = guard_of(scope, mapping);

    return !mapping->use && guard && length_of(guard) == scope->page_bytes && culet_mapping_is_heap_like(mapping);
}

/* Of all that could be. */
static struct lengths fiber_lengths(const struct culet_scope *scope)
{
    struct lengths lengths = {0};

    for (size_t i = 0; i < scope->maps.count; i++)
        if (is_fiber_like(scope, &scope->maps.all[i]))
            note_length(&lengths, length_of(&scope->maps.all[i]));
    sort_lengths(&lengths);
    return lengths;
}

/* Whether the thread runs in a fiber just now: its stack pointer is where no thread's own stack can be. */
static bool is_in_fiber(struct culet_scope *scope, const struct culet_thread_stack *thread, const struct lengths *fibers)
{
    bool main_thread = thread->tid == scope->target.process, tells = main_thread;

#ifdef __x86_64__
    tells = true;
#endif
    return tells && is_fiber_like(scope, thread->mapping) && count_alike(fibers, length_of(thread->mapping)) >= FIBERS &&
           (main_thread || !has_control_block(scope, thread->mapping));
}

static void name_fibers(const struct culet_scope *scope)
{
    struct lengths own = thread_lengths(), fibers = fiber_lengths(scope);

    for (size_t i = 0; i < scope->maps.count; i++) {
        struct culet_mapping *mapping = &scope->maps.all[i];
        uint64_t length = length_of(mapping);
        if (is_fiber_like(scope, mapping) && !count_alike(&own, length) && count_alike(&fibers, length) >= FIBERS)
            name_stack(scope, mapping, "fiber", "fiber");
    }
    free_lengths(&own);
    free_lengths(&fibers);
}

/* ---- threads ---- */

/* The mapping of each thread's stack pointer. */
static void find_stacks(struct culet_scope *scope)
{
    bool is_ruby = culet_ruby_is_there(scope);
    struct lengths fibers = fiber_lengths(scope);

    for (size_t i = 0; i < threads.count; i++) {
        struct culet_thread_stack *thread = &threads.all[i];
        thread->mapping = thread->pointer ? culet_maps_at(&scope->maps, thread->pointer) : NULL;
        thread->in_fiber = is_ruby && thread->mapping && is_in_fiber(scope, thread, &fibers);
    }
    free_lengths(&fibers);
}

/* How many threads each mapping has the stacks of: newer kernels guard stacks without a mapping of its own between them, so
 * several can be one mapping. To be freed. */
static uint32_t *count_threads(const struct culet_scope *scope)
{
    uint32_t *counts = culet_new(scope->maps.count, sizeof *counts);

    for (size_t i = 0; i < threads.count; i++)
        if (threads.all[i].mapping)
            counts[threads.all[i].mapping->id]++;
    return counts;
}

static void label_thread(const struct culet_scope *scope, const struct culet_thread_stack *thread, uint32_t in_mapping, char *label,
                         size_t room)
{
    const char *where = thread->in_fiber ? " in it" : "", *fiber = thread->in_fiber ? "fiber, " : "";

    if (in_mapping > 1)
        snprintf(label, room, "stacks of %u threads", (unsigned)in_mapping);
    else if (thread->tid == scope->target.process)
        snprintf(label, room, "%smain thread%s", fiber, where);
    else
        snprintf(label, room, "%sthread %s (%d)%s", fiber, thread->name, (int)thread->tid, where);
}

static void name_threads(const struct culet_scope *scope, bool in_fiber)
{
    uint32_t *counts = count_threads(scope);
    char label[128];

    for (size_t i = 0; i < threads.count; i++) {
        const struct culet_thread_stack *thread = &threads.all[i];
        if (!thread->mapping || thread->in_fiber != in_fiber)
            continue;
        label_thread(scope, thread, counts[thread->mapping->id], label, sizeof label);
        name_stack(scope, &scope->maps.all[thread->mapping->id], in_fiber ? "fiber" : "stack", label);
    }
    free(counts);
}

/* Other stacks of glibc's: it keeps those of threads that have ended for the next ones. */
static void name_ended(struct culet_scope *scope)
{
    struct lengths own = thread_lengths();

    for (size_t i = 0; i < scope->maps.count; i++) {
        struct culet_mapping *mapping = &scope->maps.all[i];
        if (!mapping->use && culet_mapping_is_heap_like(mapping) && guard_of(scope, mapping) &&
            (count_alike(&own, length_of(mapping)) || has_control_block(scope, mapping)))
            name_stack(scope, mapping, "stack", "of an ended thread");
    }
    free_lengths(&own);
}

void culet_stacks_name(struct culet_scope *scope)
{
    culet_threads_name(&threads, scope->target.process);
    find_stacks(scope);
    name_threads(scope, false);
    name_ended(scope);
    name_threads(scope, true);
    if (culet_ruby_is_there(scope))
        name_fibers(scope);
}

void culet_stacks_tell(void)
{
    culet_threads_tell(&threads);
}
