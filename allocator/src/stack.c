#define _GNU_SOURCE
#include "stack.h"

#include "maps.h"
#include "os.h"
#include "program.h"

#include <string.h>

_Atomic bool culet_stack_requested;
static uintptr_t top;

void culet_stack_setup(void)
{
    top = (uintptr_t)__builtin_frame_address(0);
}

void culet_stack_request(void)
{
    static _Atomic bool wanted;

    if (!atomic_exchange_explicit(&wanted, true, memory_order_relaxed))
        atomic_store_explicit(&culet_stack_requested, true, memory_order_relaxed);
}

__attribute__((noinline)) size_t culet_stack_release(void)
{
    uintptr_t end = (uintptr_t)__builtin_frame_address(0) - CULET_STACK_MARGIN;
    struct culet_mapping stack;

    if (!culet_maps_find(end + CULET_STACK_MARGIN, &stack) || strcmp(stack.name, "[stack]") != 0 || stack.start >= end)
        return 0;
    return culet_os_purge(stack.start, end - stack.start);
}

void culet_stack_trim(void)
{
    if (top - (uintptr_t)__builtin_frame_address(0) >= CULET_STACK_REACH)
        return;
    atomic_store_explicit(&culet_stack_requested, false, memory_order_relaxed);
    if (culet_program_ruby())
        culet_stack_release();
}
