/* expect: culet: free of 0x10: not a culet block; nothing is mapped there */
#include "misuse.h"

int main(void)
{
    free((void *)16);
}
