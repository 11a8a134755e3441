/* The walker of Ruby's heap: finds its pages by their contents, and which of their slots are live. */
#include "ruby.h"

#include "../format.h"
#include "elf_file.h"
#include "gather.h"
#include "names.h"
#include "ruby_page.h"
#include "ruby_transient.h"
#include "stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of live slots, free slots and the rest of a page. */
struct share {
    uint64_t live, free, overhead;
};

struct page {
    struct culet_ruby_page shape;
    uint32_t live;
    unsigned char *bitmap; /* NULL until its slots were looked at */
};

#define MOST_SLOT_SIZES 64

static struct {
    char version[32]; /* "": not known */
    char why[320];    /* no pages were found; "": some were */
    struct page *pages;
    size_t count, room;
    uint32_t page_bytes;
    struct share all, resident;
    struct culet_transient transient;
    uint64_t swapped; /* pages with a part in swap */
} ruby;

/* ---- is it Ruby? ---- */

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* A garbage collector that Ruby has loaded as a library, by RUBY_GC_LIBRARY (see gc.c in Ruby's sources). */
static bool is_collector(const char *base)
{
    return starts_with(base, "librubygc.");
}

static const struct culet_mapping *find_collector(const struct culet_scope *scope)
{
    for (size_t i = 0; i < scope->maps.count; i++)
        if (scope->maps.all[i].inode && is_collector(culet_names_base(scope->maps.all[i].path)))
            return &scope->maps.all[i];
    return NULL;
}

static bool is_libruby(const char *base)
{
    return starts_with(base, "libruby") && !is_collector(base);
}

/* The file with the interpreter: libruby where there is one, else the program. */
static const struct culet_mapping *find_interpreter(const struct culet_scope *scope)
{
    const struct culet_mapping *program = NULL;

    for (size_t i = 0; i < scope->maps.count; i++) {
        const struct culet_mapping *mapping = &scope->maps.all[i];
        if (!mapping->inode)
            continue;
        if (is_libruby(culet_names_base(mapping->path)))
            return mapping;
        if (!program && strcmp(mapping->path, scope->program) == 0)
            program = mapping;
    }
    return program;
}

static bool find_version(const struct culet_scope *scope, const struct culet_mapping *mapping)
{
    struct culet_elf elf;
    bool found;

    if (!culet_elf_open(&elf, scope->target.pid, mapping))
        return false;
    found = culet_elf_text(&elf, "ruby_version", ruby.version, sizeof ruby.version);
    culet_elf_close(&elf);
    return found;
}

bool culet_ruby_is_there(const struct culet_scope *scope)
{
    const struct culet_mapping *mapping = find_interpreter(scope);

    return mapping && (is_libruby(culet_names_base(mapping->path)) ||
                       starts_with(culet_names_base(mapping->path), "ruby"));
}

/* Reading files takes longer than a pause should; what decides that it is Ruby is in the list of mappings. The version
 * is looked up in `walk`. */
static bool ruby_recognise(struct culet_scope *scope)
{
    return culet_ruby_is_there(scope);
}

/* ---- finding the pages ---- */

/* Whether pages can be blocks of malloc's: where the kernel's are longer than Ruby's, it asks malloc for them. */
static bool in_malloc(const struct culet_scope *scope)
{
    return scope->page_bytes > CULET_RUBY_SHORT;
}

static bool is_candidate(struct culet_scope *scope, uint64_t address)
{
    return in_malloc(scope) || !culet_places_at(&scope->places, address);
}

/* A pointer to a description: aligned, into memory that is written to, and not into the page itself. */
static bool can_describe(const struct culet_scope *scope, uint64_t start, uint64_t pointer)
{
    if (pointer % 8 || !pointer || pointer - start < CULET_RUBY_SHORT)
        return false;
    const struct culet_mapping *mapping = culet_maps_at(&scope->maps, pointer);
    return mapping && mapping->perms[1] == 'w' && pointer + CULET_RUBY_DESCRIPTION <= mapping->end;
}

static void add_page(const struct culet_ruby_page *shape)
{
    ruby.pages = culet_grow(ruby.pages, &ruby.room, ruby.count + 1, sizeof *ruby.pages);
    ruby.pages[ruby.count++] = (struct page){.shape = *shape};
}

/* Looks at the descriptions that the first words of these candidates point to. */
static void look_at(struct culet_scope *scope, const uint64_t *starts, size_t count)
{
    static unsigned char descriptions[CULET_GATHER_PIECES][CULET_RUBY_DESCRIPTION];
    static uint64_t words[CULET_GATHER_PIECES][2], pointers[CULET_GATHER_PIECES], described[CULET_GATHER_PIECES];
    static bool got[CULET_GATHER_PIECES];
    struct culet_ruby_page shape;
    size_t wanted = 0;

    culet_gather(&scope->memory, starts, count, sizeof *words, words, got);
    for (size_t i = 0; i < count; i++) {
        if (!got[i])
            continue;
        culet_transient_note(&ruby.transient, starts[i], words[i]);
        if (can_describe(scope, starts[i], words[i][0])) {
            described[wanted] = starts[i];
            pointers[wanted++] = words[i][0];
        }
    }
    culet_gather(&scope->memory, pointers, wanted, CULET_RUBY_DESCRIPTION, descriptions, got);
    for (size_t i = 0; i < wanted; i++)
        if (got[i] && culet_ruby_page_recognise(described[i], descriptions[i], &shape))
            add_page(&shape);
}

/* The next place from `at` on where a page can begin: in memory, as its first word is read. */
static uint64_t next_start(struct culet_scope *scope, uint64_t at, uint64_t end)
{
    const unsigned shift = scope->pages.shift;

    at = culet_pages_next(&scope->pages, at >> shift, ((end - 1) >> shift) + 1) << shift;
    return (at + CULET_RUBY_SHORT - 1) & ~(uint64_t)(CULET_RUBY_SHORT - 1);
}

static void find_pages(struct culet_scope *scope)
{
    static uint64_t starts[CULET_GATHER_PIECES];
    size_t count = 0;

    for (size_t i = 0; i < scope->maps.count && !scope->pages.spent; i++) {
        const struct culet_mapping *mapping = &scope->maps.all[i];
        uint64_t at = (mapping->start + CULET_RUBY_SHORT - 1) & ~(uint64_t)(CULET_RUBY_SHORT - 1);
        if (!culet_mapping_is_heap_like(mapping) || mapping->start >= UINT64_C(1) << 56)
            continue;
        for (; at + CULET_RUBY_SHORT <= mapping->end; at += CULET_RUBY_SHORT) {
            /* What is resident is asked for anew only where a long stretch may be empty. */
            if (!(culet_pages_at(&scope->pages, at) & CULET_PAGE_PRESENT)) {
                uint64_t next = next_start(scope, at, mapping->end);
                if (next > at) {
                    at = next - CULET_RUBY_SHORT;
                    continue;
                }
            }
            if (!is_candidate(scope, at))
                continue;
            starts[count++] = at;
            if (count < CULET_GATHER_PIECES)
                continue;
            look_at(scope, starts, count);
            count = 0;
            culet_scope_breathe(scope);
        }
    }
    look_at(scope, starts, count);
}

/* Layouts differ in where among a description's words the pointer back is. */
#define LAYOUTS (CULET_RUBY_DESCRIPTION / 8)

static size_t kind_of(const struct culet_ruby_page *page)
{
    return page->layout / 8 % LAYOUTS + (page->bytes == CULET_RUBY_LONG ? LAYOUTS : 0);
}

/* All pages of a process have one length and one layout of their descriptions: the most frequent. What only looks like
 * a page is dropped. */
static void keep_alike(void)
{
    size_t votes[2 * LAYOUTS] = {0}, best = 0, kept = 0;

    for (size_t i = 0; i < ruby.count; i++)
        if (++votes[kind_of(&ruby.pages[i].shape)] > votes[best])
            best = kind_of(&ruby.pages[i].shape);
    for (size_t i = 0; i < ruby.count; i++)
        if (kind_of(&ruby.pages[i].shape) == best)
            ruby.pages[kept++] = ruby.pages[i];
    ruby.count = kept;
    ruby.page_bytes = kept ? ruby.pages[0].shape.bytes : 0;
}

/* ---- slots ---- */

/* Looks at the slots of the parts of the page that are in memory. What lies behind it up to `limit` is wanted next. */
static void read_slots(struct culet_scope *scope, struct page *page, uint64_t limit)
{
    const struct culet_ruby_page *shape = &page->shape;
    uint64_t end = shape->start + shape->bytes;

    page->bitmap = culet_new(culet_ruby_page_bitmap(shape) + 1, 1);
    for (uint64_t at = shape->start; at < end;) {
        size_t length;
        const unsigned char *memory = culet_memory_span(&scope->memory, at, 8, limit, &length);
        if (!memory) {
            ruby.swapped += (culet_pages_at(&scope->pages, at) & CULET_PAGE_SWAPPED) != 0;
            at = (at | (scope->page_bytes - 1)) + 1;
            continue;
        }
        if (length > end - at)
            length = (size_t)(end - at);
        uint32_t from = (uint32_t)(at - shape->start);
        page->live += culet_ruby_page_live(shape, memory, from, from + (uint32_t)length, page->bitmap);
        at += length;
    }
}

static bool is_live(const struct page *page, uint32_t slot)
{
    return page->bitmap[slot / 8] >> slot % 8 & 1;
}

/* Bytes of from..to that are in memory. */
static uint64_t resident(struct culet_scope *scope, uint64_t from, uint64_t to)
{
    uint64_t bytes = 0;

    while (from < to) {
        uint64_t end = (from | (scope->page_bytes - 1)) + 1;
        if (end > to)
            end = to;
        if (culet_pages_at(&scope->pages, from) & CULET_PAGE_PRESENT)
            bytes += end - from;
        from = end;
    }
    return bytes;
}

/* Neighbouring slots in one state at a time. `place` is NULL for a page that is a block of malloc's. */
static void add_up(struct culet_scope *scope, struct culet_place *place, const struct page *page)
{
    const struct culet_ruby_page *shape = &page->shape;
    uint64_t first = shape->start + shape->first, slots = (uint64_t)shape->slots * shape->slot_bytes;
    uint64_t whole = resident(scope, shape->start, shape->start + shape->bytes), told = 0;

    if (!shape->slots) {
        ruby.all.free += shape->bytes;
        ruby.resident.free += whole;
        return;
    }
    for (uint32_t from = 0, to; from < shape->slots; from = to) {
        bool live = is_live(page, from);
        for (to = from + 1; to < shape->slots && is_live(page, to) == live;)
            to++;
        uint64_t start = first + (uint64_t)from * shape->slot_bytes, end = first + (uint64_t)to * shape->slot_bytes;
        uint64_t here = resident(scope, start, end);
        told += here;
        *(live ? &ruby.resident.live : &ruby.resident.free) += here;
        *(live ? &ruby.all.live : &ruby.all.free) += end - start;
        if (live && place)
            culet_place_use(&scope->places, place, start, end);
    }
    ruby.all.overhead += shape->bytes - slots;
    ruby.resident.overhead += whole - told;
}

/* Pages that lie side by side in one mapping are one region, up to so many. */
#define PAGES_PER_REGION 256

static size_t neighbours(const struct culet_scope *scope, size_t from)
{
    const struct culet_mapping *mapping = culet_maps_at(&scope->maps, ruby.pages[from].shape.start);
    size_t to = from + 1;

    while (to < ruby.count && to - from < PAGES_PER_REGION &&
           ruby.pages[to].shape.start == ruby.pages[to - 1].shape.start + ruby.page_bytes && mapping &&
           ruby.pages[to].shape.start < mapping->end)
        to++;
    return to;
}

static struct culet_place *new_place(struct culet_scope *scope, uint64_t start, uint64_t end)
{
    struct culet_place *place = culet_scope_place(scope, "ruby", CULET_NO_ARENA, start, end, false);

    if (!place)
        return NULL;
    place->malloc = false;
    culet_names_range(&scope->maps, start, end, "ruby", "Ruby's heap");
    return place;
}

/* The pages from..to, which are one region. Where there cannot be one they are none: false, and nothing is known of them. */
static bool walk_region(struct culet_scope *scope, size_t from, size_t to)
{
    uint64_t start = ruby.pages[from].shape.start, end = ruby.pages[to - 1].shape.start + ruby.page_bytes;
    bool separate = !in_malloc(scope) || !culet_places_at(&scope->places, start);
    struct culet_place *place = separate ? new_place(scope, start, end) : NULL;

    if (separate && !place)
        return false;
    for (size_t i = from; i < to; i++) {
        struct page *page = &ruby.pages[i];
        if (place)
            culet_scope_states(scope, place, page->shape.start, page->shape.start + ruby.page_bytes);
        read_slots(scope, page, end);
        add_up(scope, place, page);
        culet_scope_breathe(scope);
    }
    return true;
}

static void walk_pages(struct culet_scope *scope)
{
    size_t kept = 0;

    for (size_t i = 0, to; i < ruby.count; i = to) {
        to = neighbours(scope, i);
        if (!walk_region(scope, i, to))
            continue;
        memmove(ruby.pages + kept, ruby.pages + i, (to - i) * sizeof *ruby.pages);
        kept += to - i;
    }
    ruby.count = kept;
}

/* Whether the kernel knows memory of Ruby's heap by name. */
static bool has_names(const struct culet_scope *scope)
{
    for (size_t i = 0; i < scope->maps.count; i++) {
        const char *use = culet_names_special(scope->maps.all[i].path);
        if (use && strcmp(use, "ruby") == 0)
            return true;
    }
    return false;
}

/* Without pages there are no slots to tell. Where another collector has the objects, what they take is in sums of other
 * names, and who reads those has to know it. */
static void explain(struct culet_scope *scope)
{
    const struct culet_mapping *collector = find_collector(scope);

    if (ruby.count)
        return;
    if (!collector) {
        snprintf(ruby.why, sizeof ruby.why, "No pages of Ruby's heap were found: their layout is not one that is known here.");
        return;
    }
    snprintf(ruby.why, sizeof ruby.why,
             "Ruby's objects are kept by a collector that was loaded as a library (%.64s), and the layout of its heap is not "
             "known here: its objects are not told, and their memory is %s.",
             culet_names_base(collector->path),
             has_names(scope) ? "told as a whole" : "taken for that of other mappings or of malloc's");
    culet_scope_problem(scope, "%s", ruby.why);
}

static void ruby_walk(struct culet_scope *scope)
{
    const struct culet_mapping *mapping = find_interpreter(scope);

    if (!mapping || !find_version(scope, mapping))
        ruby.version[0] = 0;
    culet_scope_pause(scope);
    find_pages(scope);
    keep_alike();
    culet_transient_walk(scope, &ruby.transient);
    walk_pages(scope);
    culet_scope_resume(scope);
    explain(scope);
    if (ruby.swapped)
        culet_scope_problem(scope, "%" PRIu64 " pages of Ruby's heap are in swap: their slots are told as free.", ruby.swapped);
}

/* ---- telling ---- */

static void tell_page(const struct page *page)
{
    struct culet_buffer record = {0};

    culet_buffer_varint(&record, page->shape.start);
    culet_buffer_varint(&record, page->shape.slot_bytes);
    culet_buffer_varint(&record, page->shape.first);
    culet_buffer_varint(&record, page->shape.slots);
    culet_buffer_add(&record, page->bitmap, culet_ruby_page_bitmap(&page->shape));
    culet_stream_record('R', record.bytes, record.length);
    culet_buffer_free(&record);
}

struct slots {
    uint64_t slot_bytes, pages, live, free;
};

static int compare(const void *a, const void *b)
{
    uint64_t first = ((const struct slots *)a)->slot_bytes, second = ((const struct slots *)b)->slot_bytes;

    return first < second ? -1 : first > second;
}

/* Counts by the slots' size. Returns how many sizes there are. */
static size_t count_slots(struct slots *slots)
{
    size_t sizes = 0;

    for (size_t i = 0; i < ruby.count; i++) {
        const struct page *page = &ruby.pages[i];
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
        slots[s].live += page->live;
        slots[s].free += page->shape.slots - page->live;
    }
    qsort(slots, sizes, sizeof *slots, compare);
    return sizes;
}

static void tell_slots(struct culet_json *json)
{
    struct slots slots[MOST_SLOT_SIZES];
    size_t sizes = count_slots(slots);
    struct culet_buffer text = {0};

    culet_buffer_print(&text, "[");
    for (size_t s = 0; s < sizes; s++)
        culet_buffer_print(&text, "%s{\"slot_bytes\":%" PRIu64 ",\"pages\":%" PRIu64 ",\"live\":%" PRIu64
                           ",\"free\":%" PRIu64 "}",
                           s ? "," : "", slots[s].slot_bytes, slots[s].pages, slots[s].live, slots[s].free);
    culet_buffer_print(&text, "]");
    culet_buffer_byte(&text, 0);
    culet_json_raw(json, "slots", (const char *)text.bytes);
    culet_buffer_free(&text);
}

static void ruby_tell(struct culet_scope *scope)
{
    struct culet_place_sum transient = {0};
    struct culet_json json;

    if (ruby.transient.place)
        transient = culet_place_sum(&scope->places, ruby.transient.place);
    culet_json_begin(&json, "ruby");
    culet_json_text(&json, "version", ruby.version[0] ? ruby.version : NULL);
    culet_json_number(&json, "page_bytes", ruby.page_bytes);
    culet_json_number(&json, "pages", ruby.count);
    tell_slots(&json);
    culet_json_number(&json, "live_bytes", ruby.all.live);
    culet_json_number(&json, "free_bytes", ruby.all.free);
    culet_json_number(&json, "overhead_bytes", ruby.all.overhead);
    culet_json_number(&json, "live_resident_bytes", ruby.resident.live);
    culet_json_number(&json, "free_resident_bytes", ruby.resident.free);
    culet_json_number(&json, "overhead_resident_bytes", ruby.resident.overhead);
    culet_json_number(&json, "transient_bytes", transient.used);
    culet_json_number(&json, "transient_resident_bytes", transient.used_resident + transient.free_resident);
    culet_json_text(&json, "why", ruby.why);
    culet_json_end(&json);
    for (size_t i = 0; i < ruby.count; i++)
        if (ruby.pages[i].shape.slots)
            tell_page(&ruby.pages[i]);
}

const struct culet_walker culet_ruby_walker = {
    .name = "ruby", .recognise = ruby_recognise, .walk = ruby_walk, .tell = ruby_tell};
