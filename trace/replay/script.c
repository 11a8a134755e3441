#define _GNU_SOURCE
#include "script.h"

#include "blocks.h"
#include "complain.h"
#include "store.h"
#include "trace.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GENERATIONS 32 /* of forks that are followed back */
#define THREADS_MAX (1u << 22) /* the kernel's limit on process numbers */
#define NO_SLOT UINT32_MAX

/* ---- a process and those it was forked from, oldest first ---- */

struct chain {
    struct culet_trace traces[GENERATIONS];
    char paths[GENERATIONS][PATH_MAX];
    size_t count;
    bool orphan;
};

static bool parent_path(const struct culet_trace *trace, char *path)
{
    const char *folder = strrchr(trace->path, '/');
    int length = folder ? (int)(folder + 1 - trace->path) : 0;
    int bytes = snprintf(path, PATH_MAX, "%.*s%.*s", length, trace->path, (int)sizeof trace->header->parent,
                         trace->header->parent);

    return bytes > 0 && bytes < PATH_MAX && access(path, R_OK) == 0;
}

static bool is_parent(const struct culet_trace *parent, const struct culet_trace *child)
{
    /* The start is handed down; a file of that name from another recording has another one. */
    return parent->header->monotonic_ns == child->header->monotonic_ns && parent->header->forked_at < child->header->forked_at;
}

static void follow(struct chain *chain, const char *path)
{
    struct culet_trace found[GENERATIONS];
    size_t count = 0;

    found[count++] = culet_trace_open(path);
    while (found[count - 1].header->forked_at) {
        const struct culet_trace *child = &found[count - 1];
        if (count == GENERATIONS || !parent_path(child, chain->paths[count])) {
            chain->orphan = true;
            break;
        }
        struct culet_trace parent = culet_trace_open(chain->paths[count]);
        if (!is_parent(&parent, child)) {
            chain->orphan = true;
            break;
        }
        found[count++] = parent;
    }
    chain->count = count;
    for (size_t i = 0; i < count; i++)
        chain->traces[i] = found[count - 1 - i];
}

/* ---- events, put in the order of their numbers ---- */

enum { GONE = CULET_OP_KINDS, FAILED }; /* first half of a realloc; second half of one that got nothing */

struct entry {
    uint64_t bytes : 48; /* of GONE: the index of the second half */
    uint64_t kind : 8;   /* enum culet_op_kind, or as above; 0: nothing has this number */
    uint64_t shift : 8;
    uint64_t address; /* got, or gone */
    uint32_t slot;    /* of a realloc's second half: the block */
    uint32_t thread;
    uint64_t microseconds;
};

struct order {
    struct entry *entries;
    size_t count;
    uint64_t first; /* number of entries[0] */
    uint64_t limit; /* of the trace being read: numbers from here on do not count */
    uint64_t events, last;
    const struct culet_trace *trace;
};

static uint64_t last_number(const struct culet_raw *raw)
{
    return raw->event == CULET_EVENT_REALLOC ? raw->after : raw->sequence;
}

static void measure(void *with, const struct culet_raw *raw)
{
    struct order *order = with;

    if (last_number(raw) >= order->limit)
        return;
    order->events++;
    if (last_number(raw) > order->last)
        order->last = last_number(raw);
}

static struct entry *entry(struct order *order, uint64_t sequence)
{
    if (sequence < order->first || sequence - order->first >= order->count ||
        order->entries[sequence - order->first].kind)
        culet_complain("%s is damaged: its events are not in an order; copy it again or record again", order->trace->path);
    return &order->entries[sequence - order->first];
}

static void place_realloc(struct order *order, const struct culet_raw *raw)
{
    struct entry *before = entry(order, raw->sequence);

    before->kind = GONE;
    struct entry *after = entry(order, raw->after);
    *before = (struct entry){.kind = GONE, .bytes = raw->after - order->first, .address = raw->gone};
    *after = (struct entry){.kind = CULET_OP_REALLOC, .bytes = raw->bytes, .address = raw->got, .thread = raw->thread,
                            .microseconds = raw->microseconds};
    if (!raw->got && raw->bytes) {
        after->kind = FAILED;
        after->address = raw->gone;
    }
}

