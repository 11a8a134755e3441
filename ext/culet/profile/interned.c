#include "profile/interned.h"

#include <string.h>

void culet_interned_lock(struct culet_interned *table)
{
    pthread_mutex_lock(&table->lock);
}

void culet_interned_unlock(struct culet_interned *table)
{
    pthread_mutex_unlock(&table->lock);
}

uint32_t culet_interned_number(struct culet_interned *table, const char *text, size_t length, uint32_t limit)
{
    uint32_t number;

    culet_interned_lock(table);
    number = culet_texts_prepare(&table->texts) ? culet_texts_add(&table->texts, text, length, limit) : 0;
    culet_interned_unlock(table);
    return number;
}

size_t culet_interned_text(struct culet_interned *table, uint32_t number, char *text, size_t size)
{
    size_t length = 0;

    culet_interned_lock(table);
    if (number >= 1 && number <= table->texts.count) {
        const char *found = culet_texts_get(&table->texts, number, &length);
        length = length <= size ? length : 0;
        memcpy(text, found, length);
    }
    culet_interned_unlock(table);
    return length;
}

uint64_t culet_interned_write(struct culet_interned *table, struct culet_buffer *buffer, char type,
                              const culet_interned_bits used)
{
    uint64_t lines = 0;
    const char *text;
    size_t length;

    culet_interned_lock(table);
    for (uint32_t number = 1; number <= table->texts.count; number++) {
        if ((used[number / 8] >> number % 8 & 1) == 0)
            continue;
        culet_buffer_format(buffer, "%c %u ", type, number);
        text = culet_texts_get(&table->texts, number, &length);
        culet_buffer_add(buffer, text, length);
        culet_buffer_text(buffer, "\n");
        lines++;
    }
    culet_interned_unlock(table);
    return lines;
}
