#define _GNU_SOURCE
#include "glibc.h"

#include "complain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How often the process is let go because a thread was about to change the heap. Each time it has rested for a
 * millisecond, which is many times what such a change takes. */
#define SETTLE_TRIES 50u
/* In a damaged heap locks stay taken: after so many tries in all nobody waits for them any more. */
#define MOST_SETTLES 400u
/* After so many tries it is led out of that, which makes the pause longer. */
#define PATIENT_TRIES 3u

/* How often a single thread is let go for a moment to be found out of malloc. */
#define LEAD_TURNS 16u

/* An arena has no more heaps: 256 GB of them. */
#define MOST_HEAPS 4096u

/* Chunks that are looked at to find out where stretches of heap begin, in all; besides each that there can be once. */
#define CHAIN_STEPS UINT64_C(4000000)

static struct culet_glibc glibc;

void culet_glibc_break(struct culet_glibc_arena *arena, const char *why, ...)
{
    va_list arguments;

    if (arena->broken)
        return;
    arena->broken = true;
    va_start(arguments, why);
    vsnprintf(arena->why, sizeof arena->why, why, arguments);
    va_end(arguments);
}

/* ---- not in the middle of something ---- */

static bool locked(struct culet_scope *scope, const struct culet_glibc_arena *arena)
{
    uint64_t word;

    /* The mutex is the arena's first member, an int. */
    return culet_memory_word(&scope->memory, arena->address, &word) && (uint32_t)word != 0;
}

static size_t locked_arenas(struct culet_scope *scope, const struct culet_glibc *heap)
{
    size_t count = 0;

    for (size_t i = 0; i < heap->arena_count; i++)
        count += locked(scope, &heap->arenas[i]);
    return count;
}

/* A thread is in libc's code, perhaps in malloc. */
static bool inside_libc(const struct culet_scope *scope, const struct culet_glibc *heap, size_t thread)
{
    uint64_t instruction;
    long call;

    if (!culet_target_where(&scope->target, thread, &instruction, &call))
        return false;
    if (instruction < heap->text_start || instruction >= heap->text_end)
        return false;
    /* In a system call other than those that malloc makes it is somewhere else. */
    return call < 0 || call == SYS_brk || call == SYS_mmap || call == SYS_munmap || call == SYS_mremap ||
           call == SYS_madvise || call == SYS_mprotect;
}

/* The only thread of a process takes no locks. */
bool culet_glibc_busy(struct culet_scope *scope, const struct culet_glibc *heap, const struct culet_glibc_arena *arena)
{
    if (scope->target.count == 1 && inside_libc(scope, heap, 0))
        return true;
    return arena ? locked(scope, arena) : locked_arenas(scope, heap) > 0;
}

/* Lets one thread go on until fewer arenas are locked than before. If that does not come to pass soon the locks are not
 * this thread's. */
static void lead_out(struct culet_scope *scope, const struct culet_glibc *heap, size_t thread)
{
    size_t before = locked_arenas(scope, heap);

    for (unsigned i = 0; i < LEAD_TURNS && before && !culet_target_due(&scope->target) &&
                         inside_libc(scope, heap, thread); i++) {
        bool on = culet_target_nudge(&scope->target, thread);
        culet_pages_forget(&scope->pages);
        culet_memory_forget(&scope->memory);
        size_t after = locked_arenas(scope, heap);
        if (!on || after < before || (after == before && i >= LEAD_TURNS / 4))
            return;
    }
}

/* A thread that holds a lock may wait long for a processor; and in one long pause all arenas must be at rest together,
 * which with many threads they may never be. So the threads that are inside of libc go on one at a time, until none
 * holds a lock. */
static void finish(struct culet_scope *scope, const struct culet_glibc *heap, const struct culet_glibc_arena *arena)
{
    for (size_t thread = 0; thread < scope->target.count && !culet_target_due(&scope->target) && culet_glibc_busy(scope, heap, arena);
         thread++)
        lead_out(scope, heap, thread);
}

void culet_glibc_settle(struct culet_scope *scope, struct culet_glibc *heap,
                        const struct culet_glibc_arena *arena)
{
    /* What has been read in one long pause must fit what will be. */
    if (!culet_target_still(&scope->target) || (scope->target.mode == CULET_STOPPED && heap->walking))
        return;
    for (unsigned i = 0; i < SETTLE_TRIES && heap->settles < MOST_SETTLES && culet_glibc_busy(scope, heap, arena); i++) {
        heap->settles++;
        if (scope->target.count > 1 && (scope->target.mode == CULET_STOPPED || i >= PATIENT_TRIES)) {
            finish(scope, heap, arena);
            if (!culet_glibc_busy(scope, heap, arena))
                return;
        }
        culet_target_release(&scope->target);
        culet_scope_pause(scope);
    }
}

