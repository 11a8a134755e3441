#include "blackbox/ledger.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "blackbox/box.h"
#include "common/ruby_stats.h"
#include "common/stats.h"
#include "limit/usage.h"

#define STAT_BYTES 16384 /* of memory.stat, which version 2 keeps extending */
#define SHARE 1000       /* a reading may take this part of the time */
#define FAST_SHARE 50
#define LEAST_NANOSECONDS UINT64_C(900000000)
#define RUBY_NANOSECONDS UINT64_C(500000000)
#define UNKNOWN CULET_BOX_UNKNOWN

static struct culet_ledger_group group;
static uint64_t page_bytes, ruby_page_bytes;
static _Atomic uint64_t last_resident;

/* A reading that takes long: when it is due again, and what the last one cost of the thread's processor time. On a busy
 * machine the time that passes is longer, and figures would be old. */
struct costly {
    uint64_t due, ended, cost;
};
static struct costly rollup, heap, group_stat;
static struct culet_box_ledger kept; /* what these have found */

static uint64_t read_clock(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t monotonic(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static uint64_t processor_time(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* ---- files ---- */

/* Returns the length; 0: it cannot be read. The text ends with a zero. */
static size_t read_file(const char *path, char *text, size_t size)
{
    size_t length = 0;
    ssize_t got = 1;
    int file = path[0] == '\0' ? -1 : open(path, O_RDONLY | O_CLOEXEC);

    if (file < 0)
        return 0;
    while (length < size - 1 && (got = read(file, text + length, size - 1 - length)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        length += (size_t)got;
    }
    close(file);
    text[length] = '\0';
    return got < 0 ? 0 : length;
}

static uint64_t number_at(const char *text)
{
    char *end;
    unsigned long long value;

    if (!isdigit((unsigned char)*text))
        return UNKNOWN;
    value = strtoull(text, &end, 10);
    return value;
}

static uint64_t read_number(const char *path)
{
    char text[64];

    return read_file(path, text, sizeof(text)) == 0 ? UNKNOWN : number_at(text);
}

/* The number behind a name at the start of a line; spaces and a colon in between. */
static uint64_t number_of(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0)
            continue;
        const char *at = line + length;
        if (*at != ':' && *at != ' ')
            continue;
        at += strspn(at, ": \t");
        return number_at(at);
    }
    return UNKNOWN;
}

static uint64_t kilobytes_of(const char *text, const char *name)
{
    uint64_t value = number_of(text, name);

    return value == UNKNOWN ? value : value << 10;
}

/* ---- the process ---- */

static void read_statm(struct culet_box_ledger *ledger)
{
    char text[128], *at = text;

    ledger->resident = ledger->shared = UNKNOWN;
    if (read_file("/proc/self/statm", text, sizeof(text)) == 0)
        return;
    (void)strtoull(at, &at, 10);
    ledger->resident = strtoull(at, &at, 10) * page_bytes;
    ledger->shared = strtoull(at, &at, 10) * page_bytes;
    atomic_store(&last_resident, ledger->resident);
}

static bool is_due(const struct costly *reading, uint64_t now)
{
    return now >= reading->due;
}

/* began: processor time at the start of the reading. */
static void done(struct costly *reading, uint64_t began)
{
    uint64_t now = monotonic(), wait;

    reading->ended = now;
    reading->cost = processor_time() - began;
    wait = reading->cost * SHARE;
    reading->due = now + (wait > LEAST_NANOSECONDS ? wait : LEAST_NANOSECONDS);
}

/* The kernel walks the page tables for it: some ms for each GB. */
static void read_rollup(uint64_t now)
{
    char text[2048];
    uint64_t began = processor_time();

    if (!is_due(&rollup, now))
        return;
    if (read_file("/proc/self/smaps_rollup", text, sizeof(text)) == 0)
        text[0] = '\0';
    kept.rollup_time = culet_box_now();
    kept.proportional = kilobytes_of(text, "Pss");
    kept.private_dirty = kilobytes_of(text, "Private_Dirty");
    kept.swapped = kilobytes_of(text, "Swap");
    kept.anonymous = kilobytes_of(text, "Anonymous");
    done(&rollup, began);
}

/* In a ledger between two seconds it may take a larger part of the time. */
static void read_heap(uint64_t now, bool fast)
{
    struct culet_malloc_sums sums = {UNKNOWN, UNKNOWN, UNKNOWN};
    uint64_t began = processor_time();

    if (fast ? now < heap.ended + heap.cost * FAST_SHARE : !is_due(&heap, now))
        return;
    (void)culet_malloc_sums(&sums);
    kept.malloc_time = culet_box_now();
    kept.malloc_used = sums.used;
    kept.malloc_free = sums.free;
    kept.malloc_metadata = sums.metadata;
    done(&heap, began);
}

/* ---- the control group ---- */

/* Of "some avg10=1.23 ...", in hundredths of a percent. */
static uint64_t read_stall(void)
{
    char text[256], *at, *end;
    uint64_t whole;

    if (read_file(group.pressure, text, sizeof(text)) == 0 || (at = strstr(text, "avg10=")) == NULL)
        return UNKNOWN;
    whole = strtoull(at + 6, &end, 10);
    return whole * 100 + (*end == '.' && isdigit((unsigned char)end[1]) ? (uint64_t)(end[1] - '0') * 10 : 0);
}

static uint64_t read_kills(void)
{
    char text[1024];

    return read_file(group.kills, text, sizeof(text)) == 0 ? UNKNOWN : number_of(text, "oom_kill");
}

static void read_group_stat(uint64_t now)
{
    static char text[STAT_BYTES];
    uint64_t began = processor_time();

    if (!is_due(&group_stat, now))
        return;
    kept.group_reclaimable = read_file(group.stat, text, sizeof(text)) == 0 ? UNKNOWN : culet_usage_reclaimable(text);
    done(&group_stat, began);
}

/* ---- Ruby ---- */

void culet_ledger_note_ruby_if_old(uint64_t now)
{
    if (now - culet_ruby_stats_time() > RUBY_NANOSECONDS)
        culet_ruby_stats_note();
}

static void copy_ruby(struct culet_box_ledger *ledger)
{
    uint64_t pages = culet_ruby_stat_noted(CULET_RUBY_PAGES);

    ledger->ruby_time = culet_ruby_stats_time();
    ledger->slots_live = culet_ruby_stat_noted(CULET_RUBY_LIVE_SLOTS);
    ledger->slots_all = culet_ruby_stat_noted(CULET_RUBY_SLOTS);
    ledger->ruby_pages = pages == UNKNOWN || ruby_page_bytes == 0 ? UNKNOWN : pages * ruby_page_bytes;
    ledger->gc_count = culet_ruby_stat_noted(CULET_RUBY_COLLECTIONS);
    ledger->gc_major = culet_ruby_stat_noted(CULET_RUBY_MAJORS);
    ledger->malloc_increase = culet_ruby_stat_noted(CULET_RUBY_MALLOC_INCREASE);
    ledger->oldmalloc_increase = culet_ruby_stat_noted(CULET_RUBY_OLDMALLOC_INCREASE);
    ledger->allocated_objects = culet_ruby_stat_noted(CULET_RUBY_OBJECTS);
}

/* ---- */

static void fill(struct culet_box_ledger *ledger)
{
    *ledger = kept;
    read_statm(ledger);
    copy_ruby(ledger);
    ledger->group_used = read_number(group.used);
}

void culet_ledger_read_fast(struct culet_box_ledger *ledger)
{
    read_heap(monotonic(), true);
    fill(ledger);
}

void culet_ledger_read(struct culet_box_ledger *ledger)
{
    read_rollup(monotonic());
    read_heap(monotonic(), false);
    read_group_stat(monotonic());
    kept.group_limit = read_number(group.limit);
    kept.group_kills = read_kills();
    kept.group_stall = read_stall();
    fill(ledger);
}

uint64_t culet_ledger_resident(void)
{
    return atomic_load_explicit(&last_resident, memory_order_relaxed);
}

void culet_ledger_reset(void)
{
    rollup.due = heap.due = group_stat.due = 0;
}

void culet_ledger_prepare(const struct culet_ledger_group *files, uint64_t page)
{
    group = *files;
    ruby_page_bytes = page;
    page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    culet_ruby_stats_prepare();
}
