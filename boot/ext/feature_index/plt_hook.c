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
#else /* not known: no entry has it */
#define JUMP_SLOT UINT32_MAX
#define DATA_SLOT UINT32_MAX
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

/* The value of an entry in an object's dynamic section; 0: it has none. */
static uintptr_t dynamic_value(const struct object *object, intptr_t tag)
{
    const ElfW(Dyn) *entry = object->dynamic;

    while (entry->d_tag != DT_NULL && entry->d_tag != tag)
        entry++;
    return entry->d_tag == DT_NULL ? 0 : entry->d_un.d_ptr;
}

/* An address in it, which glibc has relocated, and musl has not; NULL: there is none. */
static const void *dynamic_address(const struct object *object, intptr_t tag)
{
    uintptr_t value = dynamic_value(object, tag);

    return (const void *)(value != 0 && value < object->base ? object->base + value : value);
}

/* Changes the entries in a table of relocations. Returns how many. */
static int hook_table(const struct object *object, intptr_t table_tag, intptr_t bytes_tag, const char *name,
                      uintptr_t original, uintptr_t replacement)
{
    const ElfW(Sym) *symbols = dynamic_address(object, DT_SYMTAB);
    const char *names = dynamic_address(object, DT_STRTAB);
    const ElfW(Rela) *relocation = dynamic_address(object, table_tag), *end;
    int changed = 0;

    if (symbols == NULL || names == NULL || relocation == NULL)
        return 0;
    end = relocation + dynamic_value(object, bytes_tag) / sizeof(*relocation);
    for (; relocation < end; relocation++) {
        uintptr_t *entry = (uintptr_t *)(object->base + relocation->r_offset);
        uintptr_t value;

        if (ELF64_R_TYPE(relocation->r_info) != JUMP_SLOT && ELF64_R_TYPE(relocation->r_info) != DATA_SLOT)
            continue;
        if (strcmp(names + symbols[ELF64_R_SYM(relocation->r_info)].st_name, name) != 0)
            continue;
        value = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
        if (value != original && !(value >= object->first && value < object->last))
            continue;
        changed += write_entry(object, entry, replacement);
    }
    return changed;
}

int culet_plt_hook(const void *inside, const char *name, culet_function *original, culet_function *replacement)
{
    struct object object = {.inside = (uintptr_t)inside};
    uintptr_t kind;

    if (!dl_iterate_phdr(find_object, &object) || object.dynamic == NULL)
        return 0;
    kind = dynamic_value(&object, DT_PLTREL);
    if (kind != 0 && kind != DT_RELA)
        return 0;
    return hook_table(&object, DT_JMPREL, DT_PLTRELSZ, name, address(original), address(replacement)) +
           hook_table(&object, DT_RELA, DT_RELASZ, name, address(original), address(replacement));
}