/* ---- recognise ---- */

/* Whether there are arenas to find: glibc serves malloc, and has memory by brk. */
static bool has_heap(const struct culet_scope *scope)
{
    for (size_t i = 0; i < scope->maps.count; i++)
        if (scope->libc && strcmp(scope->maps.all[i].path, "[heap]") == 0 && scope->maps.all[i].rss)
            return true;
    return false;
}

/* A thread may be in the middle of changing a list of the main arena, by whose consistency the arena is found (or, in
 * live mode, go on changing it): looked for again, so often. A process that never allocated has none to find. */
#define FIND_TRIES 12u
/* With that rest in between, which in the other modes a pause has anyway: a thread that waits for a processor leaves a
 * list as it is. */
#define LIVE_REST_NS 1000000

static void try_again(struct culet_scope *scope)
{
    static const struct timespec rest = {.tv_nsec = LIVE_REST_NS};

    if (scope->target.mode == CULET_LIVE)
        nanosleep(&rest, NULL);
    culet_target_release(&scope->target);
    culet_scope_pause(scope);
}

static bool find(struct culet_scope *scope)
{
    unsigned most = has_heap(scope) ? 5 * FIND_TRIES : FIND_TRIES;

    for (unsigned tries = 0; tries < most && !scope->pages.spent; tries++) {
        if (culet_glibc_find(scope, &glibc))
            return true;
        try_again(scope);
    }
    return false;
}

/* What cannot be walked is told by pages. */
static void lose(struct culet_scope *scope)
{
    glibc.lost = true;
    glibc.arena_count = 0;
    snprintf(glibc.library, sizeof glibc.library, "%s", scope->libc ? scope->libc : "");
    scope->by_pages = "glibc";
    culet_scope_problem(scope, "glibc's arenas were not found, because they changed too often meanwhile or are in "
                        "swap: ask again, or with --stop.");
}

static bool recognise(struct culet_scope *scope)
{
    /* Where another allocator serves, what a library has of glibc's all the same is not the program's heap. */
    if (scope->served)
        return false;
    if (!find(scope)) {
        if (!has_heap(scope))
            return false;
        lose(scope);
    }
    scope->served = "glibc";
    return true;
}

/* ---- walk ---- */

static void name_heap(struct culet_scope *scope, uint64_t address, const char *label, unsigned id)
{
    struct culet_mapping *mapping = culet_maps_at(&scope->maps, address);

    if (mapping)
        culet_mapping_name(mapping, "malloc", label, id);
}

/* A region of an arena; NULL, and the arena is broken, where there cannot be one. */
static struct culet_place *new_place(struct culet_scope *scope, struct culet_glibc_arena *arena, const char *kind,
                                     uint64_t start, uint64_t end)
{
    struct culet_place *place = culet_scope_place(scope, kind, arena->id, start, end, false);

    if (!place)
        culet_glibc_break(arena, "at 0x%llx: the heap is not mapped, or a part of another", (unsigned long long)start);
    return place;
}

/* A stretch of main's heap: from `start` to its top, or else to `end`. NULL where there cannot be one. */
static struct culet_place *walk_main(struct culet_scope *scope, struct culet_glibc_arena *arena, uint64_t start, uint64_t end)
{
    culet_glibc_top_end(scope, arena, start, &end);
    struct culet_place *place = new_place(scope, arena, "main", start, end);
    if (!place)
        return NULL;
    culet_glibc_walk(scope, &glibc, arena, place, (start + 15) & ~UINT64_C(15), 0);
    name_heap(scope, start, "heap of the main arena", 0);
    arena->found_bytes += place->end - start;
    return place;
}

/* Main's heap by brk. */
static void walk_brk(struct culet_scope *scope, struct culet_glibc_arena *arena)
{
    uint64_t base = culet_glibc_parameters(scope, &glibc);
    const struct culet_mapping *mapping;

    culet_glibc_refresh(scope, &glibc, arena);
    mapping = culet_maps_at(&scope->maps, base);
    if (base && base % 8 == 0 && mapping && strcmp(mapping->path, "[heap]") == 0)
        walk_main(scope, arena, base, mapping->end);
}

/* Whether a stretch of main's heap begins with a chunk at the start of this page. */
static bool begins(struct culet_scope *scope, const struct culet_glibc_arena *arena, uint64_t at, uint64_t end)
{
    const void *data = culet_memory_at(&scope->memory, at, 16);
    uint64_t header[2];

    if (!data)
        return false;
    memcpy(header, data, sizeof header);
    if (header[0] || (header[1] & GLIBC_CHUNK_FLAGS) != GLIBC_CHUNK_PREV_INUSE)
        return false;
    culet_glibc_top_end(scope, arena, at, &end);
    return culet_glibc_chain(scope, at, end, &glibc.chain_steps);
}

