#include "regions/region_records.h"

#include "output/stream.h"

/* ---- collecting ---- */

void culet_region_append_block(struct culet_region *region, uint64_t bytes, unsigned state)
{
    uint64_t units = bytes / CULET_BLOCK_UNIT;

    /* A block of more than 16 GiB is written in parts. */
    do {
        uint32_t part = units < (1u << 30) ? (uint32_t)units : (1u << 30) - 1;
        uint32_t item = part << CULET_BLOCK_STATE_BITS | state;
        culet_buffer_add(&region->blocks, &item, sizeof item);
        units -= part;
    } while (units);
}

void culet_region_add_blocks(struct culet_regions *regions, struct culet_region *region, uint64_t bytes, uint64_t count,
                             unsigned state)
{
    for (; count && regions->block_count < regions->max_blocks; count--)
        culet_region_add_block(regions, region, bytes, state);
    regions->block_count += count;
    region->block_count += count;
}

/* ---- writing ---- */

/* The first and the last page may belong to the region in part only. */
static void add_fill(const struct culet_region *region, struct culet_runs *fill, const struct culet_page_run *run)
{
    uint64_t last = run->first + run->count - 1;

    for (uint64_t page = run->first; run->used && page <= last; page++)
        culet_runs_add(fill, culet_region_page_used(region, run, page), 1);
    if (run->used)
        return;
    culet_runs_add(fill, culet_region_page_used(region, run, run->first), 1);
    if (run->count > 2)
        culet_runs_add(fill, culet_region_page_used(region, run, run->first + 1), run->count - 2);
    if (run->count > 1)
        culet_runs_add(fill, culet_region_page_used(region, run, last), 1);
}

static void write_fill(const struct culet_region *region)
{
    struct culet_page_run run;
    struct culet_buffer record = {0};
    struct culet_runs fill = {.to = &record};

    culet_buffer_varint(&record, region->id);
    for (uint64_t i = 0; i < region->pages; i += run.count) {
        run = culet_region_page_run(region, i);
        add_fill(region, &fill, &run);
    }
    culet_runs_end(&fill);
    culet_stream_record(CULET_RECORD_FILL, record.bytes, record.length);
    culet_buffer_free(&record);
}

static void write_blocks(const struct culet_region *region)
{
    struct culet_buffer record = {0};
    const uint32_t *items = (const uint32_t *)(const void *)region->blocks.bytes;

    culet_buffer_varint(&record, region->id);
    culet_buffer_varint(&record, region->first_block - region->start);
    for (size_t i = 0; i < region->blocks.length / sizeof *items; i++)
        culet_buffer_varint(&record, items[i]);
    culet_stream_record(CULET_RECORD_BLOCKS, record.bytes, record.length);
    culet_buffer_free(&record);
}

void culet_region_write(const struct culet_regions *regions, const struct culet_region *region)
{
    write_fill(region);
    if (region->blocks.length && regions->block_count <= regions->max_blocks)
        write_blocks(region);
}
