#include "profile/names.h"

#include <string.h>

#include "sampler/core/index.h"
#include "sampler/core/memory.h"

#define BYTES ((size_t)16 << 20)
#define ENTRIES ((size_t)1 << 17)

/* At an offset of `bytes`, in steps of 4: the length, then the string. A name is its offset / 4. */
static char *bytes;
static size_t used;
static struct culet_index index_of_names;

bool culet_names_prepare(void)
{
    if (bytes == NULL)
        bytes = culet_profile_map(BYTES);
    used = sizeof(uint32_t); /* 0: an empty slot */
    return bytes != NULL && (index_of_names.slot != NULL || culet_index_create(&index_of_names)) &&
           culet_names_add("?", 1) == 1;
}

const char *culet_names_get(uint32_t name, size_t *length)
{
    const char *at = bytes + (size_t)name * sizeof(uint32_t);
    uint32_t stored;

    memcpy(&stored, at, sizeof(stored));
    *length = stored;
    return at + sizeof(stored);
}

static size_t at_most(size_t length)
{
    return length < CULET_NAME_BYTES ? length : CULET_NAME_BYTES;
}

bool culet_names_equal(uint32_t name, const char *other, size_t length)
{
    size_t stored;
    const char *found = culet_names_get(name, &stored);

    return stored == at_most(length) && memcmp(found, other, stored) == 0;
}

/* FNV-1a */
static uint64_t hash(const char *string, size_t length)
{
    uint64_t sum = 0xcbf29ce484222325;

    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)string[i]) * 0x100000001b3;
    return culet_index_mix(sum);
}

static uint64_t hash_of(const void *unused, uint32_t name)
{
    size_t length;
    const char *string = culet_names_get(name, &length);

    return hash(string, length);
}

uint32_t culet_names_add(const char *string, size_t length)
{
    bool has_slot = culet_index_reserve(&index_of_names, hash_of, NULL);
    uint32_t at, stored, name = 1;
    size_t room;

    length = at_most(length);
    room = (length + 2 * sizeof(stored) - 1) / sizeof(stored) * sizeof(stored);
    at = culet_index_first(&index_of_names, hash(string, length));
    for (; index_of_names.slot[at] != 0; at = culet_index_next(&index_of_names, at))
        if (culet_names_equal(index_of_names.slot[at], string, length))
            return index_of_names.slot[at];
    if (!has_slot || index_of_names.used == ENTRIES || BYTES - used < room)
        return name;
    name = (uint32_t)(used / sizeof(stored));
    stored = (uint32_t)length;
    memcpy(bytes + used, &stored, sizeof(stored));
    memcpy(bytes + used + sizeof(stored), string, length);
    used += room;
    culet_index_add(&index_of_names, at, name);
    return name;
}
