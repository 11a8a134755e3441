/* expect: culet: double free of {p}: the 48-byte block {p} (size class 48) is already free */
#include "misuse.h"

int main(void)
{
    void *p = malloc(48);
    name("p", p);
    need(realloc(p, 0) == NULL, "realloc to nothing frees");
    free(p);
}
