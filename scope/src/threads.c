#include "threads.h"

#include "stream.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_line(pid_t pid, pid_t tid, const char *file, char *line, size_t room)
{
    char name[96];

    snprintf(name, sizeof name, "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
    FILE *stream = fopen(name, "re");
    bool got = stream && fgets(line, (int)room, stream);
    if (stream)
        fclose(stream);
    if (got)
        line[strcspn(line, "\n")] = 0;
    return got;
}

/* "NUMBER ARGUMENTS... STACK-POINTER INSTRUCTION", "-1 STACK-POINTER INSTRUCTION", or "running". */
static uint64_t stack_pointer(const char *line)
{
    const char *last = strrchr(line, ' ');

    while (last && last > line && last[-1] != ' ')
        last--;
    return last && last > line ? strtoull(last, NULL, 16) : 0;
}

void culet_threads_read(struct culet_threads *threads, pid_t pid)
{
    char name[64], line[512];
    struct dirent *entry;

    snprintf(name, sizeof name, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(name);
    while (tasks && (entry = readdir(tasks))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid <= 0)
            continue;
        threads->all = culet_grow(threads->all, &threads->room, threads->count + 1, sizeof *threads->all);
        struct culet_thread_stack *thread = &threads->all[threads->count++];
        *thread = (struct culet_thread_stack){.tid = tid};
        if (read_line(pid, tid, "syscall", line, sizeof line))
            thread->pointer = stack_pointer(line);
    }
    if (tasks)
        closedir(tasks);
}

void culet_threads_name(struct culet_threads *threads, pid_t pid)
{
    for (size_t i = 0; i < threads->count; i++)
        if (!read_line(pid, threads->all[i].tid, "comm", threads->all[i].name, sizeof threads->all[i].name))
            threads->all[i].name[0] = 0;
}

void culet_threads_tell(const struct culet_threads *threads)
{
    for (size_t i = 0; i < threads->count; i++) {
        const struct culet_thread_stack *thread = &threads->all[i];
        struct culet_json json;
        culet_json_begin(&json, "thread");
        culet_json_number(&json, "tid", (uint64_t)thread->tid);
        culet_json_text(&json, "name", thread->name);
        if (thread->mapping)
            culet_json_number(&json, "stack_mapping", thread->mapping->id);
        else
            culet_json_raw(&json, "stack_mapping", "null");
        culet_json_end(&json);
    }
}
