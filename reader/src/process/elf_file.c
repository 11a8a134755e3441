#define _GNU_SOURCE
#include "process/elf_file.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes read of a file at most: the tables of large programs have tens of megabytes. */
#define MOST_BYTES (UINT64_C(128) << 20)
#define MOST_SECTIONS 4096u
#define MOST_SEGMENTS 4096u

/* Copies `bytes` from offset `at` of the file. */
static bool copy(struct culet_elf *elf, uint64_t at, void *to, uint64_t bytes)
{
    if (at > INT64_MAX || bytes > elf->left)
        return false;
    elf->left -= bytes;
    for (uint64_t done = 0; done < bytes;) {
        ssize_t got = pread(elf->file, (char *)to + done, (size_t)(bytes - done), (off_t)(at + done));
        if (got <= 0)
            return false;
        done += (uint64_t)got;
    }
    return true;
}

/* Reads `count` items, to be freed; NULL if the file does not have them. */
static void *read_items(struct culet_elf *elf, uint64_t at, uint64_t count, size_t bytes)
{
    struct stat status;

    if (!count || count > elf->left / bytes || fstat(elf->file, &status) != 0 || at > (uint64_t)status.st_size ||
        count * bytes > (uint64_t)status.st_size - at)
        return NULL;
    void *items = culet_new((size_t)count, bytes);
    if (copy(elf, at, items, count * bytes))
        return items;
    free(items);
    return NULL;
}

static bool read_header(struct culet_elf *elf)
{
    const Elf64_Ehdr *head = &elf->head;

    if (!copy(elf, 0, &elf->head, sizeof elf->head) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 ||
        head->e_ident[EI_DATA] != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) ||
        head->e_shentsize != sizeof(Elf64_Shdr) || head->e_phentsize != sizeof(Elf64_Phdr) ||
        head->e_shnum > MOST_SECTIONS)
        return false;
    elf->sections = read_items(elf, head->e_shoff, head->e_shnum, sizeof *elf->sections);
    elf->section_count = elf->sections ? head->e_shnum : 0;
    return true;
}

/* Opens the file if it is a regular file with that inode: the path may lead to another file by now, or to a device. */
static bool open_file(struct culet_elf *elf, const char *path, uint64_t inode)
{
    char name[64];
    struct stat status;
    int found = open(path, O_PATH | O_CLOEXEC);

    *elf = (struct culet_elf){.file = -1, .left = MOST_BYTES};
    if (found < 0)
        return false;
    if (fstat(found, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", found);
        elf->file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    close(found);
    return elf->file >= 0;
}

/* Tries the mapping itself, which needs privileges and works for deleted files; then the path in the process's root
 * directory; then in ours. */
bool culet_elf_open(struct culet_elf *elf, pid_t pid, const struct culet_mapping *mapping)
{
    char path[4200];

    snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", (int)pid, (unsigned long long)mapping->start,
             (unsigned long long)mapping->end);
    bool opened = open_file(elf, path, mapping->inode);
    if (!opened) {
        snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, mapping->path);
        opened = open_file(elf, path, mapping->inode) || open_file(elf, mapping->path, mapping->inode);
    }
    if (opened && !read_header(elf))
        culet_elf_close(elf);
    return elf->file >= 0;
}

void culet_elf_close(struct culet_elf *elf)
{
    if (elf->file >= 0)
        close(elf->file);
    for (size_t i = 0; i < elf->table_count; i++)
        free(elf->tables[i].bytes);
    free(elf->sections);
    *elf = (struct culet_elf){.file = -1};
}

/* The bytes of a section, valid while the file is open; NULL on failure. */
static const void *section_bytes(struct culet_elf *elf, size_t section)
{
    for (size_t i = 0; i < elf->table_count; i++)
        if (elf->tables[i].section == section)
            return elf->tables[i].bytes;
    if (section >= elf->section_count || elf->table_count == CULET_ELF_TABLES)
        return NULL;
    const Elf64_Shdr *header = &elf->sections[section];
    void *bytes = header->sh_type == SHT_NOBITS ? NULL : read_items(elf, header->sh_offset, header->sh_size, 1);
    elf->tables[elf->table_count].section = section;
    elf->tables[elf->table_count++].bytes = bytes;
    return bytes;
}

/* A string table. */
struct names {
    const char *bytes;
    uint64_t length;
};

static struct names names_in(struct culet_elf *elf, size_t section)
{
    const char *bytes = section_bytes(elf, section);

    return (struct names){bytes, bytes ? elf->sections[section].sh_size : 0};
}

