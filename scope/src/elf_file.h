/* elf_file.h - symbols of an ELF file on disk, by its section headers. */
#ifndef CULET_ELF_FILE_H
#define CULET_ELF_FILE_H

#include "maps.h"

struct culet_elf {
    const unsigned char *bytes; /* the file, mapped; NULL: not open */
    size_t length;
};

/* Opens the file that `mapping` of process `pid` is of, wherever it is for us: the process may have another root. False when
 * that very file cannot be had (replaced meanwhile, say), or is not of this machine's kind (64 bits, its byte order). */
bool culet_elf_open(struct culet_elf *elf, pid_t pid, const struct culet_mapping *mapping);

/* Whether the file defines a function or object of that name that others can use. */
bool culet_elf_defines(const struct culet_elf *elf, const char *name);

/* The text that the object of that name holds, into `text` (room for `room` bytes); false where there is none. */
bool culet_elf_text(const struct culet_elf *elf, const char *name, char *text, size_t room);

/* Where the loader writes the address of the function `name` that the file calls, in bytes from the start of its first
 * mapping; false where it calls none of that name, or not through the loader. */
bool culet_elf_slot(const struct culet_elf *elf, const char *name, uint64_t *offset);

void culet_elf_close(struct culet_elf *elf);

#endif
