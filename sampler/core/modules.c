#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "modules.h"

#include "memory.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>

/* ---- headers, which are at the start of a module's mapping ---- */

static bool read_file_header(uintptr_t start, ElfW(Ehdr) * file, struct culet_readable *readable)
{
    return culet_readable_copy(readable, file, start, sizeof *file) && memcmp(file->e_ident, ELFMAG, SELFMAG) == 0 &&
           file->e_phentsize == sizeof(ElfW(Phdr));
}

static bool read_segment(uintptr_t start, const ElfW(Ehdr) * file, unsigned number, ElfW(Phdr) * head,
                         struct culet_readable *readable)
{
    return culet_readable_copy(readable, head, start + file->e_phoff + number * sizeof *head, sizeof *head);
}

/* Of a segment of notes. */
static size_t find_build_id(uintptr_t at, uintptr_t end, uintptr_t *id, struct culet_readable *readable)
{
    ElfW(Nhdr) note;
    char name[4];

    while (end - at >= sizeof note + sizeof name && culet_readable_copy(readable, &note, at, sizeof note)) {
        uint64_t content = sizeof note + (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3));
        uint64_t bytes = content + (((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
        if (bytes > end - at)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof name && note.n_descsz &&
            culet_readable_copy(readable, name, at + sizeof note, sizeof name) && !memcmp(name, "GNU", sizeof name)) {
            *id = at + content;
            return note.n_descsz;
        }
        at += bytes;
    }
    return 0;
}

size_t culet_module_build_id(const struct culet_module *module, uintptr_t *id, struct culet_readable *readable)
{
    uintptr_t base = 0;
    bool based = false;
    ElfW(Ehdr) file;
    ElfW(Phdr) head;

    if (!read_file_header(module->start, &file, readable))
        return 0;
    for (unsigned i = 0; i < file.e_phnum && read_segment(module->start, &file, i, &head, readable); i++) {
        /* The segments are sorted; the first one begins with this header. */
        if (head.p_type == PT_LOAD && !based) {
            base = module->start - head.p_vaddr;
            based = true;
        }
        uintptr_t at = base + head.p_vaddr;
        if (head.p_type != PT_NOTE || !based || at < module->start || at >= module->end ||
            head.p_filesz > module->end - at)
            continue;
        size_t length = find_build_id(at, at + head.p_filesz, id, readable);
        if (length)
            return length;
    }
    return 0;
}

/* ---- which module contains an address ---- */

/* <dlfcn.h> defines the former where _dl_find_object is declared; the latter is for tests of the other way. */
#if defined(DLFO_STRUCT_HAS_EH_DBASE) && !defined(CULET_MODULES_BY_LIST)

bool culet_module_find(uintptr_t address, struct culet_module *module, struct culet_readable *readable)
{
    struct dl_find_object found;

    (void)readable;
    if (_dl_find_object((void *)address, &found) != 0)
        return false;
    *module = (struct culet_module){(uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end,
                                    (uintptr_t)found.dlfo_eh_frame};
    return true;
}

void culet_modules_refresh(void)
{
}

#else

#define MODULES 1024

/* Sorted by address. A table is never freed: a thread may be looking at it. */
struct modules {
    size_t count;
    struct culet_module module[MODULES];
};

static _Atomic(struct modules *) current;
static unsigned long long read_loads, read_unloads;

static void insert(struct modules *modules, struct culet_module module)
{
    size_t at = modules->count;

    if (at == MODULES || module.end <= module.start)
        return;
    for (; at > 0 && modules->module[at - 1].start > module.start; at--)
        modules->module[at] = modules->module[at - 1];
    modules->module[at] = module;
    modules->count++;
}

static void add_segment(struct culet_module *module, uintptr_t base, const ElfW(Phdr) * head)
{
    uintptr_t start = base + head->p_vaddr;

    if (head->p_type == PT_GNU_EH_FRAME)
        module->table = start;
    if (head->p_type != PT_LOAD)
        return;
    module->start = start < module->start ? start : module->start;
    module->end = start + head->p_memsz > module->end ? start + head->p_memsz : module->end;
}

static int add(struct dl_phdr_info *info, size_t size, void *data)
{
    struct culet_module module = {.start = UINTPTR_MAX};

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        add_segment(&module, info->dlpi_addr, &info->dlpi_phdr[i]);
    insert(data, module);
    return 0;
}

static int changed(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(bool *)data = info->dlpi_adds != read_loads || info->dlpi_subs != read_unloads;
    read_loads = info->dlpi_adds;
    read_unloads = info->dlpi_subs;
    return 1;
}

void culet_modules_refresh(void)
{
    bool anew = false;

    dl_iterate_phdr(changed, &anew);
    struct modules *modules = anew || !atomic_load(&current) ? culet_profile_map(sizeof *modules) : NULL;
    if (!modules)
        return;
    dl_iterate_phdr(add, modules);
    atomic_store_explicit(&current, modules, memory_order_release);
}

static bool read_headers(uintptr_t start, struct culet_module *module, struct culet_readable *readable)
{
    ElfW(Ehdr) file;
    ElfW(Phdr) head;

    *module = (struct culet_module){.start = UINTPTR_MAX};
    if (!read_file_header(start, &file, readable))
        return false;
    for (unsigned i = 0; i < file.e_phnum; i++) {
        if (!read_segment(start, &file, i, &head, readable))
            return false;
        add_segment(module, 0, &head);
    }
    uintptr_t base = start - module->start;
    module->start += base;
    module->end += base;
    module->table += module->table ? base : 0;
    return true;
}

/* What the loader reports to debuggers: glibc exports it, musl its address. */
extern struct r_debug _r_debug __attribute__((weak));
extern struct r_debug *_dl_debug_addr __attribute__((weak));

static uintptr_t first_in_list(void)
{
    if (&_r_debug)
        return (uintptr_t)_r_debug.r_map;
    return &_dl_debug_addr ? (uintptr_t)_dl_debug_addr->r_map : 0;
}

/* In the loader's list, which another thread may be changing: its parts are read only where memory can be read. */
static bool find_in_list(uintptr_t address, struct culet_module *module, struct culet_readable *readable)
{
    uintptr_t at = first_in_list();
    struct link_map map;

    for (unsigned i = 0; at && i < 4 * MODULES; i++, at = (uintptr_t)map.l_next) {
        if (!culet_readable_copy(readable, &map, at, sizeof map))
            return false;
        if (map.l_addr && map.l_addr <= address && read_headers(map.l_addr, module, readable) &&
            address >= module->start && address < module->end)
            return true;
    }
    return false;
}

/* A library may have taken the place of one in the table. */
static bool is_there(const struct culet_module *module, struct culet_readable *readable)
{
    struct culet_module now;

    return !read_headers(module->start, &now, readable) || memcmp(&now, module, sizeof now) == 0;
}

bool culet_module_find(uintptr_t address, struct culet_module *module, struct culet_readable *readable)
{
    const struct modules *modules = atomic_load_explicit(&current, memory_order_acquire);
    size_t low = 0, high = modules ? modules->count : 0;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (modules->module[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!modules || low == modules->count || address < modules->module[low].start)
        return find_in_list(address, module, readable);
    *module = modules->module[low];
    return is_there(module, readable) || find_in_list(address, module, readable);
}

#endif
