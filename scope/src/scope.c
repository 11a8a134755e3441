#include "scope.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void culet_scope_pause(struct culet_scope *scope)
{
    culet_target_pause(&scope->target);
    /* The thread by which it was read may have ended. */
    scope->memory.pid = scope->target.pid;
    culet_pages_forget(&scope->pages);
    culet_memory_forget(&scope->memory);
}

void culet_scope_resume(struct culet_scope *scope)
{
    culet_target_resume(&scope->target);
}

bool culet_scope_breathe(struct culet_scope *scope)
{
    if (!culet_target_due(&scope->target))
        return false;
    culet_scope_resume(scope);
    culet_scope_pause(scope);
    return true;
}

void culet_scope_states(struct culet_scope *scope, struct culet_place *place, uint64_t from, uint64_t to)
{
    uint8_t states[CULET_PAGES_WINDOW];
    unsigned shift = scope->pages.shift;

    if (to <= from)
        return;
    uint64_t page = from >> shift, end = ((to - 1) >> shift) + 1;
    while (page < end) {
        size_t count = end - page < CULET_PAGES_WINDOW ? (size_t)(end - page) : CULET_PAGES_WINDOW;
        culet_pages_copy(&scope->pages, page, count, states);
        culet_place_set_states(&scope->places, place, page, count, states);
        page += count;
    }
}

void culet_scope_problem(struct culet_scope *scope, const char *format, ...)
{
    char sentence[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    for (size_t at = 0; at < scope->problems.length; at += strlen((char *)scope->problems.bytes + at) + 1)
        if (strcmp((char *)scope->problems.bytes + at, sentence) == 0)
            return;
    culet_buffer_add(&scope->problems, sentence, strlen(sentence) + 1);
}
