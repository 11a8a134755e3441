#include "profile/names.h"

#include <string.h>
#include <sys/mman.h>

#define BYTES ((size_t)16 << 20)
#define ENTRIES ((size_t)1 << 17)
#define SLOTS (2 * ENTRIES)

/* At an offset of `bytes`, in steps of 4: the length, then the string. A name is its offset / 4. */
static char *bytes;
static size_t used;
static uint32_t *slots;
static size_t entries;

static void *map(size_t length)
{
    void *address = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return address == MAP_FAILED ? NULL : address;
}

bool culet_names_prepare(void)
{
    if (bytes == NULL)
        bytes = map(BYTES);
    if (slots == NULL)
        slots = map(SLOTS * sizeof(*slots));
    used = sizeof(uint32_t); /* 0: a free slot */
    return bytes != NULL && slots != NULL && culet_names_add("?", 1) == 1;
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
    return sum ^ sum >> 32;
}

uint32_t culet_names_add(const char *string, size_t length)
{
    size_t slot, room;
    uint32_t stored, name = 1;

    length = at_most(length);
    room = (length + 2 * sizeof(stored) - 1) / sizeof(stored) * sizeof(stored);
    for (slot = hash(string, length) % SLOTS; slots[slot] != 0; slot = (slot + 1) % SLOTS)
        if (culet_names_equal(slots[slot], string, length))
            return slots[slot];
    if (entries == ENTRIES || BYTES - used < room)
        return name;
    name = (uint32_t)(used / sizeof(stored));
    stored = (uint32_t)length;
    memcpy(bytes + used, &stored, sizeof(stored));
    memcpy(bytes + used + sizeof(stored), string, length);
    used += room;
    entries++;
    slots[slot] = name;
    return name;
}
