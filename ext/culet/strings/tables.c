#include "strings/tables.h"

#include <stdlib.h>

#include "strings/digest.h"

#define FIRST_CAPACITY 1024

static struct culet_string_site *place_of(struct culet_string_site *places, size_t capacity, uint64_t mix,
                                          uint64_t site)
{
    unsigned __int128 product = (unsigned __int128)(site ^ mix) * mix;
    size_t at = (size_t)(((uint64_t)product ^ (uint64_t)(product >> 64)) % capacity);

    while (places[at].site != 0 && places[at].site != site)
        at = (at + 1) % capacity;
    return &places[at];
}

static int grow(struct culet_string_sites *sites)
{
    size_t capacity = sites->capacity == 0 ? FIRST_CAPACITY : 2 * sites->capacity;
    struct culet_string_site *places = calloc(capacity, sizeof(*places));

    if (places == NULL)
        return 0;
    if (sites->capacity == 0) {
        struct culet_strings_secret secret;
        if (culet_strings_secret_make(&secret) != 0)
            secret.words[0] = (uint64_t)(uintptr_t)places | 1;
        sites->mix = secret.words[0];
    }
    for (size_t i = 0; i < sites->capacity; i++)
        if (sites->places[i].site != 0)
            *place_of(places, capacity, sites->mix, sites->places[i].site) = sites->places[i];
    free(sites->places);
    sites->places = places;
    sites->capacity = capacity;
    return 1;
}

struct culet_string_site *culet_string_sites_at(struct culet_string_sites *sites, uint64_t site)
{
    struct culet_string_site *place;

    if (sites->count >= sites->capacity / 4 * 3 && !grow(sites))
        return NULL;
    place = place_of(sites->places, sites->capacity, sites->mix, site);
    if (place->site == 0) {
        place->site = site;
        sites->count++;
    }
    return place;
}

int culet_string_sites_gain(struct culet_string_sites *sites, uint64_t site, uint64_t gain)
{
    struct culet_string_site *place;

    if (site == 0)
        return 1;
    place = culet_string_sites_at(sites, site);
    if (place == NULL)
        return 0;
    place->copies++;
    place->gain += gain;
    return 1;
}

void culet_string_sites_free(struct culet_string_sites *sites)
{
    free(sites->places);
    *sites = (struct culet_string_sites){NULL, 0, 0, 0};
}

int culet_string_roots_add(struct culet_string_roots *roots, uint64_t address)
{
    if (roots->count == roots->capacity) {
        size_t capacity = roots->capacity == 0 ? FIRST_CAPACITY : roots->capacity + roots->capacity / 2;
        void *list = realloc(roots->list, capacity * sizeof(*roots->list));
        if (list == NULL)
            return 0;
        roots->list = list;
        roots->capacity = capacity;
    }
    roots->list[roots->count++] = (struct culet_string_root){address, 1, UINT64_MAX};
    return 1;
}

static int lower_first(const void *one, const void *other)
{
    const struct culet_string_root *a = one, *b = other;

    return (a->address > b->address) - (a->address < b->address);
}

void culet_string_roots_merge(struct culet_string_roots *roots)
{
    size_t kept = 0;

    if (roots->count == 0)
        return;
    qsort(roots->list, roots->count, sizeof(*roots->list), lower_first);
    for (size_t i = 1; i < roots->count; i++) {
        if (roots->list[i].address == roots->list[kept].address)
            roots->list[kept].count++;
        else
            roots->list[++kept] = roots->list[i];
    }
    roots->count = kept + 1;
}

struct culet_string_root *culet_string_roots_find(const struct culet_string_roots *roots, uint64_t address)
{
    struct culet_string_root wanted = {address, 0, 0};

    if (roots->count == 0)
        return NULL;
    return bsearch(&wanted, roots->list, roots->count, sizeof(*roots->list), lower_first);
}

void culet_string_roots_free(struct culet_string_roots *roots)
{
    free(roots->list);
    *roots = (struct culet_string_roots){NULL, 0, 0};
}
