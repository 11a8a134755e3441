/* early_resolver.c - allocation in an IFUNC's resolver: the dynamic loader is still relocating the program, and has not
 * yet given thread-local variables their initial values. glibc's own allocator serves that. */
#include "programs.h"

static void *from_resolver;

static int resolved(void)
{
    return 42;
}

/* Runs while the dynamic loader still relocates this program; the libraries it preloads are relocated by then. */
__attribute__((used)) static int (*resolve(void))(void)
{
    from_resolver = malloc(500);
    return resolved;
}
int chosen(void) __attribute__((ifunc("resolve")));

TEST(allocated_in_a_resolver)
{
    CHECK_EQUAL(chosen(), 42);
    CHECK(from_resolver && malloc_usable_size(from_resolver) >= 500, "the resolver's block is %p", from_resolver);
    fill(from_resolver, 1, 500);
    free(from_resolver);
}

CHECK_MAIN
