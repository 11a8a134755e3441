/* main.c - one reading: open the process, run the walkers, release the process, write the records. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/message.h"
#include "options.h"
#include "output/stream.h"
#include "process/access.h"
#include "process/proc.h"
#include "records.h"
#include "walker.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* In this order: the first that finds its heap serves malloc; the last names the mappings that are still unnamed. */
static const struct culet_walker *const walkers[] = {
    &culet_culet_walker, &culet_foreign_allocators_walker,
    &culet_musl_walker,  &culet_glibc_walker,
    &culet_ruby_walker,  &culet_mapping_walker,
};
#define WALKERS (sizeof walkers / sizeof *walkers)

/* The kernel reports sizes of mappings (smaps) at about 10 GB of resident memory per second. Those of a smaller
 * process than this are read in the first pause; of others while the process runs. */
#define SMALL_BYTES (UINT64_C(64) << 20)
/* Reading so many mappings takes a tenth of a pause. */
#define SMALL_LIST 1000u

/* ---- opening ---- */

static uint64_t resident_bytes(const struct culet_reading *reading)
{
    long kilobytes = 0;

    culet_proc_number(culet_proc_path("/proc/%d/status", (int)reading->target.pid).text, "VmRSS", &kilobytes);
    return (uint64_t)kilobytes * 1024;
}

static void read_program(struct culet_reading *reading)
{
    const struct culet_proc_path path = culet_proc_path("/proc/%d/exe", (int)reading->target.pid);
    unsigned char head[EI_NIDENT] = {0};
    ssize_t length = readlink(path.text, reading->program, sizeof reading->program - 1);
    int file = open(path.text, O_RDONLY | O_CLOEXEC);

    reading->bits = 64;
    reading->program[length > 0 ? length : 0] = 0;
    if (file < 0)
        return;
    if (read(file, head, sizeof head) == sizeof head && head[EI_CLASS] == ELFCLASS32)
        reading->bits = 32;
    close(file);
}

/* A file of the process cannot be read. Returns if another try may help, because the thread used for reading has ended;
 * else ends the program with a message. */
static void fail_or_retry(struct culet_reading *reading, int error, unsigned tries)
{
    char why[512];

    culet_target_check(&reading->target);
    if ((error == ESRCH || error == ENOENT) && tries < CULET_TARGET_WAIT_MS) {
        culet_sleep_ns(1000000);
        return;
    }
    culet_access_explain(reading->target.process, error, why, sizeof why);
    culet_fail("%s", why);
}

/* Finds out what may be read: nothing (ends the program with a message), the page tables, or the memory too. */
static void find_access(struct culet_reading *reading)
{
    struct culet_target *target = &reading->target;
    unsigned shift = (unsigned)__builtin_ctzl(reading->page_bytes);
    char why[512];
    struct culet_maps maps;

    for (unsigned tries = 0; !culet_maps_read(&maps, target->pid, false); tries++)
        fail_or_retry(reading, errno, tries);
    for (unsigned tries = 0; !culet_pages_open(&reading->pages, target->pid, shift); tries++)
        fail_or_retry(reading, errno, tries);
    reading->mapping_count = maps.count;
    culet_memory_open(&reading->memory, target->pid, &reading->pages, reading->page_bytes);
    int error = culet_memory_try(&reading->memory, &maps);
    reading->readable = !error;
    if (error) {
        culet_access_explain(target->process, error, why, sizeof why);
        culet_reading_problem(reading, "Only pages can be reported, not blocks: %s.", why);
        target->mode = CULET_LIVE;
    } else if (reading->bits == 32) {
        culet_reading_problem(reading, "Only pages can be reported, not blocks: process %d is a 32-bit program.",
                              (int)target->process);
        reading->readable = false;
    }
    culet_maps_free(&maps);
}

static void read_maps(struct culet_reading *reading)
{
    for (unsigned tries = 0; !culet_maps_read(&reading->maps, reading->target.pid, true); tries++)
        fail_or_retry(reading, errno, tries);
    reading->pages.maps = &reading->maps;
}

/* ---- walking ---- */

static void walk(struct culet_reading *reading, void *contexts[WALKERS])
{
    for (size_t i = 0; i < WALKERS; i++) {
        culet_reading_yield(reading);
        contexts[i] = culet_new(1, walkers[i]->context_bytes);
        if ((reading->readable || walkers[i]->without_memory) && walkers[i]->recognize(reading, contexts[i]))
            continue;
        free(contexts[i]);
        contexts[i] = NULL;
    }
    culet_reading_resume(reading);
    for (size_t i = 0; i < WALKERS; i++) {
        uint64_t began = culet_now();
        if (contexts[i] && walkers[i]->walk)
            walkers[i]->walk(reading, contexts[i]);
        if (walkers[i]->name == reading->active_malloc)
            reading->malloc_walk_ns = culet_now() - began;
    }
    culet_reading_resume(reading);
    if (reading->pages.exhausted)
        culet_reading_problem(reading,
                              "Reading the heap of process %d takes more work than its size explains: the heap is "
                              "damaged, or was made so. The reading was given up; the rest is reported by pages.",
                              (int)reading->target.process);
}

