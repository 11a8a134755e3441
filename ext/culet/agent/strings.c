/* A slice first lists Ruby's heap pages and sorts them: Ruby's own order changes when a page is freed between two
 * slices. Then it writes the strings from the requested slot on. Contents are copied, because the program may free a
 * buffer as soon as it runs again. */
#include "agent/strings.h"

#include <ruby/encoding.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/heap_walk.h"
#include "reading/clock.h"
#include "strings/digest.h"
#include "strings/record.h"

#define LARGEST_SLICE ((size_t)4 << 20)
#define HEAD_BYTES ((size_t)256)          /* reserved for the JSON line, padded with blanks */
#define LARGEST_CONTENT ((size_t)1 << 20) /* of one string; longer ones are reported as digests */
#define CHAINED_FROM 16                   /* shorter strings fit into any slot, so sharing them gains nothing */
#define FIRST_PAGES 4096
#define CLOCK_EVERY 64  /* strings between two looks at the clock */
#define SITE_SLOTS 4096 /* allocation sites named in this slice, with open addressing */

/* 0 where Ruby's headers do not define it: no string counts as interned. */
#ifdef HAVE_CONST_RSTRING_FSTR
#define INTERNED ((VALUE)RSTRING_FSTR)
#else
#define INTERNED ((VALUE)0)
#endif

struct run {
    char *start, *past;
    size_t slot_bytes;
};

struct slice {
    struct culet_buffer *buffer;
    const struct culet_strings_options *options;
    culet_heap_memsize_function *memsize;
    culet_heap_memsize_function *base_bytes; /* NULL: the slot's size */
    struct run *runs;
    size_t count, capacity;
    double start;         /* of CLOCK_MONOTONIC */
    double limit_seconds; /* since `start` */
    VALUE sites;          /* ObjectSpace if it reports allocation sites, else Qnil */
    ID file, line;
    uint64_t named[SITE_SLOTS];
    size_t strings;
    uint64_t next; /* 0: no further slice */
    int failed;
};

static struct culet_strings_secret secret;
static int secret_made;

/* ---- pages ---- */

