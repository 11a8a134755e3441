#define _GNU_SOURCE
#include "loader.h"

#include <link.h>

/* The loader's report to debuggers. */
extern struct r_debug _r_debug __attribute__((weak));

static bool within_loader(uintptr_t address)
{
    uintptr_t base = _r_debug.r_ldbase;
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)base;

    if (!base)
        return false;
    const ElfW(Phdr) *part = (const ElfW(Phdr) *)(base + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (part[i].p_type == PT_LOAD && address - (base + part[i].p_vaddr) < part[i].p_memsz)
            return true;
    return false;
}

/* The state covers the mapping of libraries, whatever code allocates meanwhile. From then until the table is complete
 * the loader's own code allocates. */
bool culet_loader_busy(const void *caller)
{
    return &_r_debug && (_r_debug.r_state != RT_CONSISTENT || within_loader((uintptr_t)caller));
}