static void place(void *with, const struct culet_raw *raw)
{
    static const uint8_t kinds[] = {[CULET_EVENT_MALLOC] = CULET_OP_MALLOC, [CULET_EVENT_CALLOC] = CULET_OP_CALLOC,
                                    [CULET_EVENT_ALIGNED] = CULET_OP_ALIGNED, [CULET_EVENT_FREE] = CULET_OP_FREE};
    struct order *order = with;

    /* What is later than all that was measured has been recorded meanwhile. */
    if (last_number(raw) >= order->limit || last_number(raw) > order->last)
        return;
    if (raw->event == CULET_EVENT_REALLOC) {
        place_realloc(order, raw);
        return;
    }
    *entry(order, raw->sequence) = (struct entry){
        .kind = kinds[raw->event], .bytes = raw->bytes, .shift = raw->shift, .thread = raw->thread,
        .address = raw->event == CULET_EVENT_FREE ? raw->gone : raw->got, .microseconds = raw->microseconds};
}

static void each(struct order *order, const struct chain *chain, void (*tell)(void *, const struct culet_raw *))
{
    for (size_t i = 0; i < chain->count; i++) {
        order->trace = &chain->traces[i];
        order->limit = i + 1 < chain->count ? chain->traces[i + 1].header->forked_at : UINT64_MAX;
        culet_trace_each(order->trace, tell, order);
    }
}

static struct order arrange(const struct chain *chain)
{
    uint64_t forked_at = chain->traces[0].header->forked_at;
    struct order order = {.first = forked_at ? forked_at : 1};

    each(&order, chain, measure);
    if (!order.events)
        return order;
    /* A number is missing where a process was ended between taking it and recording: a few at the most. */
    if (order.last < order.first || order.last - order.first > 2 * order.events + (1u << 20))
        culet_complain("%s is damaged: its events are not in an order; copy it again or record again", order.trace->path);
    order.count = order.last - order.first + 1;
    order.entries = culet_store_new(order.count, sizeof *order.entries);
    each(&order, chain, place);
    return order;
}

/* ---- operations ---- */

struct writer {
    struct culet_script *script;
    struct culet_blocks blocks;
    size_t op_room, moment_room, slot_room, free_room, thread_room, number_room;
    uint32_t *free_slots;
    size_t free_count;
    uint64_t *sizes;       /* by slot */
    uint32_t *numbers;     /* by the recorder's number of a thread: ours plus 1 */
    uint64_t live_bytes;
    uint64_t microseconds; /* each thread looked at the clock for itself: only what is later than all before counts */
    const char *path;
};

static uint32_t new_slot(struct writer *writer)
{
    if (writer->free_count)
        return writer->free_slots[--writer->free_count];

    struct culet_script *script = writer->script;
    if (script->slots == NO_SLOT)
        culet_complain("%s has more than four billion blocks at once; record less", writer->path);
    culet_store_grow((void **)&writer->sizes, &writer->slot_room, script->slots + 1, sizeof *writer->sizes);
    return (uint32_t)script->slots++;
}

static uint32_t thread(struct writer *writer, uint32_t number)
{
    struct culet_script *script = writer->script;

    if (number > THREADS_MAX)
        culet_complain("%s is damaged: it names thread %u; copy it again or record again", writer->path, number);
    culet_store_grow((void **)&writer->numbers, &writer->number_room, (size_t)number + 1, sizeof *writer->numbers);
    if (!writer->numbers[number]) {
        culet_store_grow((void **)&script->last, &writer->thread_room, script->threads + 1, sizeof *script->last);
        writer->numbers[number] = (uint32_t)++script->threads;
    }
    return writer->numbers[number] - 1;
}

