/* text.h - comparing text. */
#ifndef CULET_TEXT_H
#define CULET_TEXT_H

#include <stdbool.h>
#include <string.h>

static inline bool culet_starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

#endif
