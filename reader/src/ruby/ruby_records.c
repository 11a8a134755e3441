#include "ruby/ruby_heap.h"

#include "base/bytes.h"
#include "output/json.h"
#include "output/stream.h"
#include "reader/layouts/ruby_slot.h"

#include <inttypes.h>
#include <stdlib.h>

#define MOST_SLOT_SIZES 64

static void write_page(const struct culet_ruby_found_page *page)
{
    struct culet_buffer record = {0};

    culet_buffer_varint(&record, page->shape.start);
    culet_buffer_varint(&record, page->shape.slot_bytes);
    culet_buffer_varint(&record, page->shape.first);
    culet_buffer_varint(&record, page->shape.slots);
    culet_buffer_add(&record, page->bitmap, culet_ruby_page_bitmap(&page->shape));
    culet_stream_record(CULET_RECORD_RUBY_PAGE, record.bytes, record.length);
    culet_buffer_free(&record);
}

struct slots {
    uint64_t slot_bytes, pages, live, free; /* slot_bytes first, for culet_by_word */
};

/* Counts slots by size. Returns the number of sizes. */
static size_t count_slots(const struct culet_ruby *ruby, struct slots *slots)
{
    size_t sizes = 0;

    for (size_t i = 0; i < ruby->count; i++) {
        const struct culet_ruby_found_page *page = &ruby->pages[i];
        size_t s = 0;
        if (!page->shape.slots)
            continue;
        while (s < sizes && slots[s].slot_bytes != page->shape.slot_bytes)
            s++;
        if (s == MOST_SLOT_SIZES)
            continue;
        if (s == sizes)
            slots[sizes++] = (struct slots){.slot_bytes = page->shape.slot_bytes};
        slots[s].pages++;
        slots[s].live += page->slots.live;
        slots[s].free += page->shape.slots - page->slots.live;
    }
    qsort(slots, sizes, sizeof *slots, culet_by_word);
    return sizes;
}

/* The number of objects that survived so many collections that Ruby counts them as old. */
static uint64_t count_old(const struct culet_ruby *ruby)
{
    struct culet_ruby_slots all = {0};

    for (size_t i = 0; i < ruby->count; i++) {
        const struct culet_ruby_slots *slots = &ruby->pages[i].slots;
        all.live += slots->live;
        all.promoted += slots->promoted;
        all.both += slots->both;
        all.upper += slots->upper;
    }
    return ruby_slot_old_mask(all.live, all.upper) == RUBY_SLOT_AGE_MASK ? all.both : all.promoted;
}

static void write_slots(struct culet_json *json, const struct culet_ruby *ruby)
{
    struct slots slots[MOST_SLOT_SIZES];
    size_t sizes = count_slots(ruby, slots);
    struct culet_buffer text = {0};

    culet_buffer_print(&text, "[");
    for (size_t s = 0; s < sizes; s++)
        culet_buffer_print(
            &text, "%s{\"slot_bytes\":%" PRIu64 ",\"pages\":%" PRIu64 ",\"live\":%" PRIu64 ",\"free\":%" PRIu64 "}",
            s ? "," : "", slots[s].slot_bytes, slots[s].pages, slots[s].live, slots[s].free);
    culet_buffer_print(&text, "]");
    culet_buffer_byte(&text, 0);
    culet_json_raw(json, "slots", (const char *)text.bytes);
    culet_buffer_free(&text);
}

void culet_ruby_write(struct culet_reading *reading, void *context)
{
    const struct culet_ruby *ruby = context;
    struct culet_region_sum transient = {0};
    struct culet_json json;

    (void)reading;
    if (ruby->transient.region)
        transient = culet_region_sum(ruby->transient.region);
    culet_json_begin(&json, "ruby");
    culet_json_text(&json, "version", ruby->version[0] ? ruby->version : NULL);
    culet_json_number(&json, "page_bytes", ruby->page_bytes);
    culet_json_number(&json, "pages", ruby->count);
    write_slots(&json, ruby);
    culet_json_number(&json, "old_objects", count_old(ruby));
    if (ruby->collections.known) {
        culet_json_number(&json, "minor_gcs", ruby->collections.minor);
        culet_json_number(&json, "major_gcs", ruby->collections.major);
    }
    culet_json_number(&json, "live_bytes", ruby->all.live);
    culet_json_number(&json, "free_bytes", ruby->all.free);
    culet_json_number(&json, "overhead_bytes", ruby->all.overhead);
    culet_json_number(&json, "live_resident_bytes", ruby->resident.live);
    culet_json_number(&json, "free_resident_bytes", ruby->resident.free);
    culet_json_number(&json, "overhead_resident_bytes", ruby->resident.overhead);
    culet_json_number(&json, "transient_bytes", transient.used);
    culet_json_number(&json, "transient_resident_bytes", transient.used_resident + transient.free_resident);
    culet_json_text(&json, "why", ruby->why);
    culet_json_end(&json);
    for (size_t i = 0; i < ruby->count; i++)
        if (ruby->pages[i].shape.slots)
            write_page(&ruby->pages[i]);
}