static int reserve(struct slice *slice)
{
    size_t capacity = slice->capacity == 0 ? FIRST_PAGES : 2 * slice->capacity;
    void *runs;

    if (slice->runs == NULL)
        runs = mmap(NULL, capacity * sizeof(struct run), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else
        runs = mremap(slice->runs, slice->capacity * sizeof(struct run), capacity * sizeof(struct run), MREMAP_MAYMOVE);
    if (runs == MAP_FAILED)
        return 0;
    slice->runs = runs;
    slice->capacity = capacity;
    return 1;
}

static int is_string(const char *slot)
{
    return (RBASIC((VALUE)slot)->flags & RUBY_T_MASK) == T_STRING;
}

/* MMTk has no pages, each object is a run: only strings are listed. */
static int list_page(void *start, void *past, size_t slot_bytes, void *data)
{
    struct slice *slice = data;

    if ((uint64_t)(uintptr_t)past <= slice->options->from)
        return 0;
    if ((size_t)((char *)past - (char *)start) == slot_bytes && !is_string(start))
        return 0;
    if (slice->count == slice->capacity && !reserve(slice)) {
        slice->failed = 1;
        return 1;
    }
    slice->runs[slice->count++] = (struct run){start, past, slot_bytes};
    return 0;
}

static int lower_first(const void *one, const void *other)
{
    const char *a = ((const struct run *)one)->start, *b = ((const struct run *)other)->start;

    return (a > b) - (a < b);
}

/* Single objects are mostly in order already, and sorting them would take as long as listing them. */
static void sort_runs(struct slice *slice)
{
    for (size_t i = 1; i < slice->count; i++) {
        if (lower_first(&slice->runs[i - 1], &slice->runs[i]) <= 0)
            continue;
        qsort(slice->runs, slice->count, sizeof(*slice->runs), lower_first);
        return;
    }
}

/* ---- allocation sites ---- */

/* Adds the site's name unless this slice has it; if the table is full, repeatedly. */
static void name_site(struct slice *slice, uint64_t site, const char *name, size_t length)
{
    struct culet_string_record record = {.flags = STRING_SITE, .site = site, .content_bytes = (uint32_t)length};
    static const char zeros[8];

    for (size_t tries = 0, at = site % SITE_SLOTS; tries < SITE_SLOTS; tries++, at = (at + 1) % SITE_SLOTS) {
        if (slice->named[at] == site)
            return;
        if (slice->named[at] != 0)
            continue;
        slice->named[at] = site;
        break;
    }
    record.bytes = (uint32_t)culet_string_record_bytes(length);
    culet_buffer_add(slice->buffer, &record, sizeof(record));
    culet_buffer_add(slice->buffer, name, length);
    culet_buffer_add(slice->buffer, zeros, record.bytes - sizeof(record) - length);
}

/* objspace allocates a String for each answer, in the heap being reported. It is emptied and hidden at once, and hidden
 * empty strings are not reported. */
static uint64_t site_of(struct slice *slice, VALUE string)
{
    char name[1024];
    uint64_t digest[2];
    VALUE file = rb_funcall(slice->sites, slice->file, 1, string), line;
    size_t length;

    if (!RB_TYPE_P(file, T_STRING))
        return 0;
    line = rb_funcall(slice->sites, slice->line, 1, string);
    length = (size_t)snprintf(name, sizeof(name), "%.*s:%ld", (int)RSTRING_LEN(file), RSTRING_PTR(file),
                              RB_INTEGER_TYPE_P(line) ? NUM2LONG(line) : 0L);
    if (length >= sizeof(name))
        length = sizeof(name) - 1;
    if (!OBJ_FROZEN(file)) {
        rb_str_resize(file, 0);
        rb_obj_hide(file);
    }
    culet_strings_digest(&secret, name, length, digest);
    if (digest[0] == 0)
        digest[0] = 1;
    name_site(slice, digest[0], name, length);
    return digest[0];
}

/* ---- one string ---- */

/* The content, its chain of digests, or a digest and a sample. */
static void add_content(struct slice *slice, const struct culet_string_record *record, const unsigned char *bytes)
{
    size_t size = record->bytes - sizeof(*record), used = record->content_bytes;
    static const char zeros[8];

    if (record->flags & STRING_DIGEST) {
        uint64_t digest[2];
        culet_strings_digest(&secret, bytes, (size_t)record->length, digest);
        culet_buffer_add(slice->buffer, digest, sizeof(digest));
        culet_buffer_add(slice->buffer, bytes, used - sizeof(digest));
    } else if (record->flags & STRING_HASHED) {
        /* A chain cannot be computed in pieces, so it is written in place. */
        unsigned char *chain = culet_buffer_reserve(slice->buffer, used);
        if (chain != NULL)
            culet_strings_chain(&secret, bytes, (size_t)record->length, chain);
    } else {
        culet_buffer_add(slice->buffer, bytes, used);
    }
    culet_buffer_add(slice->buffer, zeros, size - used);
}

/* Sets how the content is reported. */
static void choose_content(const struct slice *slice, struct culet_string_record *record)
{
    size_t length = (size_t)record->length;

    record->flags |= STRING_HAS_CONTENT;
    if (slice->options->content && length <= LARGEST_CONTENT) {
        record->content_bytes = (uint32_t)length;
    } else if (slice->options->content) {
        record->flags |= STRING_DIGEST;
        record->content_bytes = STRINGS_DIGEST_BYTES + STRING_SAMPLE_BYTES;
    } else if (length >= CHAINED_FROM && length <= LARGEST_CONTENT) {
        record->flags |= STRING_HASHED;
        record->content_bytes = (uint32_t)(length * STRINGS_LINK_BYTES);
    } else {
        record->flags |= STRING_HASHED | STRING_DIGEST;
        record->content_bytes = STRINGS_DIGEST_BYTES;
    }
    record->bytes = (uint32_t)culet_string_record_bytes(record->content_bytes);
}

static void write_string(struct slice *slice, VALUE string, size_t slot_bytes)
{
    struct culet_string_record record = {.address = (uint64_t)string, .slot = (uint32_t)slot_bytes};
    size_t memory = slice->memsize(string), base = slice->base_bytes != NULL ? slice->base_bytes(string) : slot_bytes;
    size_t malloced = memory > base ? memory - base : 0;
    VALUE flags = RBASIC(string)->flags;
    int own = (flags & RSTRING_NOEMBED) != 0, shared = own && (flags & CULET_ELEMENTS_SHARED) != 0;

    record.length = (uint64_t)RSTRING_LEN(string);
    if (RBASIC_CLASS(string) == 0 && !own && record.length == 0)
        return; /* site_of's strings, and empty hidden ones */
    record.held = slot_bytes + malloced;
    record.kind = (uint64_t)RBASIC_CLASS(string) * 256 + (uint64_t)rb_enc_get_index(string);
    if (!own)
        record.flags |= STRING_EMBEDDED;
    else if (shared)
        record.flags |= STRING_SHARED;
    else if (malloced == 0)
        record.flags |= STRING_NOFREE;
    if (flags & INTERNED)
        record.flags |= STRING_INTERNED;
    if (OBJ_FROZEN(string))
        record.flags |= STRING_FROZEN;
    if (shared)
        record.root = (uint64_t)RSTRING(string)->as.heap.aux.shared;
    if (!NIL_P(slice->sites))
        record.site = site_of(slice, string);
    choose_content(slice, &record);
    culet_buffer_add(slice->buffer, &record, sizeof(record));
    add_content(slice, &record, (const unsigned char *)RSTRING_PTR(string));
    slice->strings++;
}

/* ---- a slice ---- */

static int slice_is_full(const struct slice *slice)
{
    if (slice->buffer->length >= LARGEST_SLICE)
        return 1;
    return slice->strings % CLOCK_EVERY == CLOCK_EVERY - 1 && culet_seconds_since(slice->start) > slice->limit_seconds;
}

/* Returns whether the slice is full and sets `next`. Each slice has at least one string. */
static int write_run(struct slice *slice, const struct run *run)
{
    size_t stride = run->slot_bytes;
    char *slot = run->start;

    if ((uint64_t)(uintptr_t)slot < slice->options->from)
        slot += ((slice->options->from - (uint64_t)(uintptr_t)slot + stride - 1) / stride) * stride;
    for (; slot < run->past; slot += stride) {
        if (!is_string(slot))
            continue;
        if (slice->strings > 0 && slice_is_full(slice)) {
            slice->next = (uint64_t)(uintptr_t)slot;
            return 1;
        }
        write_string(slice, (VALUE)slot, stride);
    }
    return 0;
}

static void write_runs(void *data)
{
    struct slice *slice = data;

    for (size_t i = 0; i < slice->count; i++)
        if (write_run(slice, &slice->runs[i]))
            return;
}

static double collect(const struct culet_strings_options *options)
{
    double start = culet_clock_seconds(CLOCK_MONOTONIC);

    if (!options->collect)
        return 0;
    rb_gc_start();
    return culet_seconds_since(start);
}

/* ObjectSpace if objspace is loaded and ObjectSpace.trace_object_allocations can have recorded sites. */
static VALUE site_source(void)
{
    VALUE space = rb_const_get(rb_cObject, rb_intern("ObjectSpace"));

    return rb_respond_to(space, rb_intern("allocation_sourcefile")) ? space : Qnil;
}

static void write_obstacle(struct culet_buffer *buffer, const char *why)
{
    culet_buffer_text(buffer,
                      "{\"kind\":\"strings\",\"next\":null,\"seconds\":0.0,\"collection_seconds\":0.0,\"strings\":0");
    culet_buffer_format(buffer, ",\"sites\":false,\"why\":\"%s\"}\n", why);
}

/* Writes the JSON line into the space reserved for it. */
static void write_head(char *head, const struct slice *slice, double collection)
{
    char next[32] = "null";
    int length;

    if (slice->next != 0)
        snprintf(next, sizeof(next), "%llu", (unsigned long long)slice->next);
    length = snprintf(head, HEAD_BYTES,
                      "{\"kind\":\"strings\",\"next\":%s,\"seconds\":%.6f,\"collection_seconds\":%.6f,\"strings\":%zu,"
                      "\"sites\":%s,\"why\":\"\"}",
                      next, culet_seconds_since(slice->start), collection, slice->strings,
                      NIL_P(slice->sites) ? "false" : "true");
    memset(head + length, ' ', HEAD_BYTES - (size_t)length);
    head[HEAD_BYTES - 1] = '\n';
}

/* GC is disabled since the pages were listed. Writing may take as long as listing did: with MMTk, which lists object by
 * object, slices would otherwise be many and tiny. A limit of zero gives the shortest slices. */
static void fill(void *data)
{
    struct slice *slice = data;
    double limit = slice->options->limit_seconds, enough;

    sort_runs(slice);
    enough = 2 * culet_seconds_since(slice->start);
    slice->limit_seconds = limit > 0 && limit < enough ? enough : limit;
    if (!slice->failed)
        write_runs(slice);
}

static int list_and_write(struct slice *slice)
{
    int was_off = RTEST(rb_gc_disable());
    int failure = culet_heap_walk(list_page, slice);

    if (!failure)
        failure = culet_without_gc(fill, slice);
    if (!was_off)
        rb_gc_enable();
    return failure;
}

void culet_strings_write(struct culet_buffer *buffer, const struct culet_strings_options *options)
{
    const char *obstacle = culet_heap_walk_obstacle();
    size_t head = buffer->length;
    struct slice *slice;
    double collection;
    int failure;

    if (obstacle == NULL && !secret_made && culet_strings_secret_make(&secret) != 0)
        obstacle = "the kernel provides no random numbers";
    if (obstacle != NULL) {
        write_obstacle(buffer, obstacle);
        return;
    }
    secret_made = 1;
    collection = collect(options);
    slice = mmap(NULL, sizeof(*slice), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slice == MAP_FAILED)
        rb_raise(rb_eNoMemError, "not enough memory to report strings");
    slice->buffer = buffer;
    slice->options = options;
    slice->memsize = culet_heap_memsize();
    slice->base_bytes = culet_heap_slot_size();
    slice->sites = site_source();
    slice->file = rb_intern("allocation_sourcefile");
    slice->line = rb_intern("allocation_sourceline");
    slice->start = culet_clock_seconds(CLOCK_MONOTONIC);
    (void)culet_buffer_reserve(buffer, HEAD_BYTES);
    failure = list_and_write(slice);
    if (slice->failed)
        buffer->failed = 1;
    if (!failure && !buffer->failed)
        write_head(buffer->bytes + head, slice, collection);
    if (slice->runs != NULL)
        munmap(slice->runs, slice->capacity * sizeof(*slice->runs));
    munmap(slice, sizeof(*slice));
    if (failure)
        rb_jump_tag(failure);
}
