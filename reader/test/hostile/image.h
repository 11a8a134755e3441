/* image.h - checks that hold for any stream, and the addresses of the words in the process that the reader depends
 * on. */
#pragma once

#include "reader.h"
#include "reader/format.h"

/* Addresses of words, in groups. */
#define MOST_GROUPS 24u

struct words {
    uint64_t *all;
    size_t count, room;
};

struct group {
    const char *name;
    struct words words;
};

struct image {
    struct group groups[MOST_GROUPS];
    size_t count;
};

static inline void add_word(struct image *image, const char *group, uint64_t address)
{
    size_t i = 0;

    while (i < image->count && strcmp(image->groups[i].name, group) != 0)
        i++;
    CHECK(i < MOST_GROUPS, "too many groups");
    if (i == image->count)
        image->groups[image->count++].name = group;
    struct words *words = &image->groups[i].words;
    if (words->count == words->room) {
        words->room = words->room ? 2 * words->room : 64;
        words->all = realloc(words->all, words->room * sizeof *words->all);
        CHECK(words->all, "no memory");
    }
    words->all[words->count++] = address;
}

static inline void add_words(struct image *image, const char *group, uint64_t from, uint64_t bytes)
{
    for (uint64_t at = from & ~UINT64_C(7); at < from + bytes; at += 8)
        add_word(image, group, at);
}

/* ---- the stream ---- */

struct record {
    char type;
    const unsigned char *at, *end;
};

static inline uint64_t take_varint(struct record *record)
{
    uint64_t number = 0;

    for (unsigned shift = 0;; shift += 7) {
        CHECK(record->at < record->end && shift < 64, "a number of record %c is cut off", record->type);
        unsigned char byte = *record->at++;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return number;
    }
}

/* The next record at *at; false at the end of the stream. */
static inline bool take_record(const struct result *result, size_t *at, struct record *record)
{
    const unsigned char *stream = (const unsigned char *)result->stream;

    if (*at == result->bytes)
        return false;
    *record = (struct record){(char)stream[*at], stream + *at + 1, stream + result->bytes};
    uint64_t length = take_varint(record);
    CHECK(length <= (uint64_t)(record->end - record->at), "record %c is cut off", record->type);
    record->end = record->at + length;
    *at = (size_t)(record->end - stream);
    return true;
}

static inline bool is_kind(const struct record *record, const char *kind)
{
    char begin[64];
    int length = snprintf(begin, sizeof begin, "{\"kind\":\"%s\"", kind);

    return record->type == 'J' && record->end - record->at > length && memcmp(record->at, begin, (size_t)length) == 0;
}

static inline uint64_t key_of(const struct record *record, const char *key)
{
    char name[64];

    snprintf(name, sizeof name, "\"%s\":", key);
    const char *at = memmem(record->at, (size_t)(record->end - record->at), name, strlen(name));
    CHECK(at, "there is no %s in %.*s", key, (int)(record->end - record->at), (const char *)record->at);
    return strtoull(at + strlen(name), NULL, 10);
}

static inline bool record_has(const struct record *record, const char *text)
{
    return memmem(record->at, (size_t)(record->end - record->at), text, strlen(text));
}

struct range {
    uint64_t start, end;
};

static inline uint64_t pages_in(const struct range *range, uint64_t page)
{
    return (range->end - 1) / page - range->start / page + 1;
}

static inline void check_pages(struct record record, const struct range *range, uint64_t page)
{
    uint64_t pages = 0;

    take_varint(&record);
    while (record.at < record.end) {
        pages += take_varint(&record);
        CHECK(record.at++ < record.end, "a run of pages has no state");
    }
    CHECK_EQUAL(pages, (range->end - range->start) / page);
}

static inline void check_fill(struct record record, const struct range *range, uint64_t page)
{
    uint64_t pages = 0;

    take_varint(&record);
    while (record.at < record.end) {
        pages += take_varint(&record);
        uint64_t used = take_varint(&record);
        CHECK(used <= page, "a page has %lu used bytes", (unsigned long)used);
    }
    CHECK_EQUAL(pages, pages_in(range, page));
}

static inline void check_chunks(struct record record, const struct range *range)
{
    take_varint(&record);
    uint64_t bytes = take_varint(&record);

    while (record.at < record.end)
        bytes += (take_varint(&record) >> 2) * CULET_BLOCK_UNIT;
    CHECK(bytes <= range->end - range->start + 16, "a region of %lu bytes has chunks of %lu",
          (unsigned long)(range->end - range->start), (unsigned long)bytes);
}

/* Mappings and regions are in order and do not overlap, and the records about their pages cover them. */
static inline void check_stream(const struct result *result)
{
    struct range mapping = {0}, region = {0};
    struct record record;
    uint64_t page = number_of(result, "process", 0, "page_bytes");

    check_complete(result);
    for (size_t at = CULET_STREAM_MAGIC_BYTES; take_record(result, &at, &record);) {
        struct range *range = is_kind(&record, "mapping") ? &mapping : is_kind(&record, "region") ? &region : NULL;
        if (range) {
            struct range next = {key_of(&record, "start"), key_of(&record, "end")};
            CHECK(next.start >= range->end && next.start < next.end, "%lx..%lx behind %lx..%lx",
                  (unsigned long)next.start, (unsigned long)next.end, (unsigned long)range->start,
                  (unsigned long)range->end);
            *range = next;
        }
        if (record.type == 'P')
            check_pages(record, &mapping, page);
        if (record.type == 'F')
            check_fill(record, &region, page);
        if (record.type == 'C')
            check_chunks(record, &region);
    }
}
