#include "glibc/glibc_heap.h"

#include <stdarg.h>
#include <stdio.h>

void culet_glibc_break(struct culet_glibc_arena *arena, const char *why, ...)
{
    va_list arguments;

    if (arena->broken)
        return;
    arena->broken = true;
    va_start(arguments, why);
    vsnprintf(arena->why, sizeof arena->why, why, arguments);
    va_end(arguments);
}
