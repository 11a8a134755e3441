/* expect: culet: realloc of {q}: not a culet block; it lies in {program} */
#include "misuse.h"

static long data[64] = {1};

int main(void)
{
    name("q", data);
    need(realloc(data, 1000) != NULL, "unreachable");
}
