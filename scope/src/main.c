/* main.c - one reading: open, ask each walker, let go, tell. */
#define _GNU_SOURCE
#include "../format.h"
#include "access.h"
#include "complain.h"
#include "options.h"
#include "scope.h"
#include "stream.h"
#include "title.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* In this order. The first that finds its own heap serves malloc; the last names what no one has named. */
static const struct culet_walker *const walkers[] = {
    &culet_culet_walker, &culet_peers_walker, &culet_glibc_walker, &culet_ruby_walker, &culet_names_walker,
};
#define WALKERS (sizeof walkers / sizeof *walkers)

/* The kernel tells sizes of mappings (smaps) at about 10 GB of resident memory per second: what has less than this is
 * measured in the first pause, together with the rest; else while it runs. */
#define SMALL_BYTES (UINT64_C(64) << 20)
/* And so many mappings take as long as a tenth of a pause. */
#define SMALL_LIST 1000u

static struct culet_scope scope;

static uint64_t resident_bytes(void)
{
    char name[64];
    unsigned long long pages = 0;

    snprintf(name, sizeof name, "/proc/%d/statm", (int)scope.target.pid);
    FILE *file = fopen(name, "re");
    if (file && fscanf(file, "%*u %llu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * scope.page_bytes;
}

static void read_program(void)
{
    char name[64];
    unsigned char head[EI_NIDENT] = {0};

    scope.bits = 64;
    snprintf(name, sizeof name, "/proc/%d/exe", (int)scope.target.pid);
    ssize_t length = readlink(name, scope.program, sizeof scope.program - 1);
    scope.program[length > 0 ? length : 0] = 0;
    int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    if (read(file, head, sizeof head) == sizeof head && head[EI_CLASS] == ELFCLASS32)
        scope.bits = 32;
    close(file);
}

/* A file of the process cannot be had: ends the program with a sentence, unless another try is worth it: the thread by which
 * the process is read may have ended, and perhaps all of them. */
static void fail_or_retry(int refused, unsigned tries)
{
    char why[512];

    culet_target_check(&scope.target);
    if ((refused == ESRCH || refused == ENOENT) && tries < CULET_SETTLE_TRIES) {
        culet_target_moment();
        return;
    }
    culet_access_why(scope.target.process, refused, why, sizeof why);
    culet_complain("%s", why);
}

/* What may be read of the process: nothing (a sentence, the end), its page tables, or its memory too. */
static void find_access(void)
{
    char why[512];
    struct culet_maps maps;

    for (unsigned tries = 0; !culet_maps_read(&maps, scope.target.pid, false); tries++)
        fail_or_retry(errno, tries);
    for (unsigned tries = 0;
         !culet_pages_open(&scope.pages, scope.target.pid, (unsigned)__builtin_ctzl(scope.page_bytes)); tries++)
        fail_or_retry(errno, tries);
    scope.mappings = maps.count;
    culet_memory_open(&scope.memory, scope.target.pid, &scope.pages, scope.page_bytes);
    int refused = culet_memory_try(&scope.memory, &maps);
    scope.readable = !refused;
    if (refused) {
        culet_access_why(scope.target.process, refused, why, sizeof why);
        culet_scope_problem(&scope, "Only pages can be told, not blocks: %s.", why);
        scope.target.mode = CULET_LIVE;
    } else if (scope.bits == 32) {
        culet_scope_problem(&scope, "Only pages can be told, not blocks: process %d is a 32-bit program.",
                            (int)scope.target.process);
        scope.readable = false;
    }
    culet_maps_free(&maps);
}

static void read_maps(void)
{
    for (unsigned tries = 0; !culet_maps_read(&scope.maps, scope.target.pid, true); tries++)
        fail_or_retry(errno, tries);
    scope.pages.maps = &scope.maps;
}

/* What regions know of their pages from when they were walked: culet_pages_known. */
static uint64_t known_states(void *context, uint64_t first, uint64_t count, uint8_t *states, enum culet_pages_knowledge *what)
{
    const struct culet_place *place = culet_places_next(&scope.places, first << scope.pages.shift);
    uint64_t from = place ? place->start >> scope.pages.shift : UINT64_MAX;

    (void)context;
    if (from > first)
        return from - first < count ? from - first : count;
    struct culet_place_run run = culet_place_run(place, first - from);
    *what = run.states ? CULET_PAGES_STATES : CULET_PAGES_ABSENT;
    if (run.count < count)
        count = run.count;
    if (!run.states)
        return count;
    if (count > CULET_PAGES_WINDOW)
        count = CULET_PAGES_WINDOW;
    memcpy(states, run.states, (size_t)count);
    return count;
}

static void read_pages(void)
{
    culet_pages_forget(&scope.pages);
    culet_pages_allow(&scope.pages, scope.maps.rss);
    for (size_t i = 0; i < scope.maps.count; i++) {
        struct culet_mapping *mapping = &scope.maps.all[i];
        /* [vsyscall] is in no page table. */
        if (mapping->start < UINT64_C(1) << 63)
            culet_pages_runs(&scope.pages, mapping, known_states, NULL);
    }
    if (scope.pages.unseen || scope.pages.spent)
        culet_scope_problem(&scope, "Which pages of process %d are in memory was not found out for all of them: its mappings are "
                            "too long for this kernel. Linux 6.7 and later can tell.", (int)scope.target.process);
}

/* The walkers have used up what they may: see culet_pages_allow. */
static void tell_spent(void)
{
    if (scope.pages.spent)
        culet_scope_problem(&scope, "The heap of process %d takes more work to read than its size explains: it is damaged, or "
                            "made so. The reading was given up, and what is missing is told by pages.", (int)scope.target.process);
}

static void read_process(bool found[WALKERS])
{
    uint64_t resident = resident_bytes();
    bool small = (resident < SMALL_BYTES && scope.mappings < SMALL_LIST) || scope.target.mode == CULET_STOPPED;

    culet_pages_allow(&scope.pages, resident);
    if (!small)
        read_maps();
    culet_scope_pause(&scope);
    if (small)
        read_maps();
    for (size_t i = 0; i < WALKERS; i++) {
        culet_scope_breathe(&scope);
        found[i] = (scope.readable || walkers[i]->unread) && walkers[i]->recognise(&scope);
    }
    culet_scope_resume(&scope);
    for (size_t i = 0; i < WALKERS; i++)
        if (found[i])
            walkers[i]->walk(&scope);
    culet_scope_resume(&scope);
    tell_spent();
    read_pages();
    culet_target_release(&scope.target);
    pid_t by = scope.target.pid;
    culet_target_check(&scope.target);
    if (by != scope.target.pid && scope.target.mode == CULET_LIVE)
        culet_scope_problem(&scope, "The thread by which process %d was read ended meanwhile, so figures may be missing: ask "
                            "again, or without --live.", (int)scope.target.process);
    if (*scope.target.why_live)
        culet_scope_problem(&scope, "%s", scope.target.why_live);
}

static void tell_process(void)
{
    static const char *const modes[] = {[CULET_SLICED] = "sliced", [CULET_STOPPED] = "stopped", [CULET_LIVE] = "live"};
    struct culet_json json;
    struct timespec now;
    char name[64], text[64] = "", title[256];

    snprintf(name, sizeof name, "/proc/%d/comm", (int)scope.target.process);
    FILE *file = fopen(name, "re");
    if (file && !fgets(text, sizeof text, file))
        *text = 0;
    if (file)
        fclose(file);
    text[strcspn(text, "\n")] = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    culet_json_begin(&json, "process");
    culet_json_number(&json, "pid", (uint64_t)scope.target.process);
    culet_json_text(&json, "name", text);
    culet_title_read(scope.target.pid, title, sizeof title);
    if (*title)
        culet_json_text(&json, "title", title);
    culet_json_text(&json, "program", scope.program);
    culet_json_number(&json, "page_bytes", scope.page_bytes);
    culet_json_number(&json, "bits", scope.bits);
    culet_json_text(&json, "mode", modes[scope.target.enough ? CULET_SLICED : scope.target.mode]);
    culet_json_number(&json, "threads", culet_target_threads(&scope.target));
    culet_json_float(&json, "time", (double)now.tv_sec + (double)now.tv_nsec / 1e9);
    culet_json_number(&json, "rss_bytes", scope.maps.rss);
    culet_json_number(&json, "pss_bytes", scope.maps.pss);
    culet_json_number(&json, "shared_bytes", scope.maps.shared);
    culet_json_number(&json, "private_dirty_bytes", scope.maps.private_dirty);
    culet_json_number(&json, "swap_bytes", scope.maps.swap);
    culet_json_end(&json);
}

static void tell_mapping(const struct culet_mapping *mapping)
{
    struct culet_json json;
    struct culet_buffer record = {0};

    culet_json_begin(&json, "mapping");
    culet_json_number(&json, "id", mapping->id);
    culet_json_number(&json, "start", mapping->start);
    culet_json_number(&json, "end", mapping->end);
    culet_json_text(&json, "perms", mapping->perms);
    culet_json_number(&json, "offset", mapping->offset);
    culet_json_number(&json, "inode", mapping->inode);
    culet_json_text(&json, "path", mapping->path);
    culet_json_number(&json, "rss_bytes", mapping->rss);
    culet_json_number(&json, "pss_bytes", mapping->pss);
    culet_json_number(&json, "shared_clean_bytes", mapping->shared_clean);
    culet_json_number(&json, "shared_dirty_bytes", mapping->shared_dirty);
    culet_json_number(&json, "private_clean_bytes", mapping->private_clean);
    culet_json_number(&json, "private_dirty_bytes", mapping->private_dirty);
    culet_json_number(&json, "swap_bytes", mapping->swap);
    culet_json_text(&json, "use", mapping->use ? mapping->use : "other");
    culet_json_text(&json, "label", mapping->label ? mapping->label : "");
    culet_json_end(&json);
    culet_buffer_varint(&record, mapping->id);
    if (mapping->pages.length)
        culet_buffer_add(&record, mapping->pages.bytes, mapping->pages.length);
    else {
        culet_buffer_varint(&record, (mapping->end - mapping->start) / scope.page_bytes);
        culet_buffer_byte(&record, 0);
    }
    culet_stream_record('P', record.bytes, record.length);
    culet_buffer_free(&record);
}

static void tell_place(const struct culet_place *place)
{
    const struct culet_mapping *mapping = culet_maps_at(&scope.maps, place->start);
    struct culet_json json;

    culet_json_begin(&json, "region");
    culet_json_number(&json, "id", place->id);
    if (place->arena == CULET_NO_ARENA)
        culet_json_raw(&json, "arena", "null");
    else
        culet_json_number(&json, "arena", place->arena);
    culet_json_text(&json, "holds", place->kind);
    culet_json_number(&json, "start", place->start);
    culet_json_number(&json, "end", place->end);
    if (mapping)
        culet_json_number(&json, "mapping", mapping->id);
    else
        culet_json_raw(&json, "mapping", "null");
    culet_json_end(&json);
    culet_place_tell(&scope.places, place);
}

/* No walker knows the allocator. */
static void tell_unknown(void)
{
    struct culet_json json;

    culet_json_begin(&json, "allocator");
    culet_json_text(&json, "name", scope.readable ? "none" : "unknown");
    culet_json_text(&json, "library", "");
    culet_json_text(&json, "level", "pages");
    culet_json_text(&json, "why", !scope.readable ? "the memory of the process cannot be read as that of a 64-bit program"
                                                  : "no heap of an allocator that is known here was found");
    culet_json_end(&json);
}

static void tell(const bool found[WALKERS])
{
    culet_stream_open();
    tell_process();
    for (size_t i = 0; i < scope.maps.count; i++)
        tell_mapping(&scope.maps.all[i]);
    for (size_t i = 0; i < scope.places.count; i++)
        tell_place(scope.places.all[i]);
    for (size_t i = 0; i < WALKERS; i++)
        if (found[i])
            walkers[i]->tell(&scope);
    if (!scope.served)
        tell_unknown();
    culet_pauses_tell(&scope.target.pauses);
    for (size_t at = 0; at < scope.problems.length; at += strlen((char *)scope.problems.bytes + at) + 1)
        culet_stream_problem("%s", (char *)scope.problems.bytes + at);
    culet_stream_close();
}

int main(int argc, char **argv)
{
    struct culet_options options = culet_options_read(argc, argv);
    bool found[WALKERS] = {false};

    scope.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    scope.places.shift = (unsigned)__builtin_ctzl(scope.page_bytes);
    scope.places.max_chunks = options.max_chunks;
    culet_notes_to(options.notes);
    culet_target_open(&scope.target, options.pid, options.mode, options.slice_ns);
    read_program();
    find_access();
    read_process(found);
    tell(found);
    return 0;
}
