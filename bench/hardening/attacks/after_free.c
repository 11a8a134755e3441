/* after_free.c - writes and reads through pointers to freed blocks. Blocks of the same size are in use around them. */
#include "attack.h"

enum { NEXT = 100, CHURN = 1000 };
#define MANY_BYTES ((size_t)4000000)

/* Allocations of sizes between 16 and 2,000 bytes, but none near `bytes`; three quarters are freed again. */
static void churn(size_t bytes)
{
    uint64_t state = 1;

    for (int i = 0; i < CHURN; i++) {
        size_t size;
        do
            size = size_between(next_random(&state), 16, 2000);
        while (size > bytes / 2 && size < bytes * 2);
        void *block = allocate(size);
        if (block && i % 4)
            release(block);
    }
}

static void free_block(void *block, size_t churned, size_t bytes)
{
    release(block);
    if (churned)
        churn(bytes);
}

/* ---- writes ---- */

/* The program allocates the size again, `churned`: after others. */
static void write_to_next_owner(size_t bytes, size_t churned)
{
    unsigned char *block = surrounded(bytes);

    free_block(block, churned, bytes);
    own_more(churned ? NEXT : 1, bytes);
    overwrite(block, 16);
    use_all();
}

/* All blocks of the size are freed; then blocks of `other` bytes are allocated. */
static void write_to_other_size(size_t bytes, size_t other)
{
    size_t blocks = MANY_BYTES / bytes;
    static void *freed[MANY_BYTES / 16];

    for (size_t i = 0; i < blocks; i++)
        fill_secret(freed[i] = need(bytes), bytes, SECRET);
    for (size_t i = 0; i < blocks; i++)
        release(freed[i]);
    own_more(MANY_BYTES / other, other);
    for (size_t i = blocks / 4; i < blocks; i += blocks / 4)
        overwrite(freed[i], 16);
    use_all();
}

/* The next owner does not initialize the block, because it expects no attacker's data there. */
static void prefill(size_t bytes, size_t distance)
{
    static const uint64_t marker = 0x4141414141414141;
    unsigned char *block = surrounded(bytes);

    (void)distance;
    fill_secret(block, bytes, SECRET);
    release(block);
    overwrite(block + 16, sizeof marker);
    for (int i = 0; i < NEXT; i++) {
        unsigned char *next = allocate(bytes);
        if (next && memcmp(next + 16, &marker, sizeof marker) == 0)
            succeed();
    }
}

/* calloc may leave out what it takes for zero. With `trim` after free pages went back to the kernel. */
static void prefill_zeroed(size_t bytes, size_t trim)
{
    int (*malloc_trim)(size_t) = (int (*)(size_t))dlsym(RTLD_DEFAULT, "malloc_trim");
    unsigned char *block = surrounded(bytes);

    fill_secret(block, bytes, SECRET);
    release(block);
    if (trim && malloc_trim)
        malloc_trim(0);
    overwrite(block + bytes / 2, 16);
    for (int i = 0; i < 16; i++) {
        unsigned char *next = hide(calloc(1, (size_t)(uintptr_t)hide((void *)(uintptr_t)bytes)));
        for (size_t at = 0; next && at < bytes; at++)
            if (next[at])
                succeed();
    }
}

/* ---- reads ---- */

static void read_freed(size_t bytes, size_t churned)
{
    unsigned char *block = surrounded(bytes);

    fill_secret(block, bytes, SECRET);
    free_block(block, churned, bytes);
    read_secret(block, bytes < MILLION ? bytes : MILLION);
}

/* The block's next owner keeps a secret in it. */
static void read_next_owner(size_t bytes, size_t churned)
{
    unsigned char *block = surrounded(bytes);

    memset(block, 0, bytes);
    free_block(block, churned, bytes);
    for (int i = 0; i < (churned ? NEXT : 1); i++) {
        unsigned char *next = allocate(bytes);
        if (next)
            fill_secret(next, bytes, SECRET);
    }
    read_secret(block, bytes);
}

static void read_other_size(size_t bytes, size_t other)
{
    size_t blocks = MANY_BYTES / bytes;
    static void *freed[MANY_BYTES / 16];

    for (size_t i = 0; i < blocks; i++)
        memset(freed[i] = need(bytes), 0, bytes);
    for (size_t i = 0; i < blocks; i++)
        release(freed[i]);
    for (size_t i = 0; i < MANY_BYTES / other; i++) {
        unsigned char *next = allocate(other);
        if (next)
            fill_secret(next, other, SECRET);
    }
    for (size_t i = blocks / 4; i < blocks; i += blocks / 4)
        read_secret(freed[i], bytes);
}

