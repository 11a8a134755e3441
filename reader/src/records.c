#define _GNU_SOURCE
#include "records.h"

#include "base/clock.h"
#include "malloc_records.h"
#include "output/json.h"
#include "output/stream.h"
#include "process/proc.h"
#include "regions/region_records.h"

#include <string.h>

static void write_process(const struct culet_reading *reading)
{
    static const char *const modes[] = {[CULET_SLICED] = "sliced", [CULET_STOPPED] = "stopped", [CULET_LIVE] = "live"};
    const struct culet_target *target = &reading->target;
    char name[64], title[256];
    struct culet_json json;

    culet_proc_line(culet_proc_path("/proc/%d/comm", (int)target->process).text, name, sizeof name);
    culet_proc_title(target->pid, title, sizeof title);
    culet_json_begin(&json, "process");
    culet_json_number(&json, "pid", (uint64_t)target->process);
    culet_json_text(&json, "name", name);
    if (*title)
        culet_json_text(&json, "title", title);
    culet_json_text(&json, "program", reading->program);
    culet_json_number(&json, "page_bytes", reading->page_bytes);
    culet_json_number(&json, "bits", reading->bits);
    culet_json_text(&json, "mode", modes[target->limit_reached ? CULET_SLICED : target->mode]);
    culet_json_number(&json, "threads", culet_target_threads(target));
    culet_json_seconds(&json, "time", culet_clock_read(CLOCK_REALTIME));
    culet_json_number(&json, "rss_bytes", reading->maps.rss);
    culet_json_number(&json, "pss_bytes", reading->maps.pss);
    culet_json_number(&json, "shared_bytes", reading->maps.shared);
    culet_json_number(&json, "private_dirty_bytes", reading->maps.private_dirty);
    culet_json_number(&json, "swap_bytes", reading->maps.swap);
    culet_json_end(&json);
}

static void write_mapping(const struct culet_mapping *mapping)
{
    struct culet_json json;

    culet_json_begin(&json, "mapping");
    culet_json_number(&json, "id", mapping->id);
    culet_json_number(&json, "start", mapping->start);
    culet_json_number(&json, "end", mapping->end);
    culet_json_text(&json, "perms", mapping->perms);
    culet_json_number(&json, "offset", mapping->offset);
    culet_json_number(&json, "inode", mapping->inode);
    culet_json_text(&json, "path", mapping->path);
    culet_json_number(&json, "rss_bytes", mapping->rss);
    culet_json_number(&json, "pss_bytes", mapping->pss);
    culet_json_number(&json, "shared_clean_bytes", mapping->shared_clean);
    culet_json_number(&json, "shared_dirty_bytes", mapping->shared_dirty);
    culet_json_number(&json, "private_clean_bytes", mapping->private_clean);
    culet_json_number(&json, "private_dirty_bytes", mapping->private_dirty);
    culet_json_number(&json, "swap_bytes", mapping->swap);
    culet_json_text(&json, "use", mapping->use ? mapping->use : "other");
    culet_json_text(&json, "label", mapping->label ? mapping->label : "");
    culet_json_end(&json);
}

static void write_pages(const struct culet_reading *reading, const struct culet_mapping *mapping)
{
    struct culet_buffer record = {0};

    culet_buffer_varint(&record, mapping->id);
    if (mapping->pages.length) {
        culet_buffer_add(&record, mapping->pages.bytes, mapping->pages.length);
    } else {
        culet_buffer_varint(&record, (mapping->end - mapping->start) / reading->page_bytes);
        culet_buffer_byte(&record, 0);
    }
    culet_stream_record(CULET_RECORD_PAGES, record.bytes, record.length);
    culet_buffer_free(&record);
}

/* NULL is written as null. */
static void write_id(struct culet_json *json, const char *key, const uint32_t *id)
{
    if (id)
        culet_json_number(json, key, *id);
    else
        culet_json_raw(json, key, "null");
}

static void write_region(const struct culet_reading *reading, const struct culet_region *region)
{
    const struct culet_mapping *mapping = culet_maps_at(&reading->maps, region->start);
    struct culet_json json;

    culet_json_begin(&json, "region");
    culet_json_number(&json, "id", region->id);
    write_id(&json, "arena", region->arena == CULET_NO_ARENA ? NULL : &region->arena);
    culet_json_text(&json, "holds", region->kind);
    culet_json_number(&json, "start", region->start);
    culet_json_number(&json, "end", region->end);
    write_id(&json, "mapping", mapping ? &mapping->id : NULL);
    culet_json_end(&json);
    culet_region_write(&reading->regions, region);
}

void culet_records_write_process(const struct culet_reading *reading)
{
    write_process(reading);
    for (size_t i = 0; i < reading->maps.count; i++) {
        write_mapping(&reading->maps.all[i]);
        write_pages(reading, &reading->maps.all[i]);
    }
    for (size_t i = 0; i < reading->regions.count; i++)
        write_region(reading, reading->regions.all[i]);
}

void culet_records_write_end(const struct culet_reading *reading)
{
    const char *problems = (const char *)reading->problems.bytes;

    if (!reading->active_malloc)
        culet_allocator_record_write(&(struct culet_allocator_record){
            .name = reading->readable ? "none" : "unknown",
            .library = "",
            .by_pages = true,
            .why = reading->readable ? "no heap of a known allocator was found"
                                     : "the memory of the process cannot be read as that of a 64-bit program"});
    culet_pauses_write(&reading->target.pauses);
    for (size_t at = 0; at < reading->problems.length; at += strlen(problems + at) + 1)
        culet_json_problem("%s", problems + at);
}
