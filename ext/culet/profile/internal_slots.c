#include "profile/internal_slots.h"

#include <stdio.h>

#include "common/imemo.h"
#include "common/pages.h"
#include "profile/active_profile.h"
#include "sampler/core/readable.h"

#define WORDS 3 /* flags, and what identifies the slot */

struct internal {
    VALUE slot, words[WORDS];
    uint32_t sample;
};

static struct {
    struct internal *list;
    size_t count, mapped_bytes;
} internals;

bool culet_internal_slots_has(VALUE slot)
{
    int type = RB_BUILTIN_TYPE(slot);

    return type == T_IMEMO || type == T_ICLASS;
}

bool culet_internal_slots_same_kind(VALUE one, VALUE other)
{
    return culet_imemo_kind(RBASIC(one)->flags) == culet_imemo_kind(RBASIC(other)->flags);
}

size_t culet_internal_slots_name(VALUE slot, char *name, size_t size)
{
    if (RB_BUILTIN_TYPE(slot) == T_ICLASS)
        return (size_t)snprintf(name, size, "T_ICLASS");

    const char *known = culet_imemo_name(culet_imemo_kind(RBASIC(slot)->flags));
    return (size_t)(known != NULL ? snprintf(name, size, "T_IMEMO (%s)", known) : snprintf(name, size, "T_IMEMO"));
}

bool culet_internal_slots_has_room(void)
{
    size_t wanted = (internals.count + 1) * sizeof(*internals.list);
    void *list = culet_pages_reserve(internals.list, &internals.mapped_bytes, wanted);

    if (list != NULL)
        internals.list = list;
    return list != NULL;
}

void culet_internal_slots_add(VALUE slot, uint32_t sample)
{
    struct internal *internal = &internals.list[internals.count++];

    internal->slot = slot;
    internal->sample = sample;
    memcpy(internal->words, (const void *)slot, sizeof(internal->words));
}

void culet_internal_slots_start(void)
{
    internals.count = 0;
}

static VALUE identity(VALUE flags)
{
    return (flags & RUBY_T_MASK) | (VALUE)culet_imemo_kind(flags) << 8;
}

/* The page of the slot may have been unmapped. */
static bool is_there(const struct internal *internal)
{
    struct culet_readable readable = {{0}};
    VALUE words[WORDS];

    return culet_readable_copy(&readable, words, internal->slot, sizeof(words)) && words[1] == internal->words[1] &&
           words[2] == internal->words[2] &&
           ((internal->words[0] & RUBY_T_MASK) == T_ICLASS ? (words[0] & RUBY_T_MASK) == T_ICLASS
                                                           : identity(words[0]) == identity(internal->words[0]));
}

void culet_internal_slots_check(void)
{
    size_t kept = 0;

    for (size_t i = 0; i < internals.count; i++) {
        if (is_there(&internals.list[i]))
            internals.list[kept++] = internals.list[i];
        else
            culet_active_profile->remove(internals.list[i].sample);
    }
    internals.count = kept;
}

void culet_internal_slots_addresses(VALUE *addresses, size_t count)
{
    for (size_t i = 0; i < internals.count; i++)
        if (internals.list[i].sample < count && is_there(&internals.list[i]))
            addresses[internals.list[i].sample] = internals.list[i].slot;
}
