/* A library that a program loads to say what malloc itself knows, and to stop before anything changes any more. */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int freeze_now(void)
{
    char text[256];
    struct mallinfo2 info = mallinfo2();
    int length = snprintf(text, sizeof text, "%zu %zu %zu %zu %zu\nend\n", info.uordblks, info.fordblks, info.hblks,
                          info.hblkhd, info.fsmblks);

    if (write(STDOUT_FILENO, text, (size_t)length) != length)
        return 1;
    return raise(SIGSTOP);
}
