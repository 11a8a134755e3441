/* expect: culet: double free of {p}: the 48-byte block {p} (size class 48) is already free */
/* Freed by the parent before the fork, by the child after it. */
#include "misuse.h"

int main(void)
{
    void *p = malloc(48);
    name("p", p);
    free(p);
    pid_t child = fork();
    need(child >= 0, "a child");
    if (child == 0) {
        free(p);
        _exit(0);
    }
    int status;
    need(waitpid(child, &status, 0) == child, "the child's end");
    if (WIFSIGNALED(status))
        raise(WTERMSIG(status));
}
