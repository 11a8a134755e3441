#include "agent/objects.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/heap_walk.h"
#include "common/imemo.h"
#include "common/object_bytes.h"
#include "common/pages.h"
#include "reading/clock.h"

#define TYPES 32
#define DATA_TYPES 4096
#define DATA_SHOWN 20
#define CLOCK_EVERY 1024 /* slots between two readings of the clock */

struct tally {
    const void *key;
    const char *name;
    size_t count, slot_bytes, malloc_bytes, elsewhere_bytes, shared, unmeasured;
};

struct count {
    const struct culet_objects_options *options;
    double start;       /* of CLOCK_MONOTONIC */
    size_t since_clock; /* slots since the last look at the clock */
    int incomplete;
    struct tally all;
    struct tally types[TYPES];
    struct tally internals[CULET_IMEMO_KINDS];
    struct tally data[DATA_TYPES]; /* hash table with open addressing */
    struct tally other_data;       /* types beyond the table's capacity or the largest ones */
    struct culet_classes classes;
};

/* ---- one object ---- */

/* Adds one object to the sums. */
static struct tally tally_of(const struct count *count, VALUE object, size_t slot_bytes)
{
    VALUE flags = RBASIC(object)->flags;
    int type = (int)(flags & RUBY_T_MASK);
    int asked = type != T_DATA || (count->options->data & CULET_REPORT_DATA) != 0;
    struct culet_object_bytes bytes =
        asked ? culet_object_bytes(object, slot_bytes) : (struct culet_object_bytes){.slot = slot_bytes};
    int shared = (type == T_STRING || type == T_ARRAY) && (flags & CULET_ELEMENTS_SHARED) != 0;
    size_t in_malloc = CULET_MALLOC_HAS_TRANSIENT ? bytes.transient : 0;

    return (struct tally){.count = 1,
                          .slot_bytes = bytes.slot,
                          .malloc_bytes = bytes.malloc + in_malloc,
                          .elsewhere_bytes = bytes.transient - in_malloc + bytes.vm_stack,
                          .shared = shared != 0,
                          .unmeasured = !bytes.measured};
}

static void add(struct tally *sum, const struct tally *part)
{
    sum->count += part->count;
    sum->slot_bytes += part->slot_bytes;
    sum->malloc_bytes += part->malloc_bytes;
    sum->elsewhere_bytes += part->elsewhere_bytes;
    sum->shared += part->shared;
    sum->unmeasured += part->unmeasured;
}

static struct tally *tally_of_data(struct count *count, VALUE object)
{
    const rb_data_type_t *type = RTYPEDDATA_P(object) ? RTYPEDDATA_TYPE(object) : NULL;
    size_t at = ((uintptr_t)type >> 3) * 0x9e3779b1U % DATA_TYPES;

    for (size_t tries = 0; tries < DATA_TYPES; tries++, at = (at + 1) % DATA_TYPES) {
        struct tally *tally = &count->data[at];
        if (tally->name == NULL) {
            tally->key = type;
            tally->name = type == NULL                     ? "untyped"
                          : type->wrap_struct_name != NULL ? type->wrap_struct_name
                                                           : "unnamed";
        }
        if (tally->key == type)
            return tally;
    }
    return &count->other_data;
}

static void count_object(struct count *count, VALUE object, size_t slot_bytes)
{
    struct tally one = tally_of(count, object, slot_bytes);
    VALUE flags = RBASIC(object)->flags;
    int type = (int)(flags & RUBY_T_MASK);

    add(&count->all, &one);
    add(&count->types[type], &one);
    if (type == T_DATA)
        add(tally_of_data(count, object), &one);
    if (count->options->data & CULET_REPORT_CLASSES)
        culet_classes_add(&count->classes, object);
    if (type == T_IMEMO)
        add(&count->internals[culet_imemo_kind(flags)], &one);
}

/* Reads the clock before the first slot, and then once per CLOCK_EVERY slots: with MMTk each slot is a run. */
static int is_late(struct count *count, size_t slots)
{
    int look = count->since_clock == 0 || count->since_clock >= CLOCK_EVERY;

    count->since_clock = (look ? 0 : count->since_clock) + slots;
    return look && culet_seconds_since(count->start) > count->options->limit_seconds;
}

/* Counts one run of slots. */
static int count_page(void *start, void *past, size_t slot_bytes, void *data)
{
    struct count *count = data;

    if (count->incomplete || is_late(count, (size_t)((char *)past - (char *)start) / slot_bytes)) {
        count->incomplete = 1;
        return 1;
    }
    for (char *slot = start; slot < (char *)past; slot += slot_bytes) {
        VALUE object = (VALUE)slot;
        int type = (int)(RBASIC(object)->flags & RUBY_T_MASK);
        if (type != T_NONE && type != T_MOVED)
            count_object(count, object, slot_bytes);
    }
    return 0;
}

/* ---- names ---- */

