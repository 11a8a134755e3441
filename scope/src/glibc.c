#include "scope.h"

static bool recognise(struct culet_scope *scope)
{
    (void)scope;
    return false;
}

const struct culet_walker culet_glibc_walker = {.name = "glibc", .recognise = recognise};
