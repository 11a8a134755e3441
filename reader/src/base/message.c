#include "base/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void culet_fail(const char *format, ...)
{
    va_list arguments;

    fputs("culet-scope: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _exit(1);
}

static int note_descriptor = STDERR_FILENO;

void culet_note_to(int descriptor)
{
    note_descriptor = descriptor;
}

void culet_note(const char *format, ...)
{
    char sentence[1024], line[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    int length = snprintf(line, sizeof line, "culet-scope: note: %.1000s\n", sentence);
    /* A closed descriptor is no reason to fail. */
    if (write(note_descriptor, line, (size_t)length) < 0)
        return;
}