/* The stretches of main's heap in one mapping. */
static void walk_in(struct culet_scope *scope, struct culet_glibc_arena *arena, const struct culet_mapping *mapping)
{
    const unsigned shift = scope->pages.shift;

    for (uint64_t at = mapping->start; at < mapping->end && !scope->pages.spent;) {
        const struct culet_place *place = culet_places_at(&scope->places, at);
        if (!place && begins(scope, arena, at, mapping->end))
            place = walk_main(scope, arena, at, mapping->end);
        at = place ? (place->end + scope->page_bytes - 1) & ~(uint64_t)(scope->page_bytes - 1) : at + scope->page_bytes;
        culet_scope_breathe(scope);
        at = culet_pages_next(&scope->pages, at >> shift, mapping->end >> shift) << shift;
    }
}

/* Where brk failed, main goes on in mappings: such a one begins with a chunk at the start of a page. */
static void walk_elsewhere(struct culet_scope *scope, struct culet_glibc_arena *arena)
{
    for (size_t i = 0; i < scope->maps.count && arena->found_bytes < arena->system_bytes; i++) {
        const struct culet_mapping *mapping = &scope->maps.all[i];
        if (culet_mapping_is_heap_like(mapping) && strcmp(mapping->path, "[heap]") != 0)
            walk_in(scope, arena, mapping);
    }
}

static void walk_heaps(struct culet_scope *scope, struct culet_glibc_arena *arena)
{
    uint64_t *heaps = culet_new(MOST_HEAPS, sizeof *heaps);

    culet_glibc_refresh(scope, &glibc, arena);
    size_t count = culet_glibc_heaps(scope, &glibc, arena, heaps, MOST_HEAPS);
    /* The oldest first: the newest may grow meanwhile. */
    for (size_t i = count; i-- > 0 && !scope->pages.spent;) {
        uint64_t bytes = culet_glibc_heap_bytes(scope, &glibc, arena, heaps[i]);
        struct culet_place *place = bytes ? new_place(scope, arena, "heap", heaps[i], heaps[i] + bytes) : NULL;
        if (!place)
            continue;
        culet_glibc_walk(scope, &glibc, arena, place, culet_glibc_first_chunk(&glibc, arena, heaps[i]), heaps[i]);
        name_heap(scope, heaps[i], "heap of arena %u", arena->id);
        culet_scope_breathe(scope);
    }
    free(heaps);
}

static void walk_arenas(struct culet_scope *scope)
{
    for (size_t i = 0; i < glibc.arena_count && !scope->pages.spent; i++) {
        struct culet_glibc_arena *arena = &glibc.arenas[i];
        culet_scope_breathe(scope);
        culet_glibc_settle(scope, &glibc, arena);
        if (!culet_glibc_refresh(scope, &glibc, arena)) {
            culet_glibc_break(arena, "its own structure cannot be read");
            continue;
        }
        culet_glibc_read_fastbins(scope, &glibc, arena);
        if (arena->address != glibc.main) {
            walk_heaps(scope, arena);
            continue;
        }
        if (!arena->top)
            continue;
        walk_brk(scope, arena);
        if (arena->found_bytes < arena->system_bytes)
            walk_elsewhere(scope, arena);
    }
}

/* Reads the ring of arenas. In live mode one may be added just then. */
static bool follow_ring(struct culet_scope *scope)
{
    for (unsigned tries = 0; tries < FIND_TRIES && !scope->pages.spent; tries++) {
        if (culet_glibc_ring(scope, &glibc))
            return true;
        try_again(scope);
    }
    return false;
}

static void walk(struct culet_scope *scope)
{
    uint64_t began = culet_now();

    if (glibc.lost)
        return;
    culet_glibc_bound_links(scope, &glibc.cached);
    culet_scope_pause(scope);
    if (!follow_ring(scope)) {
        lose(scope);
        return;
    }
    culet_glibc_settle(scope, &glibc, NULL);
    culet_glibc_know_links(&glibc);
    glibc.walking = true;
    glibc.chain_steps = CHAIN_STEPS + scope->maps.rss / GLIBC_CHUNK_LEAST_BYTES;
    walk_arenas(scope);
    culet_glibc_find_mmapped(scope, &glibc);
    culet_scope_resume(scope);
    culet_glibc_settle_cached(scope, &glibc);
    glibc.walk_ns = culet_now() - began;
}

static void tell(struct culet_scope *scope)
{
    culet_glibc_tell(scope, &glibc);
}

const struct culet_walker culet_glibc_walker = {.name = "glibc", .recognise = recognise, .walk = walk, .tell = tell};