static bool is_named(const struct names *names, uint32_t at, const char *name)
{
    size_t bytes = strlen(name) + 1;

    return at < names->length && bytes <= names->length - at && memcmp(names->bytes + at, name, bytes) == 0;
}

static const Elf64_Sym *find_in(struct culet_elf *elf, size_t section, const char *name)
{
    const Elf64_Shdr *table = &elf->sections[section];
    const Elf64_Sym *symbols = section_bytes(elf, section);
    struct names names = names_in(elf, table->sh_link);

    for (size_t i = 0; symbols && i < table->sh_size / sizeof *symbols; i++)
        if (symbols[i].st_shndx != SHN_UNDEF && is_named(&names, symbols[i].st_name, name))
            return &symbols[i];
    return NULL;
}

/* Symbols of static libraries are in the full symbol table, unless it was stripped. */
static const Elf64_Sym *find(struct culet_elf *elf, const char *name)
{
    for (size_t i = 0; i < elf->section_count; i++)
        if (elf->sections[i].sh_type == SHT_DYNSYM || elf->sections[i].sh_type == SHT_SYMTAB) {
            const Elf64_Sym *symbol = find_in(elf, i, name);
            if (symbol)
                return symbol;
        }
    return NULL;
}

bool culet_elf_defines(struct culet_elf *elf, const char *name)
{
    return find(elf, name);
}

bool culet_elf_text(struct culet_elf *elf, const char *name, char *text, size_t room)
{
    const Elf64_Sym *symbol = find(elf, name);
    const Elf64_Shdr *holder =
        symbol && symbol->st_shndx < elf->section_count ? &elf->sections[symbol->st_shndx] : NULL;

    if (!holder || holder->sh_type == SHT_NOBITS || symbol->st_value < holder->sh_addr || symbol->st_size == 0 ||
        symbol->st_size > room)
        return false;
    char *bytes = read_items(elf, holder->sh_offset + (symbol->st_value - holder->sh_addr), symbol->st_size, 1);
    bool ends = bytes && memchr(bytes, 0, symbol->st_size);
    if (ends)
        memcpy(text, bytes, symbol->st_size);
    free(bytes);
    return ends;
}

/* The link address of the first loaded byte: 0 except for programs at fixed addresses. */
static uint64_t link_address(struct culet_elf *elf)
{
    size_t count = elf->head.e_phnum < MOST_SEGMENTS ? elf->head.e_phnum : MOST_SEGMENTS;
    Elf64_Phdr *segments = read_items(elf, elf->head.e_phoff, count, sizeof *segments);
    uint64_t address = 0;

    for (size_t i = 0; segments && i < count; i++)
        if (segments[i].p_type == PT_LOAD) {
            address = segments[i].p_vaddr - segments[i].p_offset;
            break;
        }
    free(segments);
    return address;
}

/* An entry for the address is filled in at load time, an entry for calls perhaps at the first call: prefer the
 * former. */
static bool is_eager(uint32_t type)
{
    return type == R_X86_64_GLOB_DAT || type == R_AARCH64_GLOB_DAT;
}

/* The global offset table entry of a function, in one relocation table; 0: none. */
static uint64_t find_entry(struct culet_elf *elf, size_t section, const char *name, bool eager)
{
    const Elf64_Shdr *table = &elf->sections[section];
    const Elf64_Rela *entries = section_bytes(elf, section);
    const Elf64_Sym *symbols = section_bytes(elf, table->sh_link);
    size_t count = symbols ? elf->sections[table->sh_link].sh_size / sizeof *symbols : 0;
    struct names names = symbols ? names_in(elf, elf->sections[table->sh_link].sh_link) : (struct names){0};

    for (size_t i = 0; entries && i < table->sh_size / sizeof *entries; i++) {
        uint64_t symbol = ELF64_R_SYM(entries[i].r_info);
        if (symbol && symbol < count && is_eager(ELF64_R_TYPE(entries[i].r_info)) == eager &&
            is_named(&names, symbols[symbol].st_name, name))
            return entries[i].r_offset;
    }
    return 0;
}

bool culet_elf_got_entry(struct culet_elf *elf, const char *name, uint64_t *offset)
{
    uint64_t entry = 0;

    for (int eager = 1; eager >= 0 && !entry; eager--)
        for (size_t i = 0; !entry && i < elf->section_count; i++)
            if (elf->sections[i].sh_type == SHT_RELA)
                entry = find_entry(elf, i, name, eager);
    *offset = entry - link_address(elf);
    return entry;
}
