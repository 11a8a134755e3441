/* retain/root_category.h - the categories that Ruby has for its roots. */
#pragma once

#include <stddef.h>

enum culet_root_category {
    ROOT_VM,
    ROOT_FINALIZERS,
    ROOT_STACK,
    ROOT_C_VARIABLE,
    ROOT_AT_EXIT,
    ROOT_GLOBAL,
    ROOT_SYMBOLS,
    ROOT_RACTOR /* of the current one, where each has a heap of its own: with what its threads refer to */
};

/* The category with a name; ROOT_VM for all others. */
enum culet_root_category culet_root_category_of(const char *name, size_t length);
