/* Random sequences of all functions by one thread, against a model: contents, alignment, overlap, usable sizes,
 * zeros, errno, and the bytes in use, exactly. Runs MODEL_SEEDS (default 6) sequences, from seed MODEL_FIRST
 * (default 1) on. */
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "heap_counts.h"
#include "os.h"
#include "resident.h"

#include <errno.h>

#define BLOCKS 1500
#define STEPS 12000

struct block {
    unsigned char *start;
    size_t alignment;
    size_t bytes;  /* requested */
    size_t usable; /* all of it is written */
    unsigned char mark;
};

/* Sorted by address. */
static struct block blocks[BLOCKS];
static unsigned count;
static size_t in_use;
static uint64_t state, seed_now;

/* CHECK, with the seed that repeats it. */
#define AGREE(condition, format, ...) CHECK(condition, "seed %lu: " format, (unsigned long)seed_now, __VA_ARGS__)

static size_t draw(size_t below)
{
    return check_random(&state) % below;
}

static size_t draw_bytes(void)
{
    switch (draw(12)) {
    case 0:
        return draw(3);
    case 1:
        return draw(40000);
    case 2:
        return (size_t)CULET_PAGE * (1 + draw(10)) + draw(3) - 1;
    case 3:
        return draw(40) ? draw(5000) : draw(400000);
    case 4:
        return draw(60) ? draw(3000) : draw(5 << 20);
    default:
        return draw(1100);
    }
}

static void write_all(struct block *block)
{
    block->mark = (unsigned char)(draw(255) + 1);
    memset(block->start, block->mark, block->usable);
}

static void read_some(const struct block *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (block->start[i] != block->mark)
            AGREE(false, "byte %zu of a block of %zu at %p was changed", i, block->bytes, (void *)block->start);
}

