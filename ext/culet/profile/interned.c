#include "profile/interned.h"

#include <pthread.h>
#include <string.h>

/* The thread of the black box reads the tables while others fork. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

int culet_interned_prepare(void)
{
    return pthread_atfork(lock, unlock, unlock);
}

uint32_t culet_interned_number(struct culet_texts *table, const char *text, size_t length, uint32_t limit)
{
    uint32_t number;

    lock();
    number = culet_texts_prepare(table) ? culet_texts_add(table, text, length, limit) : 0;
    unlock();
    return number;
}

size_t culet_interned_text(struct culet_texts *table, uint32_t number, char *text, size_t size)
{
    size_t length = 0;

    lock();
    if (number >= 1 && number <= table->count) {
        const char *found = culet_texts_get(table, number, &length);
        length = length <= size ? length : 0;
        memcpy(text, found, length);
    }
    unlock();
    return length;
}

uint64_t culet_interned_write(struct culet_texts *table, struct culet_buffer *buffer, char type,
                              const culet_interned_bits used)
{
    uint64_t lines = 0;
    const char *text;
    size_t length;

    lock();
    for (uint32_t number = 1; number <= table->count; number++) {
        if ((used[number / 8] >> number % 8 & 1) == 0)
            continue;
        culet_buffer_format(buffer, "%c %u ", type, number);
        text = culet_texts_get(table, number, &length);
        culet_buffer_add(buffer, text, length);
        culet_buffer_text(buffer, "\n");
        lines++;
    }
    unlock();
    return lines;
}
