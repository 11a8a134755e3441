/* mismatch.c - a block is freed by a function, or with a size or an alignment, that does not belong to the one that
 * allocated it. The C++ operators are called by their names in the library, so that no C++ compiler is needed. */
#include "attack.h"

enum { AROUND = 32, NEXT = 64 };

typedef void *get_function(size_t);
typedef void *get_aligned_function(size_t, size_t);
typedef void put_function(void *);
typedef void put_with_function(void *, size_t); /* a size or an alignment */

#define NEW "_Znwm"
#define NEW_ARRAY "_Znam"
#define NEW_ALIGNED "_ZnwmSt11align_val_t"
#define DELETE "_ZdlPv"
#define DELETE_ARRAY "_ZdaPv"
#define DELETE_SIZED "_ZdlPvm"
#define DELETE_ALIGNED "_ZdlPvSt11align_val_t"

/* A function of this name as the program would call it: the allocator's own, or libstdc++'s, which calls malloc. */
static void *function(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    if (!found && dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL))
        found = dlsym(RTLD_DEFAULT, name);
    if (!found)
        give_up("there is no %s: install libstdc++6", name);
    return found;
}

static void *get_by(const char *name, size_t bytes)
{
    return hide(((get_function *)function(name))(bytes));
}

static void put_by(const char *name, void *block)
{
    ((put_function *)function(name))(hide(block));
    hide(block);
}

static void put_with(const char *name, void *block, size_t number)
{
    ((put_with_function *)function(name))(hide(block), number);
    hide(block);
}

/* ---- types: the effect is that the call returns ---- */

static const struct pair {
    const char *get, *put;
} pairs[] = {{"malloc", DELETE}, {"malloc", DELETE_ARRAY}, {NEW, "free"}, {NEW_ARRAY, DELETE}, {NEW, DELETE_ARRAY}};

static void wrong_type(size_t bytes, size_t number)
{
    void *block = get_by(pairs[number].get, bytes);

    put_by(pairs[number].put, block);
    succeed();
}

/* An array of objects with destructors has its length in front of the first object. */
static void delete_of_objects(size_t bytes, size_t length_bytes)
{
    own_blocks(AROUND, bytes);
    unsigned char *block = get_by(NEW_ARRAY, bytes);
    own(block, bytes);
    put_by(DELETE, block + length_bytes);
    own_and_use(NEXT, bytes);
}

/* ---- sizes and alignments ---- */

/* One of many blocks is freed; succeeds if blocks of either size then overlap. */
static void use_both(size_t bytes, size_t other)
{
    own_and_use(NEXT, other);
    own_and_use(NEXT, bytes);
}

static void delete_sized(size_t bytes, size_t given)
{
    for (int i = 0; i < AROUND; i++)
        own(get_by(NEW, bytes), bytes);
    owners[AROUND / 2].released = true;
    put_with(DELETE_SIZED, owners[AROUND / 2].start, given);
    use_both(bytes, given);
}

/* A C library before C23 has no free_sized; programs then call free. */
static void free_with_size(size_t bytes, size_t given)
{
    own_blocks(AROUND, bytes);
    owners[AROUND / 2].released = true;
    if (dlsym(RTLD_DEFAULT, "free_sized"))
        put_with("free_sized", owners[AROUND / 2].start, given);
    else
        release(owners[AROUND / 2].start);
    use_both(bytes, given);
}

static void delete_of_aligned(size_t bytes, size_t alignment)
{
    for (int i = 0; i < AROUND; i++)
        own(hide(((get_aligned_function *)function(NEW_ALIGNED))(bytes, alignment)), bytes);
    owners[AROUND / 2].released = true;
    put_by(DELETE, owners[AROUND / 2].start);
    use_both(bytes, alignment);
}

static void aligned_delete(size_t bytes, size_t alignment)
{
    for (int i = 0; i < AROUND; i++)
        own(get_by(NEW, bytes), bytes);
    owners[AROUND / 2].released = true;
    put_with(DELETE_ALIGNED, owners[AROUND / 2].start, alignment);
    use_both(bytes, alignment);
}

#define MISMATCH "Mismatched free"
#define ACCEPTED "the call returns"
#define OVERLAP "two blocks in use overlap"

int main(int argc, char **argv)
{
    static const struct attack table[] = {
        {"malloc-delete", MISMATCH, ACCEPTED, wrong_type, 40, 0},
        {"malloc-delete-array", MISMATCH, ACCEPTED, wrong_type, 40, 1},
        {"new-free", MISMATCH, ACCEPTED, wrong_type, 40, 2},
        {"new-array-delete", MISMATCH, ACCEPTED, wrong_type, 40, 3},
        {"new-delete-array", MISMATCH, ACCEPTED, wrong_type, 40, 4},
        {"new-array-of-objects-delete", MISMATCH, OVERLAP, delete_of_objects, 208, 8},
        {"delete-40-as-400", MISMATCH, OVERLAP, delete_sized, 40, 400},
        {"delete-400-as-40", MISMATCH, OVERLAP, delete_sized, 400, 40},
        {"delete-4000-as-100k", MISMATCH, OVERLAP, delete_sized, 4000, 100000},
        {"free-sized-40-as-400", MISMATCH, OVERLAP, free_with_size, 40, 400},
        {"new-aligned-delete", MISMATCH, OVERLAP, delete_of_aligned, 208, 4096},
        {"new-delete-aligned", MISMATCH, OVERLAP, aligned_delete, 208, 4096},
        {0},
    };
    return run_attack(argc, argv, table);
}
