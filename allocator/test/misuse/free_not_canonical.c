/* expect: culet: free of 0xfffffffffffffff0: not a culet block; nothing is mapped there */
#include "misuse.h"

int main(void)
{
    free((void *)~(uintptr_t)15);
}
