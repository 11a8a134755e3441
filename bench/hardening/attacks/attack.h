/* attack.h - common parts of the attacks: the command line, memory that the victim owns, and the search for damage.
 *
 * An attack is one memory error of a program and the use that an attacker makes of it. Each program here has a table of
 * attacks; PROGRAM --list prints it, PROGRAM NAME runs one attack in this process. The attack prints the library whose
 * malloc it calls, then "succeeded" as soon as the effect of its table row is observed, or "no effect" at its end. An
 * allocator that notices the error ends the process before.
 *
 * The effect is one on the victim's data: a block that is in use has changed, a secret was read, two live blocks
 * overlap. It counts when the program uses the data, not when it is written: a check at the next free is in time if the
 * program frees before it uses. Attackers know sizes and order of the allocations, not the allocator's secrets.
 *
 * Nothing here allocates besides the attack itself. */
#pragma once

#define _GNU_SOURCE

#include "../../allocator/probes/probe.h"

#define KIB ((size_t)1 << 10)
#define MILLION ((size_t)1000000)

struct attack {
    const char *name;
    const char *family;
    const char *effect; /* what proves success */
    void (*make)(size_t bytes, size_t distance);
    size_t bytes;    /* of the attacked blocks */
    size_t distance; /* or another number, see the attack */
};

static inline _Noreturn void say_and_end(const char *text)
{
    if (dprintf(1, "%s\n", text) < 0)
        give_up("cannot write the outcome: %s", strerror(errno));
    _exit(0);
}

/* The effect is there. */
static inline _Noreturn void succeed(void)
{
    say_and_end("succeeded");
}

/* Runs the attack that the command line names. The table ends with an empty row. */
static inline int run_attack(int argc, char **argv, const struct attack *table)
{
    if (argc != 2)
        give_up("one argument: --list, or the name of an attack");
    bool list = strcmp(argv[1], "--list") == 0;
    for (; table->name; table++) {
        if (list) {
            printf("%s\t%s\t%s\n", table->name, table->family, table->effect);
        } else if (strcmp(argv[1], table->name) == 0) {
            dprintf(1, "malloc %s\n", malloc_file());
            table->make(table->bytes, table->distance);
            say_and_end("no effect");
        }
    }
    if (!list)
        give_up("there is no attack %s", argv[1]);
    return 0;
}

/* ---- calls that the compiler knows nothing of ---- */

static inline void *hide(void *address)
{
    __asm__ volatile("" : "+r"(address) : : "memory");
    return address;
}

/* malloc and free, as the attacked program calls them. */
static inline void *allocate(size_t bytes)
{
    return hide(malloc((size_t)(uintptr_t)hide((void *)(uintptr_t)bytes)));
}

static inline void release(void *block)
{
    free(hide(block));
    hide(block);
}

/* For start_thread. */
static inline void *release_body(void *block)
{
    release(block);
    return NULL;
}

/* A block that the attack cannot do without. */
static inline unsigned char *need(size_t bytes)
{
    unsigned char *block = allocate(bytes);

    if (!block)
        give_up("malloc(%zu) gave nothing", bytes);
    return block;
}

static inline void overwrite(void *address, size_t bytes)
{
    memset(hide(address), 0x41, bytes);
    hide(address);
}

/* A word through a pointer that the program should not use. */
static inline void write_word(void *address, size_t offset, uint64_t word)
{
    memcpy((char *)hide(address) + offset, &word, sizeof word);
    hide(address);
}

/* ---- memory in use: every byte is known ---- */

struct owner {
    unsigned char *start;
    size_t bytes;
    bool released;
};

#define OWNERS 200000
static struct owner owners[OWNERS];
static size_t owner_count;

/* Of longer blocks only both ends are written, so that an attack takes milliseconds. */
#define WHOLE (128 * KIB)
#define END (64 * KIB)

