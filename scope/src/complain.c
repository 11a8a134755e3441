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
