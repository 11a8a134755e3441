#define _GNU_SOURCE
#include "player.h"

#include "baton.h"
#include "complain.h"
#include "meter.h"
#include "store.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINE 64
#define PAGE 4096

/* Of a thread that plays: what it does needs little stack, and libc puts thread-local storage there as well. */
#define STACK_BYTES (256u << 10)

/* While a recorded pause is kept, what is resident is looked at this often. */
#define PAUSE_SAMPLE_NS 50000000u

struct seat {
    struct culet_baton baton;
    bool started;
};

struct player {
    const struct culet_script *script;
    struct culet_settings settings;
    struct culet_performance result;
    void **blocks;   /* by slot */
    uint64_t *sizes; /* likewise */
    struct seat *seats;
    struct culet_baton end; /* the main thread's */
    size_t sample_room;

    /* What follows belongs to the thread that has the turn. */
    uint64_t next;   /* operation */
    uint64_t rested; /* operations before this one are not in the page tables any more */
    size_t next_moment;
    uint64_t next_sample, between_samples;
    uint64_t microseconds, live_bytes, started_ns;
};

/* One play to a process; threads find it here. */
static struct player player;

/* ---- a block's bytes ---- */

static unsigned char mark(uint32_t slot)
{
    return (unsigned char)(slot * 31 + 7);
}

static void touch(unsigned char *block, uint32_t slot, uint64_t from, uint64_t to)
{
    uint64_t step = player.settings.touch == CULET_TOUCH_PAGE ? PAGE : LINE;

    if (from >= to || player.settings.touch == CULET_TOUCH_NONE)
        return;
    if (player.settings.touch >= CULET_TOUCH_ALL) {
        memset(block + from, mark(slot), to - from);
        return;
    }
    for (uint64_t at = from; at < to; at += step)
        block[at] = mark(slot);
    block[to - 1] = mark(slot);
}

static void check(const unsigned char *block, uint32_t slot, uint64_t bytes)
{
    if (player.settings.touch != CULET_TOUCH_CHECK)
        return;
    for (uint64_t i = 0; i < bytes; i++)
        if (block[i] != mark(slot))
            culet_complain("this allocator changed byte %llu of a live block of %llu bytes (operation %llu)",
                           (unsigned long long)i, (unsigned long long)player.sizes[slot],
                           (unsigned long long)player.next);
}

static void check_zeros(const unsigned char *block, uint64_t bytes)
{
    if (player.settings.touch != CULET_TOUCH_CHECK)
        return;
    for (uint64_t i = 0; i < bytes; i++)
        if (block[i])
            culet_complain("this allocator's calloc gave a block of %llu bytes that are not all zero (operation %llu)",
                           (unsigned long long)bytes, (unsigned long long)player.next);
}

/* ---- operations ---- */

static void *get_aligned(const struct culet_op *op)
{
    uint64_t alignment = (uint64_t)1 << op->shift;
    void *block = NULL;

    if (posix_memalign(&block, alignment < sizeof(void *) ? sizeof(void *) : alignment, op->bytes) != 0)
        return NULL;
    if (player.settings.touch == CULET_TOUCH_CHECK && (uintptr_t)block % alignment)
        culet_complain("this allocator gave a block that is not aligned to %llu (operation %llu)",
                       (unsigned long long)alignment, (unsigned long long)player.next);
    return block;
}

static void *get(const struct culet_op *op)
{
    switch (op->kind) {
    case CULET_OP_CALLOC: {
        void *block = calloc(1, op->bytes);
        if (block)
            check_zeros(block, op->bytes);
        return block;
    }
    case CULET_OP_ALIGNED:
        return get_aligned(op);
    default:
        return malloc(op->bytes);
    }
}

static void keep(const struct culet_op *op, void *block, uint64_t had)
{
    if (!block && op->bytes)
        culet_complain("this allocator has no memory for a block of %llu bytes (operation %llu)",
                       (unsigned long long)op->bytes, (unsigned long long)player.next);
    touch(block, op->slot, had, op->bytes);
    player.blocks[op->slot] = block;
    player.sizes[op->slot] = op->bytes;
    player.live_bytes += op->bytes;
}

static void play(const struct culet_op *op)
{
    uint64_t had = player.sizes[op->slot];
    void *block = player.blocks[op->slot];

    switch (op->kind) {
    case CULET_OP_FREE:
        check(block, op->slot, had);
        player.live_bytes -= had;
        player.blocks[op->slot] = NULL;
        player.sizes[op->slot] = 0;
        free(block);
        break;
    case CULET_OP_REALLOC:
        check(block, op->slot, had);
        player.live_bytes -= had;
        block = realloc(block, op->bytes);
        if (block)
            check(block, op->slot, had < op->bytes ? had : op->bytes);
        keep(op, block, had);
        break;
    default:
        keep(op, get(op), 0);
    }
}

