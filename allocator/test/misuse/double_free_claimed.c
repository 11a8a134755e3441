/* expect: culet: double free of {p}: the 640-byte block {p} (size class 640) is already free */
/* The freed block is in the thread's own cache again when it is freed for the second time. */
#include "misuse.h"

int main(void)
{
    static void *block[400];
    for (int i = 0; i < 400; i++)
        block[i] = malloc(640);
    void *a = block[200], *b = block[201], *got = NULL;
    free(a);
    free(b);
    /* Of two free blocks of a unit one is handed out as soon as the unit is claimed; the other is held. */
    for (int i = 0; i < 400 && got != a && got != b; i++)
        got = malloc(640);
    need(got == a || got == b, "the freed unit was claimed");
    void *p = got == a ? b : a;
    name("p", p);
    free(p);
}
