#define _GNU_SOURCE
#include "operations.h"

#include "block_map.h"
#include "mapping.h"
#include "timeline.h"

#include <err.h>

#define THREADS_MAX (1u << 22) /* the kernel's limit on process numbers */
#define NO_BLOCK UINT32_MAX

struct builder {
    struct culet_operations *operations;
    struct culet_block_map map;
    size_t operation_room, reading_room, block_room, free_room, last_room, thread_room;
    uint32_t *free_blocks;
    size_t free_count;
    uint64_t *sizes;   /* by block */
    uint32_t *threads; /* by the recorder's thread number: ours plus 1 */
    uint64_t live_bytes;
    uint64_t microseconds; /* each thread reads the clock for itself: earlier readings are skipped */
    const char *path;
};

/* `room` items are allocated; makes it at least `wanted`. */
#define GROW(array, room, wanted) culet_mapping_grow((void **)&(array), &(room), (wanted), sizeof *(array))

static uint32_t new_block(struct builder *builder)
{
    if (builder->free_count)
        return builder->free_blocks[--builder->free_count];

    struct culet_operations *operations = builder->operations;
    if (operations->blocks == NO_BLOCK)
        errx(1, "%s has more than four billion blocks at once; record less", builder->path);
    GROW(builder->sizes, builder->block_room, operations->blocks + 1);
    return (uint32_t)operations->blocks++;
}

static uint32_t thread_number(struct builder *builder, uint32_t recorded)
{
    struct culet_operations *operations = builder->operations;

    if (recorded > THREADS_MAX)
        errx(1, "%s is damaged: it names thread %u; copy it again or record again", builder->path, recorded);
    GROW(builder->threads, builder->thread_room, (size_t)recorded + 1);
    if (!builder->threads[recorded]) {
        GROW(operations->last, builder->last_room, operations->threads + 1);
        builder->threads[recorded] = (uint32_t)++operations->threads;
    }
    return builder->threads[recorded] - 1;
}

static void add_reading(struct builder *builder, uint64_t microseconds)
{
    struct culet_operations *operations = builder->operations;

    if (microseconds <= builder->microseconds)
        return;
    builder->microseconds = microseconds;
    GROW(operations->readings, builder->reading_room, operations->reading_count + 1);
    operations->readings[operations->reading_count++] = (struct culet_clock_reading){operations->count, microseconds};
}

static void count_bytes(struct builder *builder, enum culet_event kind, uint32_t block, uint64_t bytes)
{
    struct culet_operations *operations = builder->operations;
    bool replaces = kind == CULET_EVENT_FREE || kind == CULET_EVENT_REALLOC;

    operations->kinds[kind]++;
    operations->requested_bytes += bytes;
    builder->live_bytes += bytes - (replaces ? builder->sizes[block] : 0);
    builder->sizes[block] = bytes;
    if (builder->live_bytes > operations->peak_live_bytes) {
        operations->peak_live_bytes = builder->live_bytes;
        operations->peak_index = operations->count;
    }
}

static void append(struct builder *builder, const struct culet_step *step, enum culet_event kind, uint32_t block)
{
    struct culet_operations *operations = builder->operations;
    uint64_t bytes = kind == CULET_EVENT_FREE ? 0 : step->bytes;
    uint32_t thread = thread_number(builder, step->thread);

    GROW(operations->list, builder->operation_room, operations->count + 1);
    operations->list[operations->count] =
        (struct culet_operation){.kind = kind, .bytes = bytes, .shift = step->shift, .block = block, .thread = thread};
    operations->last[thread] = operations->count;
    add_reading(builder, step->microseconds);
    count_bytes(builder, kind, block, bytes);
    operations->count++;
}

static void add_free(struct builder *builder, const struct culet_step *step, uint32_t block)
{
    append(builder, step, CULET_EVENT_FREE, block);
    GROW(builder->free_blocks, builder->free_room, builder->free_count + 1);
    builder->free_blocks[builder->free_count++] = block;
}

/* Puts a block at the step's address. A block that is there already was freed without a record. */
static void put_block(struct builder *builder, const struct culet_step *step, uint32_t block)
{
    uint32_t previous;

    if (culet_block_map_put(&builder->map, step->address, block, &previous))
        return;
    builder->operations->implied++;
    add_free(builder, step, previous);
}

/* The block at the step's address, removed from there; NO_BLOCK for one from outside the trace. */
static uint32_t remove_block(struct builder *builder, const struct culet_step *step)
{
    uint32_t block;

    if (culet_block_map_remove(&builder->map, step->address, &block))
        return block;
    builder->operations->unknown++;
    return NO_BLOCK;
}

static void add_allocation(struct builder *builder, const struct culet_step *step, enum culet_event kind)
{
    uint32_t block = new_block(builder);

    put_block(builder, step, block);
    append(builder, step, kind, block);
}

static void add_realloc(struct builder *builder, const struct culet_step *step)
{
    if (step->block == NO_BLOCK) {
        if (step->address)
            add_allocation(builder, step, CULET_EVENT_MALLOC);
    } else if (!step->address) {
        add_free(builder, step, step->block);
    } else {
        put_block(builder, step, step->block);
        append(builder, step, CULET_EVENT_REALLOC, step->block);
    }
}

static void convert(struct builder *builder, struct culet_timeline *timeline, const struct culet_step *step)
{
    uint32_t block;

    switch (step->kind) {
    case CULET_EVENT_MALLOC:
    case CULET_EVENT_CALLOC:
    case CULET_EVENT_ALIGNED:
        add_allocation(builder, step, (enum culet_event)step->kind);
        break;
    case CULET_EVENT_FREE:
        block = remove_block(builder, step);
        if (block != NO_BLOCK)
            add_free(builder, step, block);
        break;
    case CULET_EVENT_REALLOC:
        timeline->steps[step->bytes].block = remove_block(builder, step);
        break;
    case CULET_STEP_REALLOC_END:
        add_realloc(builder, step);
        break;
    case CULET_STEP_REALLOC_FAILED:
        if (step->block != NO_BLOCK)
            culet_block_map_put(&builder->map, step->address, step->block, &block);
        break;
    }
}

struct culet_operations culet_operations_read(const char *path, bool single)
{
    struct culet_timeline timeline = culet_timeline_read(path);
    struct culet_operations operations = {.parent_missing = timeline.parent_missing};
    struct builder builder = {.operations = &operations, .path = path};

    for (size_t i = 0; i < timeline.count; i++) {
        if (i == timeline.own)
            operations.inherited = operations.count;
        if (single)
            timeline.steps[i].thread = 0;
        convert(&builder, &timeline, &timeline.steps[i]);
    }
    if (timeline.own && timeline.own >= timeline.count)
        operations.inherited = operations.count;
    operations.left_blocks = operations.blocks - builder.free_count;
    operations.left_bytes = builder.live_bytes;
    culet_timeline_free(&timeline);
    culet_block_map_free(&builder.map);
    return operations;
}