/* ---- samples and pauses; they are not the operations' CPU time ---- */

static void sample(void)
{
    struct culet_performance *result = &player.result;

    culet_store_rest(player.script->ops, player.rested * sizeof(struct culet_op), player.next * sizeof(struct culet_op));
    player.rested = player.next;
    culet_store_grow((void **)&result->samples, &player.sample_room, result->sample_count + 1, sizeof *result->samples);
    result->samples[result->sample_count++] = (struct culet_sample){
        .index = player.next, .microseconds = player.microseconds, .wall_ns = culet_meter_now() - player.started_ns,
        .live_bytes = player.live_bytes, .resident_bytes = culet_meter_resident()};
}

static void pause_until(uint64_t then)
{
    for (uint64_t now = culet_meter_now(); now < then; now = culet_meter_now()) {
        uint64_t left = then - now < PAUSE_SAMPLE_NS ? then - now : PAUSE_SAMPLE_NS;
        struct timespec time = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
        nanosleep(&time, NULL);
        if (left == PAUSE_SAMPLE_NS)
            sample();
    }
}

/* Whether the next operation is preceded by something that is none. */
static bool interlude(void)
{
    const struct culet_script *script = player.script;

    return player.next >= player.next_sample || player.next == script->peak_index + 1 ||
           (player.next_moment < script->moment_count && script->moments[player.next_moment].index <= player.next);
}

static void intermit(void)
{
    const struct culet_script *script = player.script;

    while (player.next_moment < script->moment_count && script->moments[player.next_moment].index <= player.next) {
        player.microseconds = script->moments[player.next_moment++].microseconds;
        if (player.settings.paced)
            pause_until(player.started_ns + player.microseconds * 1000);
    }
    if (player.next >= player.next_sample || player.next == script->peak_index + 1)
        sample();
    while (player.next >= player.next_sample)
        player.next_sample += player.between_samples;
}

/* ---- threads ---- */

static void *perform(void *seat);

static void hand_over(uint32_t thread)
{
    struct seat *seat = &player.seats[thread];

    culet_baton_pass(&seat->baton);
    if (seat->started)
        return;
    seat->started = true;

    pthread_attr_t attributes;
    pthread_t id;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&id, &attributes, perform, seat);
    pthread_attr_destroy(&attributes);
    if (error)
        culet_complain("cannot start a thread: %s; raise the limit of processes, or play it by one thread",
                       strerror(error));
}

/* As many operations as are this thread's turn. */
static void take_turn(uint32_t thread)
{
    const struct culet_script *script = player.script;
    uint64_t cpu = culet_meter_cpu();

    while (player.next < script->count && script->ops[player.next].thread == thread) {
        if (__builtin_expect(interlude(), 0)) {
            player.result.cpu_ns += culet_meter_cpu() - cpu;
            intermit();
            cpu = culet_meter_cpu();
        }
        play(&script->ops[player.next]);
        player.next++;
    }
    player.result.cpu_ns += culet_meter_cpu() - cpu;
}

/* A thread of the recorded program: it ends after its last operation, as that one did sooner or later. */
static void *perform(void *own)
{
    struct seat *seat = own;
    uint32_t thread = (uint32_t)(seat - player.seats);
    bool last;

    do {
        culet_baton_wait(&seat->baton);
        take_turn(thread);
        last = player.next > player.script->last[thread];
        if (player.next < player.script->count)
            hand_over(player.script->ops[player.next].thread);
        else
            culet_baton_pass(&player.end);
    } while (!last);
    return NULL;
}

struct culet_performance culet_play(const struct culet_script *script, const struct culet_settings *settings)
{
    player = (struct player){.script = script, .settings = *settings};
    player.blocks = culet_store_new(script->slots, sizeof *player.blocks);
    player.sizes = culet_store_new(script->slots, sizeof *player.sizes);
    player.seats = culet_store_new(script->threads, sizeof *player.seats);
    player.between_samples = script->count / settings->samples + 1;
    player.result.counted = culet_meter_count_instructions();
    uint64_t instructions = player.result.counted ? culet_meter_instructions() : 0;

    culet_store_rest(script->ops, 0, script->count * sizeof *script->ops);
    player.started_ns = culet_meter_now();
    if (script->count) {
        hand_over(script->ops[0].thread);
        culet_baton_wait(&player.end);
    }
    player.result.wall_ns = culet_meter_now() - player.started_ns;
    if (player.result.counted)
        player.result.instructions = culet_meter_instructions() - instructions;
    sample();
    return player.result;
}
