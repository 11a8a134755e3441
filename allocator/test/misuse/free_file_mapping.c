/* expect: culet: free of {q}: not a culet block; it lies in {program} */
#include "misuse.h"

#include <fcntl.h>

int main(int count, char **argument)
{
    int fd = open(argument[count - 1], O_RDONLY);
    void *q = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    need(q != MAP_FAILED, "a mapping of the program's file");
    name("q", q);
    free(q);
}