/* The attacker owns the block after the victim and reads it without having written. */
static void read_uninitialized(size_t bytes, size_t distance)
{
    unsigned char *block = surrounded(bytes);

    (void)distance;
    fill_secret(block, bytes, SECRET);
    release(block);
    for (int i = 0; i < NEXT; i++) {
        unsigned char *next = allocate(bytes);
        if (next)
            read_secret(next, bytes);
    }
}

/* Whether a word is an address of this process. */
static bool mapped(uint64_t word)
{
    static char maps[256 * KIB];

    if (!maps[0])
        read_proc("/proc/self/maps", maps, sizeof maps);
    for (const char *line = maps; line && *line; line = strchr(line, '\n')) {
        char *end;
        line += *line == '\n';
        uint64_t from = strtoull(line, &end, 16);
        if (*end == '-' && word >= from && word < strtoull(end + 1, NULL, 16))
            return true;
    }
    return false;
}

/* What the allocator writes into freed blocks. */
static void read_address(size_t bytes, size_t distance)
{
    static unsigned char *block[64];

    (void)distance;
    for (int i = 0; i < 64; i++)
        fill_secret(block[i] = need(bytes), bytes, SECRET);
    for (int i = 0; i < 64; i += 2)
        release(block[i]);
    for (int i = 0; i < 64; i += 2) {
        for (size_t at = 0; at + 8 <= bytes; at += 8) {
            uint64_t word;
            memcpy(&word, (unsigned char *)hide(block[i]) + at, sizeof word);
            if (mapped(word))
                succeed();
        }
    }
}

#define WRITE "Write after free"
#define READ "Read after free"
#define CHANGED "the block's next owner finds it changed"
#define PREFILLED "a new block has the bytes that were written"
#define NOT_ZERO "calloc returns a block that is not zero"
#define STILL_THERE "eight bytes in a row of the freed block's secret were read"
#define NEW_SECRET "eight bytes in a row of the next owner's secret were read"
#define ADDRESS "the freed block has the address of a mapping"

int main(int argc, char **argv)
{
    static const struct attack table[] = {
        {"write-next-40", WRITE, CHANGED, write_to_next_owner, 40, false},
        {"write-next-4000", WRITE, CHANGED, write_to_next_owner, 4000, false},
        {"write-next-100k", WRITE, CHANGED, write_to_next_owner, 100000, false},
        {"write-later-40", WRITE, CHANGED, write_to_next_owner, 40, true},
        {"write-later-4000", WRITE, CHANGED, write_to_next_owner, 4000, true},
        {"write-40-as-200", WRITE, CHANGED, write_to_other_size, 40, 200},
        {"write-4000-as-100k", WRITE, CHANGED, write_to_other_size, 4000, 100000},
        {"write-prefill-40", WRITE, PREFILLED, prefill, 40, 0},
        {"write-prefill-208", WRITE, PREFILLED, prefill, 208, 0},
        {"write-prefill-4000", WRITE, PREFILLED, prefill, 4000, 0},
        {"write-calloc-40", WRITE, NOT_ZERO, prefill_zeroed, 40, false},
        {"write-calloc-100k", WRITE, NOT_ZERO, prefill_zeroed, 100000, false},
        {"write-calloc-4M", WRITE, NOT_ZERO, prefill_zeroed, 4 * MIB, false},
        {"write-calloc-100k-trimmed", WRITE, NOT_ZERO, prefill_zeroed, 100000, true},
        {"read-40", READ, STILL_THERE, read_freed, 40, false},
        {"read-208", READ, STILL_THERE, read_freed, 208, false},
        {"read-4000", READ, STILL_THERE, read_freed, 4000, false},
        {"read-100k", READ, STILL_THERE, read_freed, 100000, false},
        {"read-4M", READ, STILL_THERE, read_freed, 4 * MIB, false},
        {"read-later-40", READ, STILL_THERE, read_freed, 40, true},
        {"read-later-4000", READ, STILL_THERE, read_freed, 4000, true},
        {"read-next-40", READ, NEW_SECRET, read_next_owner, 40, false},
        {"read-next-4000", READ, NEW_SECRET, read_next_owner, 4000, true},
        {"read-40-as-200", READ, NEW_SECRET, read_other_size, 40, 200},
        {"read-uninitialized-40", READ, STILL_THERE, read_uninitialized, 40, 0},
        {"read-uninitialized-4000", READ, STILL_THERE, read_uninitialized, 4000, 0},
        {"read-address-40", READ, ADDRESS, read_address, 40, 0},
        {"read-address-4000", READ, ADDRESS, read_address, 4000, 0},
        {0},
    };
    return run_attack(argc, argv, table);
}
