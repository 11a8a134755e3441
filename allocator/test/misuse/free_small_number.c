/* expect: culet: free of 0x10: not a block of culet's; nothing is mapped there */
#include "misuse.h"

int main(void)
{
    free((void *)16);
}
