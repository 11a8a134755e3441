#include "housekeeping.h"

#include "profiler.h"
#include "purge.h"
#include "scavenger.h"
#include "stack.h"

void culet_housekeeping(const void *caller)
{
    culet_scavenger_check(caller);
    culet_stack_check();
    culet_purge_small_heap();
    culet_purge_on_growth();
    culet_profiler_check();
}
