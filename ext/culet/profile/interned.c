#include "profile/interned.h"

#include <stdbool.h>
#include <string.h>

#include "sampler/core/index.h"
#include "sampler/core/memory.h"

struct culet_interned_memory {
    struct culet_index index;
    uint32_t starts[CULET_INTERNED_TEXTS + 2]; /* text N is [starts[N], starts[N + 1]) */
    char bytes[CULET_INTERNED_BYTES];
};

void culet_interned_lock(struct culet_interned *table)
{
    pthread_mutex_lock(&table->lock);
}

void culet_interned_unlock(struct culet_interned *table)
{
    pthread_mutex_unlock(&table->lock);
}

static uint64_t hash_text(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return culet_index_mix(hash);
}

static size_t length_of(const struct culet_interned_memory *memory, uint32_t number)
{
    return memory->starts[number + 1] - memory->starts[number];
}

static bool is_text(const struct culet_interned_memory *memory, uint32_t number, const char *text, size_t length)
{
    return length_of(memory, number) == length && memcmp(memory->bytes + memory->starts[number], text, length) == 0;
}

static uint64_t hash_of(const void *memory, uint32_t number)
{
    const struct culet_interned_memory *texts = memory;

    return hash_text(texts->bytes + texts->starts[number], length_of(texts, number));
}

static bool map(struct culet_interned *table)
{
    struct culet_interned_memory *memory;

    if (table->memory != NULL)
        return true;
    memory = culet_profile_map(sizeof(*memory));
    if (memory == NULL)
        return false;
    if (!culet_index_create(&memory->index)) {
        culet_profile_unmap(memory, sizeof(*memory));
        return false;
    }
    table->memory = memory;
    return true;
}

static uint32_t add(struct culet_interned *table, const char *text, size_t length, uint32_t limit)
{
    struct culet_interned_memory *memory = table->memory;

    if (table->count >= limit || table->count >= CULET_INTERNED_TEXTS || length > CULET_INTERNED_BYTES - table->length)
        return 0;
    memcpy(memory->bytes + table->length, text, length);
    table->length += length;
    table->count++;
    memory->starts[table->count + 1] = (uint32_t)table->length;
    return table->count;
}

static uint32_t number_of(struct culet_interned *table, const char *text, size_t length, uint32_t limit)
{
    struct culet_index *index;
    uint32_t at, number;
    bool room;

    if (!map(table))
        return 0;
    index = &table->memory->index;
    room = culet_index_reserve(index, hash_of, table->memory);
    at = culet_index_first(index, hash_text(text, length));
    for (; (number = index->slot[at]) != 0; at = culet_index_next(index, at))
        if (is_text(table->memory, number, text, length))
            return number;
    number = room ? add(table, text, length, limit) : 0;
    if (number != 0)
        culet_index_add(index, at, number);
    return number;
}

uint32_t culet_interned_number(struct culet_interned *table, const char *text, size_t length, uint32_t limit)
{
    uint32_t number;

    culet_interned_lock(table);
    number = number_of(table, text, length, limit);
    culet_interned_unlock(table);
    return number;
}

size_t culet_interned_text(struct culet_interned *table, uint32_t number, char *text, size_t size)
{
    size_t length = 0;

    culet_interned_lock(table);
    if (number >= 1 && number <= CULET_INTERNED_TEXTS && number <= table->count &&
        length_of(table->memory, number) <= size) {
        length = length_of(table->memory, number);
        memcpy(text, table->memory->bytes + table->memory->starts[number], length);
    }
    culet_interned_unlock(table);
    return length;
}

static bool is_used(uint32_t number, const unsigned char *used, size_t used_bytes)
{
    return used == NULL || (number / 8 < used_bytes && (used[number / 8] >> number % 8 & 1) != 0);
}

uint64_t culet_interned_write(struct culet_interned *table, struct culet_buffer *buffer, char type,
                              const unsigned char *used, size_t used_bytes)
{
    uint64_t lines = 0;

    culet_interned_lock(table);
    for (uint32_t number = 1; number <= table->count; number++) {
        if (!is_used(number, used, used_bytes))
            continue;
        culet_buffer_format(buffer, "%c %u ", type, number);
        culet_buffer_add(buffer, table->memory->bytes + table->memory->starts[number],
                         length_of(table->memory, number));
        culet_buffer_text(buffer, "\n");
        lines++;
    }
    culet_interned_unlock(table);
    return lines;
}

/* ---- escapes ---- */

/* The bytes of the character that starts there; 0: not UTF-8. Surrogates and overlong forms are not UTF-8. */
static size_t character_bytes(const unsigned char *text, size_t length)
{
    size_t bytes = text[0] < 0x80   ? 1
                   : text[0] < 0xc2 ? 0
                   : text[0] < 0xe0 ? 2
                   : text[0] < 0xf0 ? 3
                   : text[0] < 0xf5 ? 4
                                    : 0;
    unsigned char lowest = text[0] == 0xe0 ? 0xa0 : text[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char highest = text[0] == 0xed ? 0x9f : text[0] == 0xf4 ? 0x8f : 0xbf;

    if (bytes > length || (bytes > 1 && (text[1] < lowest || text[1] > highest)))
        return 0;
    for (size_t i = 2; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return bytes;
}

static bool is_plain(unsigned char byte, char separator)
{
    return byte >= 0x20 && byte != 0x7f && byte != '\\' && (separator == 0 || byte != (unsigned char)separator);
}

size_t culet_interned_escape(char *to, size_t size, const char *from, size_t length, char separator)
{
    static const char digits[] = "0123456789abcdef";
    size_t written = 0, bytes;

    for (size_t at = 0; at < length; at += bytes) {
        unsigned char byte = (unsigned char)from[at];
        bytes = character_bytes((const unsigned char *)from + at, length - at);
        if (bytes > 1 || (bytes == 1 && is_plain(byte, separator))) {
            if (bytes > size - written)
                break;
            memcpy(to + written, from + at, bytes);
            written += bytes;
        } else {
            bytes = 1;
            if (size - written < 4)
                break;
            memcpy(to + written, (char[]){'\\', 'x', digits[byte >> 4], digits[byte & 15]}, 4);
            written += 4;
        }
    }
    return written;
}
