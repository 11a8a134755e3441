#include "retain/root_category.h"

#include <string.h>

enum culet_root_category culet_root_category_of(const char *name, size_t length)
{
    static const struct {
        const char *name;
        enum culet_root_category category;
    } categories[] = {{"finalizers", ROOT_FINALIZERS},  {"machine_context", ROOT_STACK},
                      {"global_list", ROOT_C_VARIABLE}, {"registered_globals", ROOT_C_VARIABLE},
                      {"end_proc", ROOT_AT_EXIT},       {"global_tbl", ROOT_GLOBAL},
                      {"global_symbols", ROOT_SYMBOLS}, {"ractor", ROOT_RACTOR}};

    for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++)
        if (strlen(categories[i].name) == length && memcmp(categories[i].name, name, length) == 0)
            return categories[i].category;
    return ROOT_VM;
}
