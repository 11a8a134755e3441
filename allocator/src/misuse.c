#define _GNU_SOURCE
#include "misuse.h"

#include "../../sampler/core/host.h"
#include "abandoned.h"
#include "empty_block.h"
#include "harden.h"
#include "large.h"
#include "maps.h"
#include "os.h"
#include "pagemap.h"
#include "size_class.h"
#include "slab.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The diagnostic, put together without stdio, which may allocate. */
struct line {
    char text[512];
    size_t length;
};

static void add(struct line *line, const char *text)
{
    while (*text && line->length < sizeof line->text - 2)
        line->text[line->length++] = *text++;
}

static void add_number(struct line *line, uintptr_t n, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits;

    digits[--at] = 0;
    do
        digits[--at] = "0123456789abcdef"[n % base];
    while (n /= base);
    add(line, digits + at);
}

/* As printf with %s, %zu and %p. */
__attribute__((format(printf, 2, 3))) static void print(struct line *line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    for (; *format; format++) {
        if (*format != '%') {
            add(line, (char[]){*format, 0});
        } else if (*++format == 's') {
            add(line, va_arg(arguments, const char *));
        } else if (*format == 'p') {
            add(line, "0x");
            add_number(line, (uintptr_t)va_arg(arguments, void *), 16);
        } else {
            add_number(line, va_arg(arguments, size_t), 10);
            format++;
        }
    }
    va_end(arguments);
}

static void write_line(struct line *line)
{
    memcpy(line->text + line->length, "\n", 2);
    culet_host_complain(line->text);
}

_Noreturn static void die(struct line *line)
{
    write_line(line);
    abort();
}

/* The end of a hardened process; else the only such line of the process. A free leaves errno as it was. */
static void die_if_hardened(struct line *line)
{
    static _Atomic bool written;
    int saved = errno;

    if (culet_harden_level)
        die(line);
    add(line, "; freed nevertheless, and not reported again");
    if (!atomic_exchange_explicit(&written, true, memory_order_relaxed))
        write_line(line);
    errno = saved;
}

/* "the 48-byte block 0x7f... (size class 48)" or "the 8192-byte block 0x7f... (large)" */
static void add_block(struct line *line, uintptr_t start, size_t bytes, unsigned klass)
{
    print(line, "the %zu-byte block %p", bytes, (void *)start);
    if (klass)
        print(line, " (size class %zu)", (size_t)culet_classes[klass].size);
    else
        add(line, " (large)");
}

static void begin(struct line *line, const char *what, uintptr_t p)
{
    print(line, "culet: %s of %p: ", what, (void *)p);
}

/* The pointer lies in a block, live or freed, that starts at `start`. */
static void describe_block(struct line *line, const char *function, uintptr_t p, uintptr_t start, size_t bytes,
                           unsigned klass, bool live)
{
    if (p == start) {
        begin(line, strcmp(function, "free") == 0 ? "double free" : function, p);
        add_block(line, start, bytes, klass);
        add(line, " is already free");
        return;
    }
    begin(line, function, p);
    print(line, "%sit points %zu byte%s into ", p % CULET_ALIGNMENT ? "misaligned, " : "", (size_t)(p - start),
          p - start == 1 ? "" : "s");
    add_block(line, start, bytes, klass);
    if (p - start >= bytes)
        add(line, ", past its end");
    else
        add(line, live ? ", not at its start" : ", which is free");
}

/* `where`: such as "past the last". */
static void describe_outside(struct line *line, const char *function, uintptr_t p, const char *where,
                             const struct culet_class *c)
{
    begin(line, function, p);
    print(line, "it points %s block of a slab (size class %zu)", where, (size_t)c->size);
}

static void describe_slab(struct line *line, const char *function, uintptr_t p, struct culet_slab *slab)
{
    const struct culet_class *c = culet_slab_class(slab);
    uint32_t index = (uint32_t)(p - slab->span.start) / c->size;
    uintptr_t start = slab->span.start + index * c->size;
    size_t front = culet_harden_front();

    if (index >= c->count) {
        describe_outside(line, function, p, p < slab->span.start ? "before the first" : "past the last", c);
        return;
    }
    /* The program's bytes begin behind the canaries. */
    if (p < start + front) {
        begin(line, function, p);
        print(line, "it points %zu bytes before ", (size_t)(start + front - p));
        add_block(line, start + front, c->size - front, slab->span.klass);
        return;
    }
    describe_block(line, function, p, start + front, c->size - front, slab->span.klass,
                   culet_slab_is_live(slab, index));
}

