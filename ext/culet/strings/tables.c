#include "strings/tables.h"

#include <stdlib.h>

#include "strings/digest.h"

#define FIRST_CAPACITY 1024

static struct culet_string_counts *place_of(const struct culet_string_table *table, uint64_t key)
{
    unsigned __int128 product = (unsigned __int128)(key ^ table->mix) * table->mix;
    size_t at = (size_t)(((uint64_t)product ^ (uint64_t)(product >> 64)) % table->capacity);

    while (table->places[at].key != 0 && table->places[at].key != key)
        at = (at + 1) % table->capacity;
    return &table->places[at];
}

static int grow(struct culet_string_table *table)
{
    struct culet_string_table grown = *table;

    grown.capacity = table->capacity == 0 ? FIRST_CAPACITY : 2 * table->capacity;
    grown.places = calloc(grown.capacity, sizeof(*grown.places));
    if (grown.places == NULL)
        return 0;
    if (table->capacity == 0) {
        struct culet_strings_secret secret;
        if (culet_strings_secret_make(&secret) != 0)
            secret.words[0] = (uint64_t)(uintptr_t)grown.places | 1;
        grown.mix = secret.words[0];
    }
    for (size_t i = 0; i < table->capacity; i++)
        if (table->places[i].key != 0)
            *place_of(&grown, table->places[i].key) = table->places[i];
    free(table->places);
    *table = grown;
    return 1;
}

struct culet_string_counts *culet_string_table_at(struct culet_string_table *table, uint64_t key)
{
    struct culet_string_counts *place;

    if (table->count >= table->capacity / 4 * 3 && !grow(table))
        return NULL;
    place = place_of(table, key);
    table->count += place->key == 0;
    place->key = key;
    return place;
}

struct culet_string_counts *culet_string_table_find(const struct culet_string_table *table, uint64_t key)
{
    struct culet_string_counts *place = table->capacity > 0 ? place_of(table, key) : NULL;

    return place != NULL && place->key != 0 ? place : NULL;
}

int culet_string_table_gain(struct culet_string_table *sites, uint64_t site, uint64_t gain)
{
    struct culet_string_counts *place;

    if (site == 0)
        return 1;
    place = culet_string_table_at(sites, site);
    if (place == NULL)
        return 0;
    place->copies++;
    place->gain += gain;
    return 1;
}

void culet_string_table_free(struct culet_string_table *table)
{
    free(table->places);
    *table = (struct culet_string_table){NULL, 0, 0, 0};
}
