/* predict.c - addresses that an attacker knows in advance: which block the next allocation returns, and which blocks
 * are neighbours. Predicted means: in at least half of ten tries, with live blocks of the size around. */
#include "attack.h"

enum { AROUND = 32, TRIES = 10 };

static void succeed_if_predicted(int hits)
{
    if (hits >= TRIES / 2)
        succeed();
}

/* ---- reuse ---- */

/* A freed block is returned by one of the next `count` allocations of `bytes`. */
static int reuses(size_t freed_bytes, size_t bytes, size_t count, bool by_thread)
{
    int hits = 0;

    own_blocks(AROUND, freed_bytes);
    for (int i = 0; i < TRIES; i++) {
        void *victim = need(freed_bytes);
        bool hit = false;
        own_blocks(1, freed_bytes);
        if (by_thread)
            join_thread(start_thread(release_body, victim));
        else
            release(victim);
        for (size_t j = 0; j < count; j++)
            hit |= allocate(bytes) == victim;
        hits += hit;
    }
    return hits;
}

static void reuse(size_t bytes, size_t count)
{
    succeed_if_predicted(reuses(bytes, bytes, count, false));
}

static void reuse_of_thread(size_t bytes, size_t count)
{
    succeed_if_predicted(reuses(bytes, bytes, count, true));
}

static void reuse_by_other_size(size_t bytes, size_t other)
{
    succeed_if_predicted(reuses(bytes, other, 1, false));
}

/* ---- adjacency ---- */

/* Nothing but the allocator's own rounding lies between. */
static bool adjacent(const void *a, const void *b, size_t bytes)
{
    size_t distance = (size_t)((uintptr_t)a > (uintptr_t)b ? (uintptr_t)a - (uintptr_t)b : (uintptr_t)b - (uintptr_t)a);
    return distance <= bytes + bytes / 4 + 64;
}

static void two_in_a_row(size_t bytes, size_t distance)
{
    int hits = 0;

    (void)distance;
    own_blocks(AROUND, bytes);
    for (int i = 0; i < TRIES; i++) {
        void *first = need(bytes);
        hits += adjacent(first, need(bytes), bytes);
    }
    succeed_if_predicted(hits);
}

/* The attacker frees every second block; the next blocks then lie beside the victim's. */
static void beside_the_victim(size_t bytes, size_t distance)
{
    static void *block[200];
    int hits = 0;

    (void)distance;
    for (int i = 0; i < 200; i++)
        block[i] = need(bytes);
    for (int i = 0; i < 200; i += 2)
        release(block[i]);
    for (int i = 0; i < TRIES; i++) {
        void *next = need(bytes);
        bool hit = false;
        for (int j = 1; j < 200; j += 2)
            hit |= adjacent(next, block[j], bytes);
        hits += hit;
    }
    succeed_if_predicted(hits);
}

/* Each next block lies as far from the one before. */
static void in_order(size_t bytes, size_t distance)
{
    unsigned char *before[2] = {need(bytes), need(bytes)};
    int hits = 0;

    (void)distance;
    for (int i = 0; i < TRIES; i++) {
        unsigned char *next = need(bytes);
        hits += (uintptr_t)next - (uintptr_t)before[1] == (uintptr_t)before[1] - (uintptr_t)before[0];
        before[0] = before[1];
        before[1] = next;
    }
    succeed_if_predicted(hits);
}

#define REUSE "Predictable reuse"
#define ADJACENT "Predictable adjacency"
#define NEXT "in five of ten tries the next allocation returns the freed block"
#define SOON "in five of ten tries one of the next ten allocations returns the freed block"
#define BESIDE "in five of ten tries a new block lies beside the victim's"

int main(int argc, char **argv)
{
    static const struct attack table[] = {
        {"reuse-40", REUSE, NEXT, reuse, 40, 1},
        {"reuse-208", REUSE, NEXT, reuse, 208, 1},
        {"reuse-4000", REUSE, NEXT, reuse, 4000, 1},
        {"reuse-100k", REUSE, NEXT, reuse, 100000, 1},
        {"reuse-4M", REUSE, NEXT, reuse, 4 * MIB, 1},
        {"reuse-40-of-ten", REUSE, SOON, reuse, 40, 10},
        {"reuse-40-of-thread", REUSE, SOON, reuse_of_thread, 40, 10},
        {"reuse-40-by-33", REUSE, NEXT, reuse_by_other_size, 40, 33},
        {"adjacent-40", ADJACENT, BESIDE, two_in_a_row, 40, 0},
        {"adjacent-208", ADJACENT, BESIDE, two_in_a_row, 208, 0},
        {"adjacent-4000", ADJACENT, BESIDE, two_in_a_row, 4000, 0},
        {"adjacent-100k", ADJACENT, BESIDE, two_in_a_row, 100000, 0},
        {"adjacent-40-hole", ADJACENT, BESIDE, beside_the_victim, 40, 0},
        {"adjacent-40-order", ADJACENT, "in five of ten tries the distance of two blocks is that of the two before",
         in_order, 40, 0},
        {0},
    };
    return run_attack(argc, argv, table);
}
