#include "reading/malloc_stats.h"

#include <ruby/thread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_MALLOC_H
#include <malloc.h>
#endif

#include "allocator/src/stats.h"
#include "common/active_malloc.h"
#include "common/values.h"
#include "reading/glibc_resident.h"
#include "reading/kernel_file.h"

/* mallinfo2 of glibc 2.33 and later, which the headers may lack. */
struct info {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

typedef int malloc_info_function(int, FILE *);

typedef struct info mallinfo2_function(void);
#ifdef HAVE_STRUCT_MALLINFO_UORDBLKS
typedef struct mallinfo mallinfo_function(void);
#endif
typedef int culet_stats_function(struct culet_stats *, size_t);

static void store(VALUE hash, const char *name, uint64_t value)
{
    culet_hash_set(hash, name, ULL2NUM(value));
}

/* ---- culet's own statistics ---- */

struct question {
    culet_stats_function *ask;
    struct culet_stats stats;
    int done;
};

static void *ask_without_gvl(void *data)
{
    struct question *question = data;

    question->done = question->ask(&question->stats, sizeof(question->stats)) == 0;
    return NULL;
}

static int find_culet(const struct active_malloc *library, struct question *question)
{
    void *pointer = culet_malloc_function(library, "culet_stats");

    if (pointer == NULL)
        return 0;
    AS_FUNCTION(culet_stats_function, ask, pointer);
    question->ask = ask;
    return 1;
}

/* Returns whether culet is active. Counting a large heap takes milliseconds, so the GVL is released. */
static int read_culet(const struct active_malloc *library, struct question *question)
{
    if (!find_culet(library, question))
        return 0;
    rb_thread_call_without_gvl(ask_without_gvl, question, NULL, NULL);
    return question->done;
}

static VALUE hash_of_class(const struct culet_stats_class *class)
{
    VALUE hash = rb_hash_new();

    store(hash, "block_bytes", class->block_bytes);
    store(hash, "slabs", class->slabs);
    store(hash, "used", class->used);
    store(hash, "free", class->free);
    store(hash, "cached", class->cached);
    return hash;
}

static VALUE array_of_classes(const struct culet_stats *stats)
{
    VALUE array = rb_ary_new();

    for (uint64_t i = 0; i < stats->classes && i < CULET_STATS_CLASSES; i++)
        if (stats->class[i].slabs > 0)
            rb_ary_push(array, hash_of_class(&stats->class[i]));
    return array;
}

/* A library older than the extension fills fewer members; the others are omitted. */
#define STORE(hash, stats, member)                                                                                     \
    if ((stats)->filled_bytes >= offsetof(struct culet_stats, member) + sizeof((stats)->member))                       \
    store(hash, #member, (stats)->member)

static int resident_known(const struct culet_stats *stats)
{
    return stats->filled_bytes >= offsetof(struct culet_stats, unused_resident_bytes) + sizeof(uint64_t) &&
           stats->used_resident_bytes != CULET_STATS_UNKNOWN;
}

static VALUE hash_of_culet(const struct culet_stats *stats)
{
    VALUE hash = rb_hash_new();

    STORE(hash, stats, mapped_bytes);
    STORE(hash, stats, heap_bytes);
    STORE(hash, stats, used_bytes);
    STORE(hash, stats, free_bytes);
    STORE(hash, stats, cached_bytes);
    STORE(hash, stats, slab_bytes);
    STORE(hash, stats, run_bytes);
    STORE(hash, stats, free_resident_bytes);
    STORE(hash, stats, free_returned_bytes);
    STORE(hash, stats, large_bytes);
    STORE(hash, stats, descriptor_bytes);
    STORE(hash, stats, returned_bytes);
    STORE(hash, stats, segments);
    STORE(hash, stats, runs);
    STORE(hash, stats, large_blocks);
    STORE(hash, stats, purges);
    STORE(hash, stats, forks);
    STORE(hash, stats, threads);
    STORE(hash, stats, arenas);
    if (resident_known(stats)) {
        store(hash, "used_resident_bytes", stats->used_resident_bytes);
        store(hash, "unused_resident_bytes", stats->unused_resident_bytes);
    }
    if (stats->filled_bytes >= offsetof(struct culet_stats, class) + sizeof(stats->class))
        culet_hash_set(hash, "classes", array_of_classes(stats));
    return hash;
}

/* ---- glibc's mallinfo2, see mallinfo(3); also culet's answer while it is dormant ---- */

static int read_info(const struct active_malloc *library, struct info *info)
{
    void *pointer;

    if ((pointer = culet_malloc_function(library, "mallinfo2")) != NULL) {
        AS_FUNCTION(mallinfo2_function, ask, pointer);
        *info = ask();
        return 1;
    }
#ifdef HAVE_STRUCT_MALLINFO_UORDBLKS
    /*
   * glibc before 2.33. Its fields are ints that wrap; read as unsigned they hold up to 4 GiB. The mallinfo of mimalloc
   * and tcmalloc has other meanings and is not read.
   */
    if (culet_malloc_function(library, "gnu_get_libc_version") != NULL &&
        (pointer = culet_malloc_function(library, "mallinfo")) != NULL) {
        AS_FUNCTION(mallinfo_function, ask, pointer);
        struct mallinfo old = ask();
        info->arena = (unsigned int)old.arena;
        info->hblks = (unsigned int)old.hblks;
        info->hblkhd = (unsigned int)old.hblkhd;
        info->uordblks = (unsigned int)old.uordblks;
        info->fordblks = (unsigned int)old.fordblks;
        return 1;
    }
#endif
    return 0;
}

struct reading {
    const struct active_malloc *library;
    struct info info;
    uint64_t arenas; /* 0: unknown */
    int done;
};

/* glibc reports its arenas in malloc_info(3) alone: an element "heap" for each. */
static void count_arenas(struct reading *reading)
{
    void *pointer = culet_malloc_function(reading->library, "malloc_info");
    char *text = NULL;
    size_t length = 0;
    FILE *stream;

    if (pointer == NULL || (stream = open_memstream(&text, &length)) == NULL)
        return;
    AS_FUNCTION(malloc_info_function, write_info, pointer);
    if (write_info(0, stream) == 0 && fflush(stream) == 0)
        for (const char *at = text; (at = strstr(at, "<heap nr=")) != NULL; at++)
            reading->arenas++;
    fclose(stream);
    free(text);
}

/* Walks the lists of free chunks: milliseconds in a fragmented heap, so the GVL is released. */
static void *read_without_gvl(void *data)
{
    struct reading *reading = data;

    reading->done = read_info(reading->library, &reading->info);
    if (reading->done)
        count_arenas(reading);
    return NULL;
}

static VALUE hash_of_info(const struct info *info, uint64_t arenas)
{
    VALUE hash = rb_hash_new();

    store(hash, "heap_bytes", info->arena);
    store(hash, "used_bytes", info->uordblks);
    store(hash, "free_bytes", info->fordblks);
    store(hash, "large_blocks", info->hblks);
    store(hash, "large_bytes", info->hblkhd);
    if (arenas > 0)
        store(hash, "arenas", arenas);
    return hash;
}

VALUE
culet_stats_of_malloc(VALUE self)
{
    struct question question;
    struct active_malloc library;
    struct reading reading = {.library = &library};

    if (!culet_find_active_malloc(&library))
        return Qnil;
    if (read_culet(&library, &question))
        return hash_of_culet(&question.stats);
    rb_thread_call_without_gvl(read_without_gvl, &reading, NULL, NULL);
    return reading.done ? hash_of_info(&reading.info, reading.arenas) : Qnil;
}

static struct culet_malloc_sums sums_of_culet(const struct culet_stats *stats)
{
    uint64_t heap = stats->heap_bytes - stats->free_returned_bytes;
    struct culet_malloc_sums sums = {stats->used_bytes + stats->large_bytes,
                                     heap > stats->used_bytes ? heap - stats->used_bytes : 0, stats->descriptor_bytes};

    if (resident_known(stats)) {
        sums.used = stats->used_resident_bytes;
        sums.free = stats->unused_resident_bytes;
    }
    return sums;
}

/* mallinfo2 counts memory that was returned, or never touched, as the rest. */
static struct culet_malloc_sums sums_of_glibc(const struct info *info)
{
    struct culet_malloc_sums sums = {info->uordblks + info->hblkhd, info->fordblks, 0};
    uint64_t resident = culet_glibc_resident(info->arena);

    if (resident == CULET_UNKNOWN)
        return sums;
    sums.free = resident > info->uordblks ? resident - info->uordblks : 0;
    if (sums.free > info->fordblks)
        sums.free = info->fordblks;
    sums.used = resident - sums.free + info->hblkhd;
    return sums;
}

static VALUE array_of_totals(const VALUE totals[6], struct culet_malloc_sums sums)
{
    VALUE array = rb_ary_new_from_values(6, totals);

    rb_ary_push(array, ULL2NUM(sums.used));
    rb_ary_push(array, ULL2NUM(sums.free));
    return rb_ary_push(array, ULL2NUM(sums.metadata));
}

VALUE
culet_malloc_totals(VALUE self)
{
    struct question question;
    struct active_malloc library;
    struct reading reading = {.library = &library};
    const struct culet_stats *stats = &question.stats;
    const struct info *info = &reading.info;

    memset(&question, 0, sizeof(question)); /* an older library fills less */
    if (!culet_find_active_malloc(&library))
        return Qnil;
    if (read_culet(&library, &question)) {
        VALUE totals[] = {ULL2NUM(stats->used_bytes + stats->large_bytes),
                          ULL2NUM(stats->free_bytes),
                          ULL2NUM(stats->free_returned_bytes),
                          ULL2NUM(stats->cached_bytes),
                          ULL2NUM(stats->returned_bytes),
                          ULL2NUM(stats->arenas)};
        return array_of_totals(totals, sums_of_culet(stats));
    }
    rb_thread_call_without_gvl(read_without_gvl, &reading, NULL, NULL);
    if (!reading.done)
        return Qnil;
    VALUE totals[] = {ULL2NUM(info->uordblks + info->hblkhd),
                      ULL2NUM(info->fordblks),
                      Qnil,
                      Qnil,
                      Qnil,
                      reading.arenas > 0 ? ULL2NUM(reading.arenas) : Qnil};
    return array_of_totals(totals, sums_of_glibc(info));
}

int culet_malloc_sums(struct culet_malloc_sums *sums)
{
    struct question question = {0};
    struct info info = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    struct active_malloc library;

    if (!culet_find_active_malloc(&library))
        return 0;
    if (find_culet(&library, &question) && (ask_without_gvl(&question), question.done)) {
        *sums = sums_of_culet(&question.stats);
        return 1;
    }
    if (!read_info(&library, &info))
        return 0;
    *sums = sums_of_glibc(&info);
    return 1;
}