static const char *type_name(int type)
{
    static const char *const names[TYPES] = {
        [T_OBJECT] = "T_OBJECT", [T_CLASS] = "T_CLASS",     [T_MODULE] = "T_MODULE",     [T_FLOAT] = "T_FLOAT",
        [T_STRING] = "T_STRING", [T_REGEXP] = "T_REGEXP",   [T_ARRAY] = "T_ARRAY",       [T_HASH] = "T_HASH",
        [T_STRUCT] = "T_STRUCT", [T_BIGNUM] = "T_BIGNUM",   [T_FILE] = "T_FILE",         [T_DATA] = "T_DATA",
        [T_MATCH] = "T_MATCH",   [T_COMPLEX] = "T_COMPLEX", [T_RATIONAL] = "T_RATIONAL", [T_SYMBOL] = "T_SYMBOL",
        [T_IMEMO] = "T_IMEMO",   [T_NODE] = "T_NODE",       [T_ICLASS] = "T_ICLASS",     [T_ZOMBIE] = "T_ZOMBIE",
    };

    return names[type] != NULL ? names[type] : "unknown";
}

/* Only kinds of existing objects are looked up in Ruby. */
static void name_all(struct count *count)
{
    for (int type = 0; type < TYPES; type++)
        count->types[type].name = type_name(type);
    for (unsigned kind = 0; kind < CULET_IMEMO_KINDS; kind++)
        if (count->internals[kind].count > 0)
            count->internals[kind].name = culet_imemo_name(kind);
}

/* ---- report ---- */

static int larger_first(const void *one, const void *other)
{
    const struct tally *a = one, *b = other;
    size_t a_bytes = a->slot_bytes + a->malloc_bytes, b_bytes = b->slot_bytes + b->malloc_bytes;

    return (a_bytes < b_bytes) - (a_bytes > b_bytes);
}

static void write_tally(struct culet_buffer *buffer, const struct tally *tally, int kind)
{
    char number[32];
    const char *name = tally->name;

    snprintf(number, sizeof(number), "kind %d", kind);
    if (name == NULL)
        name = number;
    culet_buffer_text(buffer, "{\"name\":");
    culet_buffer_json_string(buffer, name, strlen(name));
    culet_buffer_format(buffer, ",\"count\":%zu,\"slot_bytes\":%zu,\"malloc_bytes\":%zu", tally->count,
                        tally->slot_bytes, tally->malloc_bytes);
    culet_buffer_format(buffer, ",\"elsewhere_bytes\":%zu,\"shared\":%zu,\"untold\":%zu}", tally->elsewhere_bytes,
                        tally->shared, tally->unmeasured);
}

static void write_list(struct culet_buffer *buffer, const char *name, const struct tally *list, int length)
{
    culet_buffer_format(buffer, ",\"%s\":[", name);
    for (int i = 0; i < length; i++) {
        if (list[i].count == 0)
            continue;
        culet_buffer_comma(buffer);
        write_tally(buffer, &list[i], i);
    }
    culet_buffer_text(buffer, "]");
}

/* Sums up all but the largest types behind them. Returns how many entries to report. */
static int gather_data(struct count *count)
{
    struct tally *others = &count->data[DATA_SHOWN];

    qsort(count->data, DATA_TYPES, sizeof(count->data[0]), larger_first);
    for (int i = DATA_SHOWN; i < DATA_TYPES; i++)
        add(&count->other_data, &count->data[i]);
    *others = count->other_data;
    others->name = "others";
    return DATA_SHOWN + 1;
}

/* why: the reason if nothing was counted, or "". */
static void write_count(struct culet_buffer *buffer, struct count *count, const char *why)
{
    int data;

    name_all(count);
    data = gather_data(count);
    culet_buffer_format(buffer, "{\"kind\":\"objects\",\"seconds\":%.6f,\"complete\":%s,\"data_asked\":%s",
                        culet_seconds_since(count->start), count->incomplete ? "false" : "true",
                        count->options->data & CULET_REPORT_DATA ? "true" : "false");
    culet_buffer_format(
        buffer, ",\"count\":%zu,\"slot_bytes\":%zu,\"malloc_bytes\":%zu,\"elsewhere_bytes\":%zu,\"why\":\"%s\"",
        count->all.count, count->all.slot_bytes, count->all.malloc_bytes, count->all.elsewhere_bytes, why);
    write_list(buffer, "data", count->data, data);
    write_list(buffer, "internals", count->internals, CULET_IMEMO_KINDS);
    qsort(count->types, TYPES, sizeof(count->types[0]), larger_first);
    write_list(buffer, "types", count->types, TYPES);
    culet_buffer_text(buffer, "}\n");
    if (why[0] == '\0' && (count->options->data & CULET_REPORT_CLASSES))
        culet_classes_write(buffer, &count->classes);
}

/* ---- the count ---- */

void culet_objects_write(struct culet_buffer *buffer, const struct culet_objects_options *options)
{
    const char *obstacle = culet_heap_walk_obstacle();
    struct count *count;
    int failure = 0;

    culet_object_bytes_prepare();
    count = culet_pages_grow(NULL, 0, sizeof(*count));
    if (count == NULL)
        rb_raise(rb_eNoMemError, "not enough memory to count objects");
    count->options = options;
    count->start = culet_clock_seconds(CLOCK_MONOTONIC);
    count->incomplete = obstacle != NULL;
    if (obstacle == NULL)
        failure = culet_heap_walk(count_page, count);
    if (!failure)
        write_count(buffer, count, obstacle != NULL ? obstacle : "");
    culet_buffer_free(&count->classes.names);
    munmap(count, sizeof(*count));
    if (failure)
        rb_jump_tag(failure);
}
