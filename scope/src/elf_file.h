/* elf_file.h - symbols of an ELF file on disk, by its section headers. */
#ifndef CULET_ELF_FILE_H
#define CULET_ELF_FILE_H

#include "maps.h"

#include <elf.h>

/* Tables that are kept once they were read. */
#define CULET_ELF_TABLES 8u

/* The file may change, or be cut off, while it is read: so it is read by copies, never mapped. */
struct culet_elf {
    int file; /* -1: not open */
    Elf64_Ehdr head;
    Elf64_Shdr *sections;
    size_t section_count;
    struct {
        size_t section;
        unsigned char *bytes;
    } tables[CULET_ELF_TABLES];
    size_t table_count;
    uint64_t left; /* bytes that may still be read */
};

/* Opens the file that `mapping` of process `pid` is of, wherever it is for us: the process may have another root. False when
 * that very file cannot be had (replaced meanwhile, say), or is not of this machine's kind (64 bits, its byte order). */
bool culet_elf_open(struct culet_elf *elf, pid_t pid, const struct culet_mapping *mapping);

/* Whether the file defines a function or object of that name that others can use. */
bool culet_elf_defines(struct culet_elf *elf, const char *name);

/* The text that the object of that name holds, into `text` (room for `room` bytes); false where there is none. */
bool culet_elf_text(struct culet_elf *elf, const char *name, char *text, size_t room);

/* Where the loader writes the address of the function `name` that the file calls, in bytes from the start of its first
 * mapping; false where it calls none of that name, or not through the loader. */
bool culet_elf_slot(struct culet_elf *elf, const char *name, uint64_t *offset);

void culet_elf_close(struct culet_elf *elf);

#endif
