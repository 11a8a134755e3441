/* bounds.c - reads and writes beyond the bytes that were requested, before and behind the block, and uses of blocks of
 * zero bytes. The heap is full of blocks of the size, which belong to the victim; a few, spread evenly, to the
 * attacker. */
#include "attack.h"

#define ATTACKERS 4 /* a thread's cache may hold as many freed blocks without a check */
#define SPRAY_BYTES ((size_t)4000000)
#define SPRAY_LEAST 17

static size_t spray_blocks(size_t bytes)
{
    size_t blocks = SPRAY_BYTES / bytes;
    return blocks > SPRAY_LEAST ? blocks : SPRAY_LEAST;
}

/* An attack by a million bytes reaches all others' neighbours. */
static size_t attackers(size_t distance)
{
    return distance < MILLION ? ATTACKERS : 1;
}

static size_t attacker(size_t number, size_t distance, size_t blocks)
{
    return blocks * (2 * number + 1) / (2 * attackers(distance));
}

/* ---- writes ---- */

/* Half of the neighbours are freed, and blocks of other sizes take their place. */
static void free_and_allocate_neighbours(size_t bytes)
{
    size_t blocks = owner_count;

    for (size_t i = 0; i < blocks; i += 2)
        if (!owners[i].released)
            release_owner(i);
    own_more(blocks / 4, bytes);
    own_more(blocks / 16, bytes + 16);
    own_more(blocks / 32, bytes * 2);
    use_all();
}

static void write_outside(size_t bytes, size_t distance, bool before, bool frees)
{
    size_t blocks = spray_blocks(bytes);

    own_blocks(blocks, bytes);
    for (size_t i = 0; i < attackers(distance); i++) {
        unsigned char *start = owners[attacker(i, distance, blocks)].start;
        overwrite(before ? start - distance : start + bytes, distance);
    }
    for (size_t i = 0; frees && i < attackers(distance); i++)
        release_owner(attacker(i, distance, blocks));
    use_all();
    free_and_allocate_neighbours(bytes);
}

static void overflow(size_t bytes, size_t distance)
{
    write_outside(bytes, distance, false, true);
}

static void overflow_used(size_t bytes, size_t distance)
{
    write_outside(bytes, distance, false, false);
}

static void underflow(size_t bytes, size_t distance)
{
    write_outside(bytes, distance, true, true);
}

/* ---- reads ---- */

static void read_outside(size_t bytes, size_t distance, bool before)
{
    static unsigned char *block[SPRAY_BYTES / 8];
    size_t blocks = spray_blocks(bytes);
    bool found[2] = {false, false};

    for (size_t i = 0; i < blocks; i++) {
        block[i] = need(bytes);
        fill_secret(block[i], bytes, i < blocks / 2 ? SECRET : OTHER_SECRET);
    }
    for (size_t i = 0; i < attackers(distance); i++)
        overwrite(block[attacker(i, distance, blocks)], bytes);
    for (size_t i = 0; i < attackers(distance); i++) {
        size_t number = attacker(i, distance, blocks);
        unsigned char *from = before ? block[number] - distance : block[number] + bytes;
        if (distance >= SECRET_BYTES)
            read_secret(from, distance);
        else
            found[number >= blocks / 2] |=
                *(unsigned char *)hide(from) == (number < blocks / 2 ? SECRET : OTHER_SECRET);
    }
    if (found[0] && found[1])
        succeed();
}

static void overread(size_t bytes, size_t distance)
{
    read_outside(bytes, distance, false);
}

static void underread(size_t bytes, size_t distance)
{
    read_outside(bytes, distance, true);
}

/* ---- blocks of zero bytes, between blocks of 16 ---- */

enum { ZEROS = 4000, SIXTEEN = 16 };

static void zero_write(size_t bytes, size_t distance)
{
    static void *zero[ZEROS];

    for (size_t i = 0; i < ZEROS; i++) {
        zero[i] = allocate(bytes);
        own_blocks(1, SIXTEEN);
    }
    for (size_t i = 0; i < ZEROS; i += ZEROS / ATTACKERS)
        overwrite(zero[i], distance);
    for (size_t i = 0; i < ZEROS; i += ZEROS / ATTACKERS)
        release(zero[i]);
    use_all();
    own_and_use(ZEROS, SIXTEEN);
}

static void zero_read(size_t bytes, size_t distance)
{
    static void *zero[ZEROS];

    for (size_t i = 0; i < ZEROS; i++) {
        zero[i] = allocate(bytes);
        fill_secret(need(SIXTEEN), SIXTEEN, SECRET);
    }
    for (size_t i = 0; i < ZEROS; i += ZEROS / ATTACKERS)
        read_secret(zero[i], distance);
}

/* Secrets of 16 bytes are freed before. */
static void zero_shows_freed(size_t bytes, size_t distance)
{
    static void *secret[ZEROS];

    for (size_t i = 0; i < ZEROS; i++)
        fill_secret(secret[i] = need(SIXTEEN), SIXTEEN, SECRET);
    for (size_t i = 0; i < ZEROS; i += 2)
        release(secret[i]);
    for (size_t i = 0; i < ZEROS; i++)
        read_secret(allocate(bytes), distance);
}

