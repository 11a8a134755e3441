#include "profile/dump.h"

#include <ruby/thread.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/frames.h"
#include "profile/interned.h"
#include "profile/labels.h"
#include "profile/objects.h"

struct dump {
    const struct culet_profile_api *api;
    struct culet_buffer *buffer;
    uint64_t lines;
    bool written;
};

static bool add(void *buffer, const char *text, size_t length)
{
    culet_buffer_add(buffer, text, length);
    return !((struct culet_buffer *)buffer)->failed;
}

static void *write_profile(void *data)
{
    struct dump *dump = data;

    dump->written = dump->api->write(add, dump->buffer, &dump->lines);
    return NULL;
}

/* The id of the Ruby frame of a line "K id parent word"; 0: none. */
static uint32_t frame_of(const char *line, const char *end)
{
    const char *word = memrchr(line, ' ', (size_t)(end - line));
    uint64_t value = word != NULL && line[0] == 'K' && line[1] == ' ' ? strtoull(word + 1, NULL, 16) : 0;

    return value >> CULET_WORD_SHIFT == CULET_WORD_RUBY ? (uint32_t)(value >> 24) : 0;
}

/* Sets a byte for each frame that a stack of the stream has. */
static void mark_used(const char *from, const char *past, char *used, uint32_t count)
{
    const char *end;

    for (; (end = memchr(from, '\n', (size_t)(past - from))) != NULL; from = end + 1) {
        uint32_t id = frame_of(from, end);
        if (id != 0 && id <= count)
            used[id] = 1;
    }
}

static void write_frames(struct culet_buffer *buffer, uint64_t *lines)
{
    struct culet_buffer used = {NULL, 0, 0, 0};
    uint32_t count = culet_profile_frames_count();
    char *bytes = culet_buffer_reserve(&used, (size_t)count + 1);

    if (bytes == NULL) {
        buffer->failed = 1;
        return;
    }
    mark_used(buffer->bytes, buffer->bytes + buffer->length, bytes, count);
    for (uint32_t id = 1; id <= count; id++) {
        if (!bytes[id])
            continue;
        culet_profile_frames_write(buffer, id);
        (*lines)++;
    }
    culet_buffer_free(&used);
}

#define INTERNED_BYTES (CULET_INTERNED_TEXTS / 8 + 1)

/* A bit for each label set and each type. */
struct used_texts {
    unsigned char labels[INTERNED_BYTES], types[INTERNED_BYTES];
};

static void set_bit(unsigned char *bits, unsigned long number)
{
    if (number / 8 < INTERNED_BYTES)
        bits[number / 8] |= (unsigned char)(1 << number % 8);
}

/* The number after `spaces` spaces of a line. */
static unsigned long field(const char *line, const char *end, int spaces)
{
    while (spaces-- > 0 && (line = memchr(line, ' ', (size_t)(end - line))) != NULL)
        line++;
    return line != NULL ? strtoul(line, NULL, 10) : 0;
}

/* Of lines "S kind stack label type ...". */
static void mark_texts(const char *from, const char *past, struct used_texts *used)
{
    const char *end;

    for (; (end = memchr(from, '\n', (size_t)(past - from))) != NULL; from = end + 1) {
        if (from[0] != 'S')
            continue;
        set_bit(used->labels, field(from, end, 3));
        set_bit(used->types, field(from, end, 4));
    }
}

void culet_profile_dump_names(struct culet_buffer *buffer, uint64_t *lines)
{
    struct used_texts used = {{0}, {0}};

    mark_texts(buffer->bytes, buffer->bytes + buffer->length, &used);
    *lines += culet_labels_write(buffer, used.labels, INTERNED_BYTES);
    *lines += culet_objects_write_totals(buffer);
    *lines += culet_objects_write_types(buffer, used.types, INTERNED_BYTES);
    write_frames(buffer, lines);
}

void culet_profile_dump(const struct culet_profile_api *api, struct culet_buffer *buffer)
{
    struct dump dump = {api, buffer, 1, false};

    culet_buffer_text(buffer, "culet-profile 1\n");
    (void)rb_thread_call_without_gvl(write_profile, &dump, NULL, NULL);
    if (!dump.written)
        buffer->failed = 1;
    if (buffer->failed)
        return;
    culet_profile_frames_name();
    culet_profile_dump_names(buffer, &dump.lines);
    culet_buffer_format(buffer, "E %" PRIu64 "\n", dump.lines);
}
