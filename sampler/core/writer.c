#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "writer.h"

#include "clock.h"
#include "escape.h"
#include "growth.h"
#include "memory.h"
#include "modules.h"
#include "residency.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct writer {
    culet_profile_output *output;
    void *data;
    uint64_t lines;
    bool failed;
    culet_profile_wanted *wanted; /* of modules; NULL: all */
    const void *wanted_data;
    size_t length;
    char text[8192];
};

static void flush(struct writer *w)
{
    if (!w->failed && w->length && !w->output(w->data, w->text, w->length))
        w->failed = true;
    w->length = 0;
}

static void put(struct writer *w, const char *text, size_t length)
{
    if (w->length + length > sizeof w->text)
        flush(w);
    if (length > sizeof w->text) {
        w->failed = w->failed || !w->output(w->data, text, length);
        return;
    }
    memcpy(w->text + w->length, text, length);
    w->length += length;
}

static void put_text(struct writer *w, const char *text)
{
    put(w, text, strlen(text));
}

static void put_number(struct writer *w, uint64_t number)
{
    char text[24];

    put(w, text, (size_t)snprintf(text, sizeof text, " %llu", (unsigned long long)number));
}

static void put_hex(struct writer *w, uint64_t number)
{
    char text[24];

    put(w, text, (size_t)snprintf(text, sizeof text, " %llx", (unsigned long long)number));
}

static void put_numbers(struct writer *w, const char *letter, size_t count, const uint64_t *numbers)
{
    put_text(w, letter);
    for (size_t i = 0; i < count; i++)
        put_number(w, numbers[i]);
}

/* Not by printf, which writes the decimal point of the program's locale. */
static void put_real(struct writer *w, double number)
{
    char text[48];
    unsigned exponent = 0;

    for (number = number > 0 ? number : 0; number >= 1e15; number /= 10)
        exponent++;
    uint64_t thousandths = (uint64_t)(number * 1000 + 0.5);
    put(w, text,
        (size_t)snprintf(text, sizeof text, " %llu.%03ue%u", (unsigned long long)(thousandths / 1000),
                         (unsigned)(thousandths % 1000), exponent));
}

static void end_line(struct writer *w)
{
    put(w, "\n", 1);
    w->lines++;
}

/* The start of a line: its letter and numbers. */
#define PUT(w, letter, ...)                                                                                            \
    put_numbers(w, letter, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

/* ---- modules ---- */

/* The build id of the module that contains an address, as hex digits; "-" if it has none. */
static void put_build_id(struct writer *w, uintptr_t address)
{
    struct culet_readable readable = {{0}};
    struct culet_module module;
    unsigned char bytes[64];
    char digits[3];
    uintptr_t id;
    size_t length = culet_module_find(address, &module, &readable) ? culet_module_build_id(&module, &id, &readable) : 0;

    if (!length || length > sizeof bytes || !culet_readable_copy(&readable, bytes, id, length)) {
        put_text(w, " -");
        return;
    }
    put_text(w, " ");
    for (size_t i = 0; i < length; i++) {
        snprintf(digits, sizeof digits, "%02x", bytes[i]);
        put_text(w, digits);
    }
}

/* The program's own name is empty in the loader's list. */
static const char *path_of(const struct dl_phdr_info *info, char *program, size_t size)
{
    if (info->dlpi_name && info->dlpi_name[0])
        return info->dlpi_name;
    ssize_t length = readlink("/proc/self/exe", program, size - 1);
    program[length > 0 ? length : 0] = '\0';
    return length > 0 ? program : "?";
}

static int write_module(struct dl_phdr_info *info, size_t size, void *data)
{
    struct writer *w = data;
    char program[4096], escaped[4 * sizeof program];

    (void)size;
    const char *path = path_of(info, program, sizeof program);
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *head = &info->dlpi_phdr[i];
        if (head->p_type != PT_LOAD || !(head->p_flags & PF_X))
            continue;
        uintptr_t start = info->dlpi_addr + head->p_vaddr;
        if (w->wanted && !w->wanted(w->wanted_data, start, start + head->p_memsz))
            continue;
        put_text(w, "M");
        put_hex(w, start);
        put_hex(w, start + head->p_memsz);
        put_hex(w, head->p_offset);
        put_build_id(w, start);
        put_text(w, " ");
        put(w, escaped, culet_profile_escape(escaped, sizeof escaped, path, strlen(path), 0));
        end_line(w);
    }
    return w->failed;
}

