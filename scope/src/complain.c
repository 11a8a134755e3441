#include "complain.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void culet_complain(const char *format, ...)
{
    va_list arguments;

    fputs("culet-scope: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _exit(1);
}

static int notes = STDERR_FILENO;

void culet_notes_to(int descriptor)
{
    notes = descriptor;
}

void culet_note(const char *format, ...)
{
    char sentence[1024], line[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    int length = snprintf(line, sizeof line, "culet-scope: note: %.1000s\n", sentence);
    /* Nobody may listen; the reading is worth as much without. */
    if (write(notes, line, (size_t)length) < 0)
        return;
}
