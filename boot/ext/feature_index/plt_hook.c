#include "feature_index/plt_hook.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define DATA_SLOT R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define DATA_SLOT R_AARCH64_GLOB_DAT
#endif

struct object {
    uintptr_t inside;
    uintptr_t base;
    uintptr_t first, last;      /* address range */
    uintptr_t relro, relro_end; /* range that the dynamic linker made read-only (RELRO) */
    const ElfW(Dyn) * dynamic;
};

static int find_object(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct object *object = argument;
    struct object found = {.inside = object->inside, .base = info->dlpi_addr, .first = UINTPTR_MAX};
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    int here = 0, i;

    (void)size;
    for (i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;

        if (part->p_type == PT_LOAD) {
            if (found.inside >= start && found.inside < end)
                here = 1;
            if (start < found.first)
                found.first = start;
            if (end > found.last)
                found.last = end;
        } else if (part->p_type == PT_DYNAMIC) {
            found.dynamic = (const void *)start;
        } else if (part->p_type == PT_GNU_RELRO) {
            found.relro = start & ~(page - 1);
            found.relro_end = end & ~(page - 1); /* glibc leaves a partial last page writable */
        }
    }
    if (here)
        *object = found;
    return here;
}

static int write_entry(const struct object *object, uintptr_t *entry, uintptr_t value)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)entry & ~(page - 1);
    int relro = at >= object->relro && at < object->relro_end;

    if (relro && mprotect((void *)at, page, PROT_READ | PROT_WRITE) != 0)
        return 0;
    __atomic_store_n(entry, value, __ATOMIC_RELEASE);
    if (relro)
        mprotect((void *)at, page, PROT_READ);
    return 1;
}

static uintptr_t address(culet_function *function)
{
    uintptr_t value;

    memcpy(&value, &function, sizeof(value)); /* POSIX: function and object pointers have the same size */
    return value;
}

int culet_plt_hook(const void *inside, const char *name, culet_function *original, culet_function *replacement)
{
#ifdef JUMP_SLOT
    struct object object = {.inside = (uintptr_t)inside};
    const ElfW(Rela) * tables[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    const ElfW(Dyn) * dynamic_entry;
    int changed = 0, addend = 1, i;

    if (!dl_iterate_phdr(find_object, &object) || object.dynamic == NULL)
        return 0;
    for (dynamic_entry = object.dynamic; dynamic_entry->d_tag != DT_NULL; dynamic_entry++) {
        switch (dynamic_entry->d_tag) {
        case DT_SYMTAB:
            symbols = (const void *)dynamic_entry->d_un.d_ptr;
            break;
        case DT_STRTAB:
            names = (const void *)dynamic_entry->d_un.d_ptr;
            break;
        case DT_JMPREL:
            tables[0] = (const void *)dynamic_entry->d_un.d_ptr;
            break;
        case DT_PLTRELSZ:
            bytes[0] = dynamic_entry->d_un.d_val;
            break;
        case DT_PLTREL:
            addend = dynamic_entry->d_un.d_val == DT_RELA;
            break;
        case DT_RELA:
            tables[1] = (const void *)dynamic_entry->d_un.d_ptr;
            break;
        case DT_RELASZ:
            bytes[1] = dynamic_entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    if (symbols == NULL || names == NULL || !addend)
        return 0;

    for (i = 0; i < 2; i++) {
        const ElfW(Rela) *relocation = tables[i],
                         *end = relocation == NULL ? NULL : relocation + bytes[i] / sizeof(*relocation);

        for (; relocation < end; relocation++) {
            uintptr_t *entry = (uintptr_t *)(object.base + relocation->r_offset);
            uintptr_t value;

            if (ELF64_R_TYPE(relocation->r_info) != JUMP_SLOT && ELF64_R_TYPE(relocation->r_info) != DATA_SLOT)
                continue;
            if (strcmp(names + symbols[ELF64_R_SYM(relocation->r_info)].st_name, name) != 0)
                continue;
            value = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
            if (value != address(original) && !(value >= object.first && value < object.last))
                continue;
            changed += write_entry(&object, entry, address(replacement));
        }
    }
    return changed;
#else
    (void)inside, (void)name, (void)original, (void)replacement;
    return 0;
#endif
}
