#define _GNU_SOURCE
#include "elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file may be damaged: each part is checked before it is looked at. */
static const void *part(const struct culet_elf *elf, uint64_t at, uint64_t bytes)
{
    return at <= elf->length && bytes <= elf->length - at ? elf->bytes + at : NULL;
}

static bool is_ours(const struct culet_elf *elf)
{
    const Elf64_Ehdr *head = part(elf, 0, sizeof *head);

    return head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
           head->e_ident[EI_DATA] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) &&
           head->e_shentsize == sizeof(Elf64_Shdr) && head->e_phentsize == sizeof(Elf64_Phdr);
}

/* Maps the file if it has that inode: another file of the name may be there by now. */
static bool map_file(struct culet_elf *elf, const char *path, uint64_t inode)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    *elf = (struct culet_elf){0};
    if (file < 0)
        return false;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode && status.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes != MAP_FAILED)
            *elf = (struct culet_elf){.bytes = bytes, .length = (size_t)status.st_size};
    }
    close(file);
    return elf->bytes;
}

/* By the mapping itself, which needs privileges and is right even where the file was deleted; by its name under the
 * process's root; by its name under ours. */
bool culet_elf_open(struct culet_elf *elf, pid_t pid, const struct culet_mapping *mapping)
{
    char path[4200];

    snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", (int)pid, (unsigned long long)mapping->start,
             (unsigned long long)mapping->end);
    bool mapped = map_file(elf, path, mapping->inode);
    if (!mapped) {
        snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, mapping->path);
        mapped = map_file(elf, path, mapping->inode) || map_file(elf, mapping->path, mapping->inode);
    }
    if (mapped && !is_ours(elf))
        culet_elf_close(elf);
    return elf->bytes;
}

void culet_elf_close(struct culet_elf *elf)
{
    if (elf->bytes)
        munmap((void *)elf->bytes, elf->length);
    *elf = (struct culet_elf){0};
}

static const Elf64_Shdr *section(const struct culet_elf *elf, size_t index)
{
    const Elf64_Ehdr *head = (const void *)elf->bytes;

    return index < head->e_shnum ? part(elf, head->e_shoff + index * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr)) : NULL;
}

static bool is_named(const struct culet_elf *elf, const Elf64_Shdr *names, uint32_t at, const char *name)
{
    size_t bytes = strlen(name) + 1;

    return at < names->sh_size && bytes <= names->sh_size - at && part(elf, names->sh_offset + at, bytes) &&
           memcmp(elf->bytes + names->sh_offset + at, name, bytes) == 0;
}

static const Elf64_Sym *find_in(const struct culet_elf *elf, const Elf64_Shdr *table, const char *name)
{
    const Elf64_Shdr *names = section(elf, table->sh_link);
    const Elf64_Sym *symbols = part(elf, table->sh_offset, table->sh_size);

    if (!names || !symbols)
        return NULL;
    for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++)
        if (symbols[i].st_shndx != SHN_UNDEF && is_named(elf, names, symbols[i].st_name, name))
            return &symbols[i];
    return NULL;
}

/* What a static library brought in is in the full table, if it was not stripped. */
static const Elf64_Sym *find(const struct culet_elf *elf, const char *name)
{
    const Elf64_Shdr *table;

    for (size_t i = 0; (table = section(elf, i)); i++)
        if (table->sh_type == SHT_DYNSYM || table->sh_type == SHT_SYMTAB) {
            const Elf64_Sym *symbol = find_in(elf, table, name);
            if (symbol)
                return symbol;
        }
    return NULL;
}

bool culet_elf_defines(const struct culet_elf *elf, const char *name)
{
    return find(elf, name);
}

bool culet_elf_text(const struct culet_elf *elf, const char *name, char *text, size_t room)
{
    const Elf64_Sym *symbol = find(elf, name);
    const Elf64_Shdr *holder = symbol ? section(elf, symbol->st_shndx) : NULL;

    if (!holder || holder->sh_type == SHT_NOBITS || symbol->st_value < holder->sh_addr || symbol->st_size == 0 ||
        symbol->st_size > room)
        return false;
    const void *bytes = part(elf, holder->sh_offset + (symbol->st_value - holder->sh_addr), symbol->st_size);
    if (!bytes || !memchr(bytes, 0, symbol->st_size))
        return false;
    memcpy(text, bytes, symbol->st_size);
    return true;
}

/* The address that the first loaded byte of the file is linked at: 0 but for programs at fixed addresses. */
static uint64_t linked_at(const struct culet_elf *elf)
{
    const Elf64_Ehdr *head = (const void *)elf->bytes;
    const Elf64_Phdr *segments = part(elf, head->e_phoff, (uint64_t)head->e_phnum * sizeof *segments);

    for (size_t i = 0; segments && i < head->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD)
            return segments[i].p_vaddr - segments[i].p_offset;
    return 0;
}

/* A slot for the address as such is filled in when the file is loaded; one for calls maybe at the first call. So the
 * former is preferred. */
static bool is_eager(uint32_t type)
{
    return type == R_X86_64_GLOB_DAT || type == R_AARCH64_GLOB_DAT;
}

/* A slot of that function in a table of relocations; 0 if there is none. */
static uint64_t find_slot(const struct culet_elf *elf, const Elf64_Shdr *table, const char *name, bool eager)
{
    const Elf64_Rela *entries = part(elf, table->sh_offset, table->sh_size);
    const Elf64_Shdr *symbols = section(elf, table->sh_link);
    const Elf64_Shdr *names = symbols ? section(elf, symbols->sh_link) : NULL;

    for (size_t i = 0; entries && names && i < table->sh_size / sizeof *entries; i++) {
        const Elf64_Sym *symbol = part(elf, symbols->sh_offset + ELF64_R_SYM(entries[i].r_info) * sizeof *symbol,
                                       sizeof *symbol);
        if (ELF64_R_SYM(entries[i].r_info) && symbol && is_eager(ELF64_R_TYPE(entries[i].r_info)) == eager &&
            is_named(elf, names, symbol->st_name, name))
            return entries[i].r_offset;
    }
    return 0;
}

bool culet_elf_slot(const struct culet_elf *elf, const char *name, uint64_t *offset)
{
    const Elf64_Shdr *table;
    uint64_t slot = 0;

    for (int eager = 1; eager >= 0 && !slot; eager--)
        for (size_t i = 0; !slot && (table = section(elf, i)); i++)
            if (table->sh_type == SHT_RELA)
                slot = find_slot(elf, table, name, eager);
    *offset = slot - linked_at(elf);
    return slot;
}