static void emit(struct writer *writer, const struct entry *entry, enum culet_op_kind kind, uint32_t slot)
{
    struct culet_script *script = writer->script;
    uint64_t bytes = kind == CULET_OP_FREE ? 0 : entry->bytes;

    culet_store_grow((void **)&script->ops, &writer->op_room, script->count + 1, sizeof *script->ops);
    struct culet_op *op = &script->ops[script->count];
    *op = (struct culet_op){.kind = kind, .bytes = bytes, .shift = entry->shift, .slot = slot,
                            .thread = thread(writer, entry->thread)};
    if (entry->microseconds > writer->microseconds) {
        writer->microseconds = entry->microseconds;
        culet_store_grow((void **)&script->moments, &writer->moment_room, script->moment_count + 1, sizeof *script->moments);
        script->moments[script->moment_count++] = (struct culet_moment){script->count, entry->microseconds};
    }
    script->last[op->thread] = script->count;
    script->kinds[kind]++;
    script->requested_bytes += bytes;
    writer->live_bytes += bytes - (kind == CULET_OP_FREE || kind == CULET_OP_REALLOC ? writer->sizes[slot] : 0);
    writer->sizes[slot] = bytes;
    if (writer->live_bytes > script->peak_live_bytes) {
        script->peak_live_bytes = writer->live_bytes;
        script->peak_index = script->count;
    }
    script->count++;
}

static void release(struct writer *writer, const struct entry *entry, uint32_t slot)
{
    emit(writer, entry, CULET_OP_FREE, slot);
    culet_store_grow((void **)&writer->free_slots, &writer->free_room, writer->free_count + 1, sizeof *writer->free_slots);
    writer->free_slots[writer->free_count++] = slot;
}

/* A block is at an address from now on; if one was there, its free was not recorded. */
static void settle(struct writer *writer, const struct entry *entry, uint32_t slot)
{
    uint32_t before;

    if (culet_blocks_put(&writer->blocks, entry->address, slot, &before))
        return;
    writer->script->implied++;
    release(writer, entry, before);
}

static void get(struct writer *writer, const struct entry *entry, enum culet_op_kind kind)
{
    uint32_t slot = new_slot(writer);

    settle(writer, entry, slot);
    emit(writer, entry, kind, slot);
}

static void resize(struct writer *writer, const struct entry *entry)
{
    if (entry->slot == NO_SLOT) {
        if (entry->address)
            get(writer, entry, CULET_OP_MALLOC);
    } else if (!entry->address) {
        release(writer, entry, entry->slot);
    } else {
        settle(writer, entry, entry->slot);
        emit(writer, entry, CULET_OP_REALLOC, entry->slot);
    }
}

static void convert(struct writer *writer, struct order *order, struct entry *entry)
{
    uint32_t slot;

    switch (entry->kind) {
    case 0:
        break;
    case CULET_OP_MALLOC:
    case CULET_OP_CALLOC:
    case CULET_OP_ALIGNED:
        get(writer, entry, entry->kind);
        break;
    case CULET_OP_FREE:
        if (culet_blocks_take(&writer->blocks, entry->address, &slot))
            release(writer, entry, slot);
        else
            writer->script->unknown++;
        break;
    case GONE:
        if (!culet_blocks_take(&writer->blocks, entry->address, &slot)) {
            slot = NO_SLOT;
            writer->script->unknown++;
        }
        order->entries[entry->bytes].slot = slot;
        break;
    case CULET_OP_REALLOC:
        resize(writer, entry);
        break;
    case FAILED:
        if (entry->slot != NO_SLOT)
            culet_blocks_put(&writer->blocks, entry->address, entry->slot, &slot);
        break;
    }
}

struct culet_script culet_script_read(const char *path, bool single)
{
    static struct chain chain;
    struct culet_script script = {0};
    struct writer writer = {.script = &script, .path = path};

    follow(&chain, path);
    struct order order = arrange(&chain);
    uint64_t own = chain.count > 1 ? chain.traces[chain.count - 1].header->forked_at - order.first : 0;
    for (size_t i = 0; i < order.count; i++) {
        if (i == own)
            script.inherited = script.count;
        if (single)
            order.entries[i].thread = 0;
        convert(&writer, &order, &order.entries[i]);
    }
    if (own >= order.count && own)
        script.inherited = script.count;
    script.orphan = chain.orphan;
    script.left_blocks = script.slots - writer.free_count;
    script.left_bytes = writer.live_bytes;
    if (order.entries)
        culet_store_free(order.entries, order.count, sizeof *order.entries);
    culet_blocks_free(&writer.blocks);
    return script;
}
