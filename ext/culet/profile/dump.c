#include "profile/dump.h"

#include <ruby/thread.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/active_profile.h"
#include "profile/frames.h"
#include "profile/interned.h"
#include "profile/labels.h"
#include "profile/objects.h"

struct dump {
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

    dump->written = culet_active_profile->write(add, dump->buffer, &dump->lines);
    return NULL;
}

/* The id of the Ruby frame of a line "K id parent word"; 0: none. */
static uint32_t frame_of(const char *line, const char *end)
{
    const char *word = memrchr(line, ' ', (size_t)(end - line));
    uint64_t value = word != NULL && line[0] == 'K' && line[1] == ' ' ? strtoull(word + 1, NULL, 16) : 0;

    return value >> CULET_WORD_SHIFT == CULET_WORD_RUBY ? (uint32_t)(value >> 24) : 0;
}

/* The references of a stream: a byte for each frame, a bit for each label set and each type. */
struct used {
    char *frames;
    uint32_t count; /* of frames */
    culet_interned_bits labels, types;
};

static void set_bit(culet_interned_bits bits, unsigned long number)
{
    if (number / 8 < sizeof(culet_interned_bits))
        bits[number / 8] |= (unsigned char)(1 << number % 8);
}

/* The number after `spaces` spaces of a line. */
static unsigned long field(const char *line, const char *end, int spaces)
{
    while (spaces-- > 0 && (line = memchr(line, ' ', (size_t)(end - line))) != NULL)
        line++;
    return line != NULL ? strtoul(line, NULL, 10) : 0;
}

/* Of lines "K id parent word" and "S kind stack label type ...". */
static void mark_used(struct used *used, const char *line, const char *end)
{
    uint32_t frame = frame_of(line, end);

    if (frame != 0 && frame <= used->count)
        used->frames[frame] = 1;
    if (line[0] != 'S')
        return;
    set_bit(used->labels, field(line, end, 3));
    set_bit(used->types, field(line, end, 4));
}

static uint64_t write_frames(struct culet_buffer *buffer, const struct used *used)
{
    uint64_t lines = 0;

    for (uint32_t id = 1; id <= used->count; id++) {
        if (!used->frames[id])
            continue;
        culet_profile_frames_write(buffer, id);
        lines++;
    }
    return lines;
}

void culet_profile_dump_names(struct culet_buffer *buffer, uint64_t *lines)
{
    struct culet_buffer frames = {NULL, 0, 0, 0};
    struct used used = {.count = culet_profile_frames_count()};
    const char *past = buffer->bytes + buffer->length, *end;

    used.frames = culet_buffer_reserve(&frames, (size_t)used.count + 1);
    if (used.frames == NULL) {
        buffer->failed = 1;
        return;
    }
    for (const char *line = buffer->bytes; (end = memchr(line, '\n', (size_t)(past - line))) != NULL; line = end + 1)
        mark_used(&used, line, end);
    *lines += culet_labels_write(buffer, used.labels);
    *lines += culet_objects_write_totals(buffer);
    *lines += culet_objects_write_types(buffer, used.types);
    *lines += write_frames(buffer, &used);
    culet_buffer_free(&frames);
}

void culet_profile_dump(struct culet_buffer *buffer)
{
    struct dump dump = {buffer, 1, false};

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
