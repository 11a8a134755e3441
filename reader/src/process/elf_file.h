/* elf_file.h - symbols of an ELF file, by its section headers.
 *
 * The file is the process's and may be damaged, hostile, or truncated while it is read: it is copied in bounded
 * parts and never mapped. */
#pragma once

#include "process/maps.h"

#include <elf.h>

/* Sections kept in memory. */
#define CULET_ELF_TABLES 8u

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

/* Opens the file of `mapping` in process `pid`, which may have another root directory. Returns false if that inode
 * cannot be opened (the file was replaced), or is not an ELF file of 64 bits and this byte order. */
bool culet_elf_open(struct culet_elf *elf, pid_t pid, const struct culet_mapping *mapping);

/* Whether the file defines a symbol of that name. */
bool culet_elf_defines(struct culet_elf *elf, const char *name);

/* Copies the string in the object of that name into `text` (`room` bytes). Returns false if there is none. */
bool culet_elf_text(struct culet_elf *elf, const char *name, char *text, size_t room);

/* The global offset table entry for the function `name`, in bytes from the start of the file's first mapping.
 * Returns false if the file does not call it, or not through the loader. */
bool culet_elf_got_entry(struct culet_elf *elf, const char *name, uint64_t *offset);

void culet_elf_close(struct culet_elf *elf);
