/* expect: culet: free of {q}: not a culet block; it lies in {program} */
#include "misuse.h"

static long data[64] = {1};

int main(void)
{
    name("q", data);
    free(data);
}
