#include "reading/malloc_stats.h"

#include <ruby/thread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>

#include "allocator/src/stats.h"
#include "common/active_malloc.h"
#include "common/values.h"
#include "reading/glibc_resident.h"
#include "reading/kernel_file.h"
#include "reading/thread_cache.h"

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

/* What the active malloc says of itself: culet's own statistics; or glibc's mallinfo2 (see mallinfo(3)), which is also
 * culet's answer while it is dormant; or the sums alone, of jemalloc and tcmalloc. */
struct answer {
    enum { NOBODY, CULET, GLIBC, SUMS } from;
    bool with_arenas;         /* whether glibc's arenas are to be counted */
    bool with_sums;           /* whether `sums` are to be made of what culet or glibc says */
    struct culet_stats stats; /* of CULET; an older library fills less */
    struct info info;         /* of GLIBC, as `arenas`; 0: unknown */
    uint64_t arenas;
    struct culet_malloc_sums sums;
};

static VALUE hash_of_class(const struct culet_stats_class *class)
{
    VALUE hash = rb_hash_new();

    culet_hash_set_number(hash, "block_bytes", class->block_bytes);
    culet_hash_set_number(hash, "slabs", class->slabs);
    culet_hash_set_number(hash, "used", class->used);
    culet_hash_set_number(hash, "free", class->free);
    culet_hash_set_number(hash, "cached", class->cached);
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
    culet_hash_set_number(hash, #member, (stats)->member)

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
        culet_hash_set_number(hash, "used_resident_bytes", stats->used_resident_bytes);
        culet_hash_set_number(hash, "unused_resident_bytes", stats->unused_resident_bytes);
    }
    if (stats->filled_bytes >= offsetof(struct culet_stats, class) + sizeof(stats->class))
        culet_hash_set(hash, "classes", array_of_classes(stats));
    return hash;
}

static bool read_culet(struct culet_stats *stats)
{
    CULET_OF_MALLOC(culet_stats_function, ask, "culet_stats");
    return ask != NULL && ask(stats, sizeof(*stats)) == 0;
}

