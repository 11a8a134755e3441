/* profile/names.h - the strings of the frames' names, each stored once. The caller holds the lock of the frames. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maps the tables. Once. False: no memory. */
bool culet_names_prepare(void);

/* The number of a string; of "?" if the tables are full. Longer strings than CULET_NAME_BYTES are cut. */
#define CULET_NAME_BYTES 1024
uint32_t culet_names_add(const char *bytes, size_t length);

/* The bytes of a number. */
const char *culet_names_get(uint32_t name, size_t *length);

/* Whether a number stands for a string. */
bool culet_names_equal(uint32_t name, const char *bytes, size_t length);
