#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "modules.h"

#include "memory.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>

/* <dlfcn.h> defines it where _dl_find_object is declared. */
#ifdef DLFO_STRUCT_HAS_EH_DBASE

bool culet_module_find(uintptr_t address, struct culet_module *module)
{
    struct dl_find_object found;

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

static int add(struct dl_phdr_info *info, size_t size, void *data)
{
    struct culet_module module = {.start = UINTPTR_MAX};

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *head = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + head->p_vaddr;
        if (head->p_type == PT_GNU_EH_FRAME)
            module.table = start;
        if (head->p_type != PT_LOAD)
            continue;
        module.start = start < module.start ? start : module.start;
        module.end = start + head->p_memsz > module.end ? start + head->p_memsz : module.end;
    }
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

bool culet_module_find(uintptr_t address, struct culet_module *module)
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
        return false;
    *module = modules->module[low];
    return true;
}

#endif
