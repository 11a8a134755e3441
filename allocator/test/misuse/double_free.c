/* expect: culet: double free of {p}: the 48-byte block {p} (size class 48) is already free */
#include "misuse.h"

int main(void)
{
    void *p = malloc(40);
    name("p", p);
    free(p);
    free(p);
}