static inline uint64_t word_of(size_t owner)
{
    return (owner + 1) * 0x9E3779B97F4A7C15ULL;
}

static inline void fill_range(unsigned char *start, size_t bytes, uint64_t word)
{
    for (size_t at = 0; at < bytes; at += sizeof word)
        memcpy(start + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word);
    hide(start);
}

static inline bool range_holds(const unsigned char *start, size_t bytes, uint64_t word)
{
    for (size_t at = 0; at < bytes; at += sizeof word)
        if (memcmp(start + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word) != 0)
            return false;
    return true;
}

/* Fills memory with a word of its own; it is in use from now on. */
static inline void own(void *start, size_t bytes)
{
    if (owner_count == OWNERS)
        give_up("more blocks than there is room for");
    struct owner *owner = &owners[owner_count];
    *owner = (struct owner){.start = hide(start), .bytes = bytes};
    fill_range(owner->start, bytes > WHOLE ? END : bytes, word_of(owner_count));
    if (bytes > WHOLE)
        fill_range(owner->start + bytes - END, END, word_of(owner_count));
    owner_count++;
}

/* Allocates blocks and owns them. */
static inline void own_blocks(size_t count, size_t bytes)
{
    while (count--)
        own(need(bytes), bytes);
}

/* Allocates and owns blocks after the attack, which may have left the allocator without memory: then fewer. */
static inline void own_more(size_t count, size_t bytes)
{
    while (count--) {
        void *block = allocate(bytes);
        if (block)
            own(block, bytes);
    }
}

/* A block, which is not owned, in the middle of others of its size, which are. */
static inline unsigned char *surrounded(size_t bytes)
{
    own_blocks(16, bytes);
    unsigned char *block = need(bytes);
    own_blocks(16, bytes);
    return block;
}

static inline void release_owner(size_t i)
{
    owners[i].released = true;
    release(owners[i].start);
}

/* Succeeds if memory in use has changed: it was overwritten, or another block overlaps it. */
static inline void use_all(void)
{
    for (size_t i = 0; i < owner_count; i++) {
        const struct owner *owner = &owners[i];
        size_t first = owner->bytes > WHOLE ? END : owner->bytes;
        if (owner->released)
            continue;
        if (!range_holds(owner->start, first, word_of(i)) ||
            (owner->bytes > WHOLE && !range_holds(owner->start + owner->bytes - END, END, word_of(i))))
            succeed();
    }
}

/* More blocks of the size; succeeds if one of them overlaps memory in use. */
static inline void own_and_use(size_t count, size_t bytes)
{
    own_more(count, bytes);
    use_all();
}

/* ---- secrets: bytes that the attacker recognizes ---- */

#define SECRET 0xA7
#define OTHER_SECRET 0x5C /* so that a canary of one random byte is not taken for a secret */
#define SECRET_BYTES 8    /* in a row */

static inline void fill_secret(void *start, size_t bytes, unsigned char secret)
{
    if (bytes > WHOLE) {
        memset(start, secret, END);
        start = (char *)start + bytes - END;
        bytes = END;
    }
    memset(start, secret, bytes);
    hide(start);
}

static inline bool holds_secret(const unsigned char *start, size_t bytes)
{
    size_t row = 0;

    for (size_t i = 0; i < bytes; i++) {
        bool secret = start[i] == SECRET || start[i] == OTHER_SECRET;
        row = !secret ? 0 : row && start[i] == start[i - 1] ? row + 1 : 1;
        if (row == SECRET_BYTES)
            return true;
    }
    return false;
}

/* Reads memory through a pointer that the program should not use, wholly, as a copy to a network would; then succeeds
 * if a secret is in it. At most MILLION bytes. */
static inline void read_secret(const void *address, size_t bytes)
{
    static unsigned char copy[MILLION];

    memcpy(copy, hide((void *)(uintptr_t)address), bytes);
    hide(copy);
    if (holds_secret(copy, bytes))
        succeed();
}
