#include "process/proc.h"

#include "base/buffer.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct culet_proc_path culet_proc_path(const char *format, ...)
{
    struct culet_proc_path path;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(path.text, sizeof path.text, format, arguments);
    va_end(arguments);
    return path;
}

bool culet_proc_line(const char *file, char *line, size_t room)
{
    FILE *stream = fopen(file, "re");
    bool got = stream && fgets(line, (int)room, stream);

    if (stream)
        fclose(stream);
    line[got ? strcspn(line, "\n") : 0] = 0;
    return got;
}

bool culet_proc_number(const char *file, const char *key, long *number)
{
    char line[512];
    bool found = false;
    FILE *stream = fopen(file, "re");

    while (stream && !found && fgets(line, sizeof line, stream))
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':') {
            *number = strtol(line + strlen(key) + 1, NULL, 10);
            found = true;
        }
    if (stream)
        fclose(stream);
    return found;
}

bool culet_proc_stat(const char *file, char *state, uint64_t fields[CULET_PROC_FIELDS])
{
    char text[2048];
    FILE *stream = fopen(file, "re");
    size_t length = stream ? fread(text, 1, sizeof text - 1, stream) : 0;

    if (stream)
        fclose(stream);
    text[length] = 0;
    /* The name in front, in parentheses, may contain anything. */
    char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || !at[2])
        return false;
    *state = at[2];
    at += 3;
    for (int i = 4; i < CULET_PROC_FIELDS; i++)
        fields[i] = (uint64_t)strtoll(at, &at, 10);
    return true;
}

size_t culet_proc_threads(pid_t process, pid_t **threads)
{
    DIR *tasks = opendir(culet_proc_path("/proc/%d/task", (int)process).text);
    size_t count = 0, room = 0;
    struct dirent *entry;

    *threads = NULL;
    while (tasks && (entry = readdir(tasks))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0)
            CULET_APPEND(*threads, count, room) = tid;
    }
    if (tasks)
        closedir(tasks);
    return count;
}

char culet_proc_state(pid_t process, pid_t tid)
{
    uint64_t fields[CULET_PROC_FIELDS];
    char state;

    return culet_proc_stat(culet_proc_path("/proc/%d/task/%d/stat", (int)process, (int)tid).text, &state, fields)
               ? state
               : 'X';
}

/* A title leaves NULs after its end; other arguments leave text. */
static bool has_arguments(const char *text, size_t bytes)
{
    for (size_t i = strlen(text); i < bytes; i++)
        if (text[i])
            return true;
    return false;
}

void culet_proc_title(pid_t pid, char *text, size_t bytes)
{
    FILE *file = fopen(culet_proc_path("/proc/%d/cmdline", (int)pid).text, "re");
    size_t got = file ? fread(text, 1, bytes - 1, file) : 0;
    if (file)
        fclose(file);
    text[got] = 0;
    if (has_arguments(text, got))
        *text = 0;
    for (size_t end = strlen(text); end > 0 && text[end - 1] == ' '; end--)
        text[end - 1] = 0;
    if (!strchr(text, ' '))
        *text = 0;
}