/* Of glibc, or of culet while it is dormant. That of mimalloc and tcmalloc has other meanings and is not read. */
static int read_info(struct info *info)
{
    CULET_OF_MALLOC(mallinfo2_function, ask, "mallinfo2");

    if (culet_malloc_function("gnu_get_libc_version") == NULL && culet_malloc_function("culet_stats") == NULL)
        return 0;
    if (ask != NULL) {
        *info = ask();
        return 1;
    }
#ifdef HAVE_STRUCT_MALLINFO_UORDBLKS
    /* glibc before 2.33. Its fields are ints that wrap; read as unsigned they hold up to 4 GiB. */
    CULET_OF_MALLOC(mallinfo_function, ask_old, "mallinfo");
    if (ask_old != NULL) {
        struct mallinfo old = ask_old();
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

/* glibc reports its arenas in malloc_info(3) alone: an element "heap" for each. */
static uint64_t count_arenas(void)
{
    CULET_OF_MALLOC(malloc_info_function, write_info, "malloc_info");
    uint64_t arenas = 0;
    char *text = NULL;
    size_t length = 0;
    FILE *stream;

    if (write_info == NULL || (stream = open_memstream(&text, &length)) == NULL)
        return 0;
    if (write_info(0, stream) == 0 && fflush(stream) == 0)
        for (const char *at = text; (at = strstr(at, "<heap nr=")) != NULL; at++)
            arenas++;
    fclose(stream);
    free(text);
    return arenas;
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

static struct culet_malloc_sums sums_of(const struct answer *answer)
{
    return answer->from == CULET ? sums_of_culet(&answer->stats) : sums_of_glibc(&answer->info);
}

static uint64_t above(size_t all, size_t part)
{
    return all > part ? all - part : 0;
}

/* jemalloc(3): setting the epoch updates the statistics. */
static bool read_jemalloc(struct culet_malloc_sums *sums)
{
    CULET_OF_MALLOC(culet_mallctl_function, mallctl, "mallctl");
    size_t used, resident, metadata, size = sizeof(used);
    uint64_t epoch = 1;

    if (mallctl == NULL || mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch)) != 0 ||
        mallctl("stats.allocated", &used, &size, NULL, 0) != 0 ||
        mallctl("stats.resident", &resident, &size, NULL, 0) != 0 ||
        mallctl("stats.metadata", &metadata, &size, NULL, 0) != 0)
        return false;
    *sums = (struct culet_malloc_sums){used, above(resident, used + metadata), metadata};
    return true;
}

/* gperftools/malloc_extension_c.h. What all threads' caches have is free; its metadata is not told. */
static bool read_tcmalloc(struct culet_malloc_sums *sums)
{
    CULET_OF_MALLOC(culet_tc_property_function, property, "MallocExtension_GetNumericProperty");
    size_t used, heap, unmapped;

    if (property == NULL || !property("generic.current_allocated_bytes", &used) ||
        !property("generic.heap_size", &heap) || !property("tcmalloc.pageheap_unmapped_bytes", &unmapped))
        return false;
    *sums = (struct culet_malloc_sums){used, above(heap, used + unmapped), 0};
    return true;
}

/* In any thread. Counts a large heap, or walks its lists of free chunks and its pages, which takes milliseconds. */
static void *ask(void *data)
{
    struct answer *answer = data;

    if (read_culet(&answer->stats))
        answer->from = CULET;
    else if (read_info(&answer->info))
        answer->from = GLIBC;
    else if (read_jemalloc(&answer->sums) || read_tcmalloc(&answer->sums))
        answer->from = SUMS;
    if (answer->from == GLIBC && answer->with_arenas)
        answer->arenas = count_arenas();
    if ((answer->from == CULET || answer->from == GLIBC) && answer->with_sums)
        answer->sums = sums_of(answer);
    return NULL;
}

static VALUE hash_of_info(const struct info *info, uint64_t arenas)
{
    VALUE hash = rb_hash_new();

    culet_hash_set_number(hash, "heap_bytes", info->arena);
    culet_hash_set_number(hash, "used_bytes", info->uordblks);
    culet_hash_set_number(hash, "free_bytes", info->fordblks);
    culet_hash_set_number(hash, "large_blocks", info->hblks);
    culet_hash_set_number(hash, "large_bytes", info->hblkhd);
    if (arenas > 0)
        culet_hash_set_number(hash, "arenas", arenas);
    return hash;
}

VALUE
culet_stats_of_malloc(VALUE self)
{
    struct answer answer = {.with_arenas = true};

    rb_thread_call_without_gvl(ask, &answer, NULL, NULL);
    if (answer.from == CULET)
        return hash_of_culet(&answer.stats);
    return answer.from == GLIBC ? hash_of_info(&answer.info, answer.arenas) : Qnil;
}

/* Of the answer of somebody: returned and untouched pages included. */
static uint64_t used_by_program(const struct answer *answer)
{
    if (answer->from == SUMS)
        return answer->sums.used;
    return answer->from == CULET ? answer->stats.used_bytes + answer->stats.large_bytes
                                 : answer->info.uordblks + answer->info.hblkhd;
}

static uint64_t free_bytes(const struct answer *answer)
{
    if (answer->from == SUMS)
        return answer->sums.free;
    return answer->from == CULET ? answer->stats.free_bytes : answer->info.fordblks;
}

static VALUE number_or_nil(bool known, uint64_t number)
{
    return known ? ULL2NUM(number) : Qnil;
}

VALUE
culet_malloc_totals(VALUE self)
{
    struct answer answer = {.with_arenas = true, .with_sums = true};
    const struct culet_stats *stats = &answer.stats;
    const struct culet_malloc_sums *sums = &answer.sums;
    bool culet;

    rb_thread_call_without_gvl(ask, &answer, NULL, NULL);
    if (answer.from == NOBODY)
        return Qnil;
    culet = answer.from == CULET;
    return rb_ary_new_from_args(9, ULL2NUM(used_by_program(&answer)), ULL2NUM(free_bytes(&answer)),
                                number_or_nil(culet, stats->free_returned_bytes),
                                number_or_nil(culet, stats->cached_bytes), number_or_nil(culet, stats->returned_bytes),
                                number_or_nil(culet || answer.arenas > 0, culet ? stats->arenas : answer.arenas),
                                ULL2NUM(sums->used), ULL2NUM(sums->free), ULL2NUM(sums->metadata));
}

int culet_malloc_sums(struct culet_malloc_sums *sums)
{
    struct answer answer = {.with_sums = true};

    (void)ask(&answer);
    if (answer.from == NOBODY)
        return 0;
    *sums = answer.sums;
    return 1;
}

int culet_malloc_in_use_bytes(uint64_t *bytes)
{
    struct answer answer = {.with_arenas = false};

    culet_settle_thread_cache();
    (void)ask(&answer);
    if (answer.from == NOBODY)
        return 0;
    *bytes = used_by_program(&answer);
    return 1;
}

VALUE culet_malloc_in_use(VALUE self)
{
    uint64_t bytes;

    return culet_malloc_in_use_bytes(&bytes) ? ULL2NUM(bytes) : Qnil;
}
