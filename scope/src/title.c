#include "title.h"

#include <stdio.h>
#include <string.h>

/* Whether there are words behind the first, other than the NULs that a title leaves there. */
static int words_follow(const char *text, size_t bytes)
{
    for (size_t i = strlen(text); i < bytes; i++)
        if (text[i])
            return 1;
    return 0;
}

void culet_title_read(pid_t pid, char *text, size_t bytes)
{
    char name[64];

    snprintf(name, sizeof name, "/proc/%d/cmdline", (int)pid);
    FILE *file = fopen(name, "re");
    size_t got = file ? fread(text, 1, bytes - 1, file) : 0;
    if (file)
        fclose(file);
    text[got] = 0;
    if (words_follow(text, got))
        *text = 0;
    for (size_t end = strlen(text); end > 0 && text[end - 1] == ' '; end--)
        text[end - 1] = 0;
    if (!strchr(text, ' '))
        *text = 0;
}