/* Adds the states of the pages from number `page` on, as far as the region has kept them from the pauses. Returns how
 * many. */
static uint64_t add_kept(struct culet_runs *runs, const struct culet_region *region, uint64_t page, uint64_t most)
{
    struct culet_page_run run = culet_region_page_run(region, page - (region->start >> region->shift));
    uint64_t count = run.count < most ? run.count : most;

    for (uint64_t i = 0; i < count && run.states; i++)
        culet_runs_add(runs, run.states[i], 1);
    if (!run.states)
        culet_runs_add(runs, 0, count);
    return count;
}

/* Adds the present states of pages from number `page` on. Returns how many. */
static uint64_t add_present(struct culet_runs *runs, struct culet_pages *pages, uint64_t page, uint64_t most)
{
    uint8_t states[CULET_PAGES_WINDOW];
    uint64_t next = most > CULET_PAGES_WINDOW ? culet_pages_next(pages, page, page + most) : page;

    if (next > page) {
        culet_runs_add(runs, 0, next - page);
        return next - page;
    }
    if (most > CULET_PAGES_WINDOW)
        most = CULET_PAGES_WINDOW;
    culet_pages_copy(pages, page, (size_t)most, states);
    for (size_t i = 0; i < most; i++)
        culet_runs_add(runs, states[i], 1);
    return most;
}

static void read_pages_of(struct culet_reading *reading, struct culet_mapping *mapping)
{
    unsigned shift = reading->pages.shift;
    uint64_t page = mapping->start >> shift, end = mapping->end >> shift;
    struct culet_runs runs = {.to = &mapping->pages};

    while (page < end) {
        const struct culet_region *region = culet_regions_next(&reading->regions, page << shift);
        uint64_t first = region ? region->start >> shift : UINT64_MAX, most = end - page;
        if (first <= page)
            page += add_kept(&runs, region, page, most);
        else
            page += add_present(&runs, &reading->pages, page, first - page < most ? first - page : most);
    }
    culet_runs_end(&runs);
}

static void read_pages(struct culet_reading *reading)
{
    culet_pages_forget(&reading->pages);
    culet_pages_set_budget(&reading->pages, reading->maps.rss);
    for (size_t i = 0; i < reading->maps.count; i++) {
        /* [vsyscall] is in no page table. */
        if (reading->maps.all[i].start < UINT64_C(1) << 63)
            read_pages_of(reading, &reading->maps.all[i]);
    }
    if (reading->pages.incomplete || reading->pages.exhausted)
        culet_reading_problem(reading,
                              "The state of some pages of process %d is unknown: its mappings are too long for this "
                              "kernel. Linux 6.7 and later can read them.",
                              (int)reading->target.process);
}

static void release(struct culet_reading *reading)
{
    struct culet_target *target = &reading->target;
    pid_t pid = target->pid;

    culet_target_release(target);
    culet_target_check(target);
    if (pid != target->pid && target->mode == CULET_LIVE)
        culet_reading_problem(reading,
                              "The thread used to read process %d ended meanwhile, so figures may be "
                              "missing: try again, or without --live.",
                              (int)target->process);
    if (*target->why_live)
        culet_reading_problem(reading, "%s", target->why_live);
}

static void read_process(struct culet_reading *reading, void *contexts[WALKERS])
{
    uint64_t resident = resident_bytes(reading);
    bool small =
        (resident < SMALL_BYTES && reading->mapping_count < SMALL_LIST) || reading->target.mode == CULET_STOPPED;

    culet_pages_set_budget(&reading->pages, resident);
    if (!small)
        read_maps(reading);
    culet_reading_pause(reading);
    if (small)
        read_maps(reading);
    walk(reading, contexts);
    read_pages(reading);
    release(reading);
}

/* ---- writing ---- */

static void write_stream(struct culet_reading *reading, void *contexts[WALKERS])
{
    culet_stream_open();
    culet_records_write_process(reading);
    for (size_t i = 0; i < WALKERS; i++)
        if (contexts[i] && walkers[i]->write)
            walkers[i]->write(reading, contexts[i]);
    culet_records_write_end(reading);
    culet_stream_close();
}

int main(int argc, char **argv)
{
    static struct culet_reading reading;
    struct culet_options options = culet_options_read(argc, argv);
    void *contexts[WALKERS];

    reading.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    reading.regions.shift = (unsigned)__builtin_ctzl(reading.page_bytes);
    reading.regions.max_blocks = options.max_chunks;
    culet_note_to(options.notes);
    culet_target_open(&reading.target, options.pid, options.mode, options.slice_ns);
    read_program(&reading);
    find_access(&reading);
    read_process(&reading, contexts);
    write_stream(&reading, contexts);
    return 0;
}
