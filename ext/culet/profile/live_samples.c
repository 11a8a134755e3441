#include "profile/live_samples.h"

#include <ruby.h>

#include "common/pages.h"
#include "common/values.h"
#include "profile/active_profile.h"
#include "profile/objects.h"

#define MOST 65536
#define BYTES (MOST * sizeof(struct culet_profile_sample))

struct addresses {
    VALUE *list; /* by number of a sample */
    size_t count;
};

static VALUE find_addresses(VALUE data)
{
    const struct addresses *addresses = (const struct addresses *)data;

    culet_objects_addresses(addresses->list, addresses->count);
    return Qnil;
}

static bool set_objects(struct culet_profile_samples *samples)
{
    struct addresses addresses = {NULL, 1};
    bool found;

    for (size_t i = 0; i < samples->count; i++)
        if (samples->list[i].number >= addresses.count)
            addresses.count = samples->list[i].number + 1;
    addresses.list = culet_pages_grow(NULL, 0, addresses.count * sizeof(VALUE));
    if (addresses.list == NULL)
        return false;
    found = culet_try(find_addresses, (VALUE)&addresses) != Qundef;
    for (size_t i = 0; i < samples->count; i++)
        if (samples->list[i].kind == CULET_PROFILE_OBJECT)
            samples->list[i].block = (const void *)addresses.list[samples->list[i].number];
    munmap(addresses.list, addresses.count * sizeof(VALUE));
    return found;
}

bool culet_live_samples_take(struct culet_profile_samples *samples)
{
    *samples = (struct culet_profile_samples){.list = culet_pages_grow(NULL, 0, BYTES), .count = MOST};
    if (samples->list != NULL && culet_active_profile->samples(samples) && set_objects(samples))
        return true;
    culet_live_samples_free(samples);
    return false;
}

void culet_live_samples_free(struct culet_profile_samples *samples)
{
    if (samples->list != NULL)
        munmap(samples->list, BYTES);
    *samples = (struct culet_profile_samples){.list = NULL};
}