/* Text in a mapping. */
struct gathered {
    char *text;
    size_t length, room;
};

static bool gather(void *data, const char *text, size_t length)
{
    struct gathered *g = data;

    if (length > g->room - g->length) {
        size_t room = 2 * (g->length + length) + 65536;
        void *larger = g->text ? mremap(g->text, g->room, room, MREMAP_MAYMOVE) : culet_profile_map(room);
        if (!larger || larger == MAP_FAILED)
            return false;
        g->text = larger;
        g->room = room;
    }
    memcpy(g->text + g->length, text, length);
    g->length += length;
    return true;
}

/* The loader's lock is held while its list is read: the output is called afterwards. */
static void write_modules(struct writer *w)
{
    struct gathered gathered = {0};
    struct writer modules = {.output = gather, .data = &gathered, .wanted = w->wanted, .wanted_data = w->wanted_data};

    dl_iterate_phdr(write_module, &modules);
    flush(&modules);
    w->failed = w->failed || modules.failed;
    if (!w->failed)
        put(w, gathered.text, gathered.length);
    w->lines += modules.lines;
    culet_profile_unmap(gathered.text, gathered.room);
}

bool culet_profile_write_modules(culet_profile_wanted *wanted, const void *wanted_data, culet_profile_output *output,
                                 void *data, uint64_t *lines)
{
    struct writer w = {.output = output, .data = data, .wanted = wanted, .wanted_data = wanted_data};

    write_modules(&w);
    flush(&w);
    *lines += w.lines;
    return !w.failed;
}

/* ---- tables ---- */

static void write_stacks(struct writer *w, const struct culet_stacks *stacks)
{
    for (uint32_t i = 1; i < stacks->count; i++) {
        PUT(w, "K", i, stacks->node[i].parent);
        put_hex(w, stacks->node[i].word);
        end_line(w);
    }
}

static void write_sums(struct writer *w, const char *view, const struct culet_profile_sums *sums)
{
    if (!sums->samples)
        return;
    PUT(w, view, sums->samples);
    put_real(w, sums->blocks);
    put_real(w, sums->bytes);
    put_real(w, sums->variance);
}

/* Of each site, those sums that are made from the live samples, without their births. */
struct made {
    struct culet_profile_sums live, growth, inherited;
};

/* Estimated bytes of large blocks. */
struct large {
    bool known;
    double bytes, resident;
};

/* Sets the size of large blocks to what is resident of them. */
static void count_resident(struct culet_tables *t, struct large *large)
{
    struct culet_residency residency;

    culet_residency_open(&residency);
    large->known = residency.file >= 0;
    for (uint32_t i = 1; i < t->samples && large->known; i++) {
        struct culet_sample *sample = &t->sample[i];
        if (!culet_sample_is_live(sample) || !sample->block || sample->size < CULET_PROFILE_LARGE_BYTES)
            continue;
        large->bytes += sample->weight * (double)sample->size;
        large->known = culet_residency_count(&residency, sample->block, sample->size, &sample->size);
        large->resident += sample->weight * (double)sample->size;
    }
    culet_residency_close(&residency);
}

static void make_sums(const struct culet_tables *t, struct made *made)
{
    for (uint32_t i = 1; i < t->samples; i++) {
        const struct culet_sample *sample = &t->sample[i];
        if (!culet_sample_is_live(sample))
            continue;
        culet_sums_add(&made[sample->site].live, sample);
        if (culet_growth_has(t, sample))
            culet_sums_add(&made[sample->site].growth, sample);
        if (sample->phase < t->fork_phase)
            culet_sums_add(&made[sample->site].inherited, sample);
    }
}

static void write_births(struct writer *w, const struct culet_growth *growth, uint32_t site)
{
    char period[8];

    PUT(w, "W", site);
    for (unsigned i = 0; i < CULET_PERIODS; i++) {
        snprintf(period, sizeof period, " %u", i);
        write_sums(w, period, &growth->births[growth->place[site]][i]);
    }
    end_line(w);
}