/* The index of an address in the sorted table. */
static unsigned place(const unsigned char *start)
{
    unsigned low = 0, high = count;

    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (blocks[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void enter(unsigned char *start, size_t bytes, size_t alignment)
{
    unsigned at = place(start);
    struct block block = {
        .start = start, .bytes = bytes, .alignment = alignment, .usable = culet_malloc_usable_size(start)};

    AGREE((uintptr_t)start % alignment == 0, "%p is not aligned to %zu", (void *)start, alignment);
    AGREE(block.usable >= bytes, "%zu bytes usable, %zu requested", block.usable, bytes);
    AGREE(at == count || start + block.usable <= blocks[at].start, "%p overlaps the block behind it", (void *)start);
    AGREE(at == 0 || blocks[at - 1].start + blocks[at - 1].usable <= start, "%p overlaps the block before it",
          (void *)start);
    memmove(&blocks[at + 1], &blocks[at], (count - at) * sizeof *blocks);
    blocks[at] = block;
    count++;
    in_use += block.usable;
    write_all(&blocks[at]);
}

static struct block leave(unsigned at)
{
    struct block block = blocks[at];

    read_some(&block, block.usable);
    AGREE(culet_malloc_usable_size(block.start) == block.usable, "%zu bytes usable became %zu", block.usable,
          culet_malloc_usable_size(block.start));
    count--;
    memmove(&blocks[at], &blocks[at + 1], (count - at) * sizeof *blocks);
    in_use -= block.usable;
    return block;
}

static void get(void)
{
    size_t bytes = draw_bytes(), page = culet_os_page_bytes(), alignment = CULET_ALIGNMENT, power;
    void *got = NULL;

    switch (draw(9)) {
    case 0:
    case 1:
    case 2:
        got = culet_malloc(bytes);
        break;
    case 3: {
        size_t each = 1 + draw(40);
        bytes = bytes / each * each;
        got = culet_calloc(bytes / each, each);
        for (size_t i = 0; got && i < bytes; i++)
            if (((unsigned char *)got)[i])
                AGREE(false, "byte %zu of %zu from calloc is not zero", i, bytes);
        break;
    }
    case 4: { /* memalign rounds any number up to a power of two */
        size_t asked = draw(3) ? (size_t)1 << draw(18) : 1 + draw(9000);
        for (power = 1; power < asked;)
            power *= 2;
        alignment = power > alignment ? power : alignment;
        got = culet_memalign(asked, bytes);
        break;
    }
    case 5:
        alignment = (size_t)sizeof(void *) << draw(16);
        errno = 77;
        AGREE(culet_posix_memalign(&got, alignment, bytes) == 0, "no memory for %zu bytes at %zu", bytes, alignment);
        AGREE(errno == 77, "posix_memalign changed errno to %d", errno);
        break;
    case 6:
        alignment = (size_t)1 << draw(21);
        got = culet_aligned_alloc(alignment, bytes);
        break;
    case 7:
        alignment = page;
        got = draw(2) ? culet_valloc(bytes) : (bytes = (bytes + page - 1) / page * page, culet_pvalloc(bytes));
        break;
    case 8:
        got = draw(2) ? culet_realloc(NULL, bytes) : culet_reallocarray(NULL, bytes, 1);
        break;
    }
    AGREE(got, "no memory for %zu bytes at %zu", bytes, alignment);
    enter(got, bytes, alignment);
}

static void give(void)
{
    struct block block = leave((unsigned)draw(count));

    errno = 78;
    switch (draw(6)) {
    case 0:
        if (block.alignment > CULET_ALIGNMENT)
            culet_free(block.start);
        else
            culet_free_sized(block.start, block.bytes);
        break;
    case 1:
        culet_free_aligned_sized(block.start, block.alignment, block.bytes);
        break;
    case 2:
        AGREE(culet_realloc(block.start, 0) == NULL, "realloc to nothing gave %s", "a block");
        break;
    default:
        culet_free(block.start);
    }
    AGREE(errno == 78, "a free changed errno to %d", errno);
}

static void resize(void)
{
    struct block block = leave((unsigned)draw(count));
    size_t bytes = draw(3) ? draw_bytes() + 1 : block.bytes + 1 + draw(block.bytes + 64), kept;
    unsigned char *got;

    if (draw(2))
        got = culet_realloc(block.start, bytes);
    else
        got = culet_reallocarray(block.start, 1, bytes);
    AGREE(got, "no memory for %zu bytes", bytes);
    kept = bytes < block.bytes ? bytes : block.bytes;
    block.start = got;
    read_some(&block, kept);
    enter(got, bytes, CULET_ALIGNMENT);
}

/* Impossible requests: NULL, ENOMEM, and every block unchanged. */
static void ask_too_much(void)
{
    struct block *block = &blocks[draw(count)];
    size_t bytes = SIZE_MAX - draw(1 << 20) * draw(3);
    void *got = block;

    errno = 0;
    switch (draw(8)) {
    case 0:
        got = culet_malloc(bytes);
        break;
    case 1:
        got = culet_calloc(bytes / 2, 3 + draw(100));
        break;
    case 2:
        got = culet_realloc(block->start, bytes);
        break;
    case 3:
        got = culet_reallocarray(block->start, bytes / 4, 5 + draw(100));
        break;
    case 4:
        got = culet_memalign((size_t)1 << draw(63), bytes / 2 + 1);
        break;
    case 5:
        AGREE(culet_posix_memalign(&got, 64, bytes) == ENOMEM, "posix_memalign of %zu bytes", bytes);
        AGREE(got == block, "posix_memalign wrote %p", got);
        got = NULL;
        errno = ENOMEM;
        break;
    case 6:
        got = draw(2) ? culet_pvalloc(bytes) : culet_valloc(bytes);
        break;
    case 7:
        got = culet_malloc((size_t)PTRDIFF_MAX - draw(5000));
        break;
    }
    AGREE(!got, "%zu bytes were given", bytes);
    AGREE(errno == ENOMEM, "errno is %d", errno);
    read_some(block, block->usable);
}

static void compare_counts(void)
{
    struct mallinfo2 info = culet_mallinfo2();

    AGREE(info.uordblks + info.hblkhd == in_use, "%zu bytes in use by the heap's count, %zu by the model's",
          info.uordblks + info.hblkhd, in_use);
    culet_heap_check();
}

static void step(unsigned i, size_t aim)
{
    unsigned what = (unsigned)draw(100);

    if (count == 0 || (count < BLOCKS - 1 && what < (count < aim ? 50 : 20)))
        get();
    else if (what < 75)
        give();
    else if (what < 97)
        resize();
    else
        ask_too_much();
    if (i % 128 == 0)
        compare_counts();
    if (draw(1500) == 0)
        culet_malloc_trim(draw(2) ? 0 : draw(1 << 22));
}

static void run_seed(uint64_t seed)
{
    size_t aim = BLOCKS;

    seed_now = state = seed;
    for (unsigned i = 0; i < STEPS; i++) {
        if (i % 2000 == 0)
            aim = draw(BLOCKS);
        step(i, aim);
    }
    while (count)
        give();
    compare_counts();
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *given = getenv(name);

    return given ? strtoull(given, NULL, 10) : otherwise;
}

TEST(random_sequences_agree_with_the_model)
{
    uint64_t first = number("MODEL_FIRST", 1), seeds = number("MODEL_SEEDS", 6);

    for (uint64_t seed = first; seed < first + seeds; seed++) {
        alarm(CHECK_SECONDS); /* a bound per sequence */
        run_seed(seed);
    }
    struct heap_counts counts;
    culet_malloc_trim(0);
    count_heap(&counts);
    CHECK_EQUAL(counts.pages.used, 0);
}

/* A kernel that refuses one mapping in three: a failed request changes nothing. */
static bool refuse_some(void)
{
    return draw(3) == 0;
}

static void try_everything(void)
{
    struct block *block = count ? &blocks[draw(count)] : NULL;
    size_t bytes = draw_bytes() + 1;
    unsigned char *got = NULL;

    errno = 0;
    culet_os_refuse = refuse_some;
    if (block && draw(2)) {
        struct block old = leave((unsigned)draw(count));
        got = culet_realloc(old.start, bytes);
        culet_os_refuse = NULL;
        AGREE(got || (bytes > old.bytes && errno == ENOMEM), "realloc from %zu to %zu, errno %d", old.bytes, bytes,
              errno);
        if (got)
            old.start = got;
        read_some(&old, got && bytes < old.bytes ? bytes : old.bytes);
        enter(old.start, got ? bytes : old.bytes, got ? CULET_ALIGNMENT : old.alignment);
    } else if (count < BLOCKS - 1) {
        size_t alignment = draw(2) ? CULET_ALIGNMENT : (size_t)16 << draw(10);
        got = alignment == CULET_ALIGNMENT ? culet_calloc(1, bytes) : culet_memalign(alignment, bytes);
        culet_os_refuse = NULL;
        AGREE(got || errno == ENOMEM, "errno is %d", errno);
        if (got)
            enter(got, bytes, alignment);
    }
    culet_os_refuse = NULL;
}

TEST(refusals_now_and_then_leave_no_trace)
{
    uint64_t first = number("MODEL_FIRST", 1), seeds = number("MODEL_SEEDS", 6);

    for (uint64_t seed = first; seed < first + seeds; seed++) {
        alarm(CHECK_SECONDS);
        seed_now = state = seed;
        for (unsigned i = 0; i < STEPS; i++) {
            if (draw(3))
                try_everything();
            else if (count)
                give();
            if (i % 128 == 0)
                compare_counts();
        }
        while (count)
            give();
        compare_counts();
    }
}

CHECK_MAIN