/* realloc to zero bytes frees; the program takes the old pointer for a block of zero bytes and writes. */
static void zero_realloc(size_t bytes, size_t distance)
{
    own_blocks(ZEROS, bytes);
    unsigned char *block = owners[ZEROS / 2].start;
    owners[ZEROS / 2].released = true;
    if (realloc(hide(block), 0) != NULL)
        return;
    own_blocks(1, bytes);
    overwrite(block, distance);
    use_all();
}

#define OVERFLOW "Overflow by write"
#define OVERREAD "Overflow by read"
#define UNDERFLOW "Underflow"
#define ZERO "Zero-size blocks"
#define FREED_THEN "the block is freed, then another block in use has changed, or overlaps a new one"
#define AT_ONCE "another block in use has changed"
#define LEAK "eight bytes in a row of another block's secret were read"
#define LEAK_1 "the byte read is that of another block's secret"

int main(int argc, char **argv)
{
    static const struct attack table[] = {
        {"overflow-40-by-1", OVERFLOW, FREED_THEN, overflow, 40, 1},
        {"overflow-40-by-32", OVERFLOW, FREED_THEN, overflow, 40, 32},
        {"overflow-40-by-million", OVERFLOW, FREED_THEN, overflow, 40, MILLION},
        {"overflow-208-by-1", OVERFLOW, FREED_THEN, overflow, 208, 1},
        {"overflow-208-by-32", OVERFLOW, FREED_THEN, overflow, 208, 32},
        {"overflow-4000-by-1", OVERFLOW, FREED_THEN, overflow, 4000, 1},
        {"overflow-4000-by-32", OVERFLOW, FREED_THEN, overflow, 4000, 32},
        {"overflow-4000-by-million", OVERFLOW, FREED_THEN, overflow, 4000, MILLION},
        {"overflow-100k-by-1", OVERFLOW, FREED_THEN, overflow, 100000, 1},
        {"overflow-100k-by-32", OVERFLOW, FREED_THEN, overflow, 100000, 32},
        {"overflow-100k-by-million", OVERFLOW, FREED_THEN, overflow, 100000, MILLION},
        {"overflow-4M-by-32", OVERFLOW, FREED_THEN, overflow, 4 * MIB, 32},
        {"overflow-4M-by-million", OVERFLOW, FREED_THEN, overflow, 4 * MIB, MILLION},
        {"overflow-40-by-32-used", OVERFLOW, AT_ONCE, overflow_used, 40, 32},
        {"overflow-4000-by-128-used", OVERFLOW, AT_ONCE, overflow_used, 4000, 128},
        {"overread-40-by-1", OVERREAD, LEAK_1, overread, 40, 1},
        {"overread-40-by-32", OVERREAD, LEAK, overread, 40, 32},
        {"overread-40-by-million", OVERREAD, LEAK, overread, 40, MILLION},
        {"overread-208-by-1", OVERREAD, LEAK_1, overread, 208, 1},
        {"overread-208-by-32", OVERREAD, LEAK, overread, 208, 32},
        {"overread-4000-by-32", OVERREAD, LEAK, overread, 4000, 32},
        {"overread-100k-by-32", OVERREAD, LEAK, overread, 100000, 32},
        {"overread-100k-by-million", OVERREAD, LEAK, overread, 100000, MILLION},
        {"overread-4M-by-million", OVERREAD, LEAK, overread, 4 * MIB, MILLION},
        {"underflow-40-by-1", UNDERFLOW, FREED_THEN, underflow, 40, 1},
        {"underflow-40-by-32", UNDERFLOW, FREED_THEN, underflow, 40, 32},
        {"underflow-40-by-million", UNDERFLOW, FREED_THEN, underflow, 40, MILLION},
        {"underflow-4000-by-1", UNDERFLOW, FREED_THEN, underflow, 4000, 1},
        {"underflow-4000-by-128", UNDERFLOW, FREED_THEN, underflow, 4000, 128},
        {"underflow-4000-by-million", UNDERFLOW, FREED_THEN, underflow, 4000, MILLION},
        {"underflow-100k-by-32", UNDERFLOW, FREED_THEN, underflow, 100000, 32},
        {"underflow-100k-by-million", UNDERFLOW, FREED_THEN, underflow, 100000, MILLION},
        {"underflow-4M-by-million", UNDERFLOW, FREED_THEN, underflow, 4 * MIB, MILLION},
        {"underread-40-by-32", UNDERFLOW, LEAK, underread, 40, 32},
        {"underread-40-by-million", UNDERFLOW, LEAK, underread, 40, MILLION},
        {"underread-100k-by-million", UNDERFLOW, LEAK, underread, 100000, MILLION},
        {"underread-4M-by-million", UNDERFLOW, LEAK, underread, 4 * MIB, MILLION},
        {"zero-write-1", ZERO, FREED_THEN, zero_write, 0, 1},
        {"zero-write-32", ZERO, FREED_THEN, zero_write, 0, 32},
        {"zero-read-64", ZERO, LEAK, zero_read, 0, 64},
        {"zero-shows-freed", ZERO, "eight bytes in a row of a freed block's secret were read", zero_shows_freed, 0, 16},
        {"zero-realloc-write", ZERO, "the block's next owner finds it changed", zero_realloc, 40, 16},
        {0},
    };
    return run_attack(argc, argv, table);
}
