/* text.h - comparing text. */
#pragma once

#include <stdbool.h>
#include <string.h>

static inline bool culet_starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}
