#include "profile/texts.h"

#include <string.h>

#include "sampler/core/memory.h"

static size_t start_bytes(const struct culet_texts *texts)
{
    return (texts->most + 2) * sizeof(*texts->starts);
}

bool culet_texts_prepare(struct culet_texts *texts)
{
    if (texts->starts != NULL)
        return true;
    texts->starts = culet_profile_map(start_bytes(texts) + texts->most_bytes);
    if (texts->starts != NULL && culet_index_create(&texts->index)) {
        texts->bytes = (char *)texts->starts + start_bytes(texts);
        return true;
    }
    culet_texts_free(texts);
    return false;
}

void culet_texts_free(struct culet_texts *texts)
{
    culet_profile_unmap(texts->starts, start_bytes(texts) + texts->most_bytes);
    culet_index_destroy(&texts->index);
    *texts = (struct culet_texts){.most = texts->most, .most_bytes = texts->most_bytes};
}

/* FNV-1a */
static uint64_t hash(const char *text, size_t length)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return culet_index_mix(sum);
}

static uint64_t hash_of(const void *texts, uint32_t number)
{
    size_t length;
    const char *text = culet_texts_get(texts, number, &length);

    return hash(text, length);
}

uint32_t culet_texts_add(struct culet_texts *texts, const char *text, size_t length, uint32_t limit)
{
    bool room = culet_index_reserve(&texts->index, hash_of, texts);
    uint32_t at = culet_index_first(&texts->index, hash(text, length)), number;

    for (; (number = texts->index.slot[at]) != 0; at = culet_index_next(&texts->index, at)) {
        size_t known;
        const char *found = culet_texts_get(texts, number, &known);
        if (known == length && memcmp(found, text, length) == 0)
            return number;
    }
    number = texts->count + 1;
    if (!room || number > limit || number > texts->most || length > texts->most_bytes - texts->starts[number])
        return 0;
    memcpy(texts->bytes + texts->starts[number], text, length);
    texts->starts[number + 1] = texts->starts[number] + (uint32_t)length;
    culet_index_add(&texts->index, at, number);
    return texts->count = number;
}