static void describe_freed(struct line *line, const char *function, uintptr_t p, struct culet_freed freed)
{
    size_t bytes = freed.pages * CULET_PAGE;
    uintptr_t start = freed.start;

    if (freed.klass) {
        const struct culet_class *c = &culet_classes[freed.klass];
        /* A sampled block had pages of its own. */
        if (freed.pages == c->pages)
            start += culet_class_colour(c, start);
        if (p < start) {
            describe_outside(line, function, p, "before the first", c);
            return;
        }
        bytes = c->size;
        start += (p - start) / bytes * bytes;
        if (p >= start + culet_harden_front()) {
            start += culet_harden_front();
            bytes -= culet_harden_front();
        }
    }
    describe_block(line, function, p, start, bytes, freed.klass, false);
}

/* Names the mapping that a foreign pointer lies in. */
static void describe_mapping(struct line *line, uintptr_t p)
{
    struct culet_mapping mapping;
    uintptr_t here = (uintptr_t)&mapping;

    if (!culet_maps_find(p, &mapping)) {
        add(line, "; nothing is mapped there");
    } else if (here >= mapping.start && here < mapping.end) {
        add(line, "; it lies on this thread's stack");
    } else if (mapping.name[0]) {
        print(line, "; it lies in %s", mapping.name);
    } else {
        add(line, "; it lies in an anonymous mapping");
    }
}

_Noreturn void culet_misuse(const char *function, uintptr_t p)
{
    struct line line = {.length = 0};
    struct culet_span *span = culet_pagemap_span(p);
    struct culet_freed freed = culet_large_freed(p);
    struct culet_large *huge;

    if (culet_empty_block_contains((void *)p)) {
        begin(&line, function, p);
        add(&line, "among blocks of no bytes, and not one that is in use");
    } else if (span && span->kind == CULET_SLAB) {
        describe_slab(&line, function, p, (struct culet_slab *)span);
    } else if (span) {
        describe_block(&line, function, p, span->start, culet_large_bytes(span), culet_large_class(span), true);
    } else if (!culet_abandoned() && (huge = culet_large_containing(p))) {
        describe_block(&line, function, p, huge->span.start, culet_large_bytes(&huge->span),
                       culet_large_class(&huge->span), true);
    } else if (freed.present) {
        describe_freed(&line, function, p, freed);
    } else {
        begin(&line, function, p);
        add(&line, "not a culet block");
        describe_mapping(&line, p);
    }
    die(&line);
}

void culet_misuse_size(const char *function, uintptr_t p, size_t given, size_t usable)
{
    struct line line = {.length = 0};

    begin(&line, function, p);
    print(&line, "called with a size of %zu for a block of %zu", given, usable);
    die_if_hardened(&line);
}

void culet_misuse_alignment(const char *function, uintptr_t p, size_t alignment)
{
    struct line line = {.length = 0};

    begin(&line, function, p);
    print(&line, "called with an alignment of %zu, which %s", alignment,
          alignment && !(alignment & (alignment - 1)) ? "the block does not have" : "is not a power of two");
    die_if_hardened(&line);
}

_Noreturn void culet_misuse_problem(const char *function, enum culet_problem problem, uintptr_t block, size_t size)
{
    struct line line = {.length = 0};
    size_t bytes = size - culet_harden_front();

    if (problem == CULET_NOT_THE_START)
        culet_misuse(function, block);
    if (problem == CULET_QUARANTINED) {
        describe_block(&line, function, block, block, bytes, culet_size_class(size), false);
        die(&line);
    }
    begin(&line, problem == CULET_DANGLING ? "write after free" : function, block);
    if (problem == CULET_DANGLING) {
        add_block(&line, block, bytes, culet_size_class(size));
        add(&line, " was written to while it was free");
    } else {
        print(&line, "%s the block (size class %zu) have been overwritten",
              problem == CULET_OVERFLOW ? "overflow: the bytes behind" : "underflow: the bytes before", size);
    }
    die(&line);
}
