/* scope.h - one reading of one process: what all walkers share.
 *
 * A walker knows one kind of heap. They are asked in turn (main.c):
 *
 *   recognise  paused: is this heap in the process? A few pages are read, no more: the pause is running. It keeps what it
 *              found in a structure of its own. Returns whether there is anything to walk.
 *   walk       not paused when it begins (in sliced mode): makes pauses of its own by culet_scope_pause, and looks at
 *              culet_target_due often. Makes the regions (culet_place_new), says what mappings are used for.
 *   tell       the process runs: writes its records (arena, malloc, sizes, ruby ...). Regions' own records are
 *              written by main.c, before. */
#ifndef CULET_SCOPE_H
#define CULET_SCOPE_H

#include "memory.h"
#include "place.h"
#include "target.h"

struct culet_scope {
    struct culet_target target;
    struct culet_maps maps; /* read before the walkers are asked, and not again */
    struct culet_maps later; /* read anew where the process has mapped more since, without sizes */
    uint64_t later_ns;       /* when; 0: not in this pause */
    unsigned later_reads;
    struct culet_pages pages;
    struct culet_memory memory;
    struct culet_places places;
    size_t page_bytes;
    size_t mappings;          /* their count when the reading began */
    unsigned bits;            /* 32 or 64: of the program */
    bool readable;            /* its memory can be read; else only pages are told */
    char program[4096];       /* path of its executable, "" when it is not known */
    const char *served;       /* name of the walker that serves malloc, NULL: none yet */
    const char *by_pages;     /* name of the allocator whose heap is what nothing else accounts for, NULL: none */
    const char *libc;         /* path of the C library, where malloc is known to be its own; else NULL */
    struct culet_buffer problems; /* sentences, each ended by a 0 byte */
};

struct culet_walker {
    const char *name;
    bool unread; /* asked also where the memory of the process cannot be read */
    bool (*recognise)(struct culet_scope *scope);
    void (*walk)(struct culet_scope *scope);
    void (*tell)(struct culet_scope *scope);
};

extern const struct culet_walker culet_culet_walker;
extern const struct culet_walker culet_glibc_walker;
extern const struct culet_walker culet_peers_walker;
extern const struct culet_walker culet_ruby_walker;
extern const struct culet_walker culet_names_walker;

/* A pause begins; what was read before is forgotten. */
void culet_scope_pause(struct culet_scope *scope);

/* It ends (in sliced mode). */
void culet_scope_resume(struct culet_scope *scope);

/* When the slice is over: lets the process run, rests, pauses again, and returns true: what was read before may have
 * changed. */
bool culet_scope_breathe(struct culet_scope *scope);

/* Where the memory from `address` on ends: the mappings side by side with that one, of the process as it is now, that can
 * hold a heap where the first one can. 0 where nothing is mapped, or not up to `wanted`. */
uint64_t culet_scope_mapped(struct culet_scope *scope, uint64_t address, uint64_t wanted);

/* A new region with these bounds, which come from the process: NULL unless all of it is mapped and in no other region. */
struct culet_place *culet_scope_place(struct culet_scope *scope, const char *kind, uint32_t arena, uint64_t start,
                                      uint64_t end, bool whole);

/* Notes the states of a region's pages from..to (addresses) as they are now. */
void culet_scope_states(struct culet_scope *scope, struct culet_place *place, uint64_t from, uint64_t to);

/* The same, breathing where it takes long: for what is one block, so that nothing that was read before is needed any more.
 * Returns whether it did. */
bool culet_scope_states_slowly(struct culet_scope *scope, struct culet_place *place, uint64_t from, uint64_t to);

/* Keeps a sentence (printf's) that the user must know; it is told once. */
void culet_scope_problem(struct culet_scope *scope, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