/* Line N of the sites is that of site N, here and below. */
static void write_growth(struct writer *w, const struct culet_tables *t, const struct culet_growth *growth)
{
    for (uint32_t i = 1; i < t->sites && !w->failed; i++)
        if (growth->place[i])
            write_births(w, growth, i);
    for (uint32_t i = 1; i < t->sites && !w->failed; i++) {
        struct culet_profile_sums dropped = culet_site_dropped(t, &t->site[i]);
        if (!growth->born[i].samples && !dropped.samples)
            continue;
        PUT(w, "D", i);
        write_sums(w, " +", &growth->born[i]);
        write_sums(w, " -", &dropped);
        end_line(w);
    }
}

static void write_shared(struct writer *w, const struct culet_tables *t)
{
    for (uint32_t i = 1; i < t->samples && !w->failed; i++) {
        const struct culet_sample *sample = &t->sample[i];
        bool inherited = sample->phase < t->fork_phase;
        if (!culet_sample_is_live(sample) || !(inherited || t->forked))
            continue;
        PUT(w, "I", sample->site, sample->id, inherited);
        put_real(w, sample->weight);
        put_number(w, sample->size);
        end_line(w);
    }
}

static void write_site(struct writer *w, const struct culet_tables *t, const struct culet_site *site,
                       const struct made *made)
{
    struct culet_profile_sums allocated = culet_site_allocated(t, site);

    PUT(w, site->kind == CULET_PROFILE_OBJECT ? "S o" : "S m", site->stack, site->label, site->type);
    write_sums(w, " a", &allocated);
    write_sums(w, " l", &made->live);
    write_sums(w, " p", site->peak_number == t->peak_number ? &site->peak : &site->live);
    write_sums(w, " g", &made->growth);
    write_sums(w, " i", &made->inherited);
    end_line(w);
}

static void write_process(struct writer *w, const struct culet_tables *t)
{
    PUT(w, "P", (uint64_t)getpid(), t->sample_bytes, t->started_ns, culet_profile_clock(CLOCK_REALTIME), t->epoch,
        t->generation, t->no_site + t->no_sample);
    end_line(w);
    PUT(w, "A", t->added, t->freed, t->no_site, t->no_sample);
    put_numbers(w, "", CULET_SKIPS, t->skipped);
    end_line(w);
    PUT(w, "R", t->resident, t->peak_resident);
    end_line(w);
}

static uint64_t whole(double number)
{
    return number < 0x1p62 ? (uint64_t)number : UINT64_C(1) << 62;
}

static void write_views(struct writer *w, const struct culet_tables *t, const struct culet_growth *growth,
                        const struct large *large)
{
    uint64_t bytes = whole(large->bytes), resident = whole(large->resident);

    PUT(w, "G", t->base_ns, growth->survival_ns - growth->base_ns, t->base_resident, t->taken_resident);
    end_line(w);
    if (!large->known)
        return;
    PUT(w, "U", bytes, resident);
    end_line(w);
}

static void write_all(struct writer *w, const struct culet_tables *t, const struct made *made,
                      const struct culet_growth *growth, const struct large *large)
{
    write_process(w, t);
    write_views(w, t, growth, large);
    write_modules(w);
    write_stacks(w, &t->stacks);
    for (uint32_t i = 1; i < t->sites && !w->failed; i++)
        write_site(w, t, &t->site[i], &made[i]);
    write_growth(w, t, growth);
    write_shared(w, t);
    flush(w);
}

bool culet_profile_write(struct culet_tables *t, culet_profile_output *output, void *data, uint64_t *lines)
{
    struct large large = {0};
    struct culet_growth growth;
    struct writer w = {.output = output, .data = data};
    size_t bytes = t->sites * sizeof(struct made);
    struct made *made = culet_profile_map(bytes);

    count_resident(t, &large);
    if (!made || !culet_growth_create(&growth, t)) {
        culet_profile_unmap(made, bytes);
        return false;
    }
    make_sums(t, made);
    write_all(&w, t, made, &growth, &large);
    culet_growth_destroy(&growth);
    culet_profile_unmap(made, bytes);
    *lines += w.lines;
    return !w.failed;
}
