#include "mappings/thread_stacks.h"

#include "process/proc.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_line(pid_t process, pid_t tid, const char *file, char *line, size_t room)
{
    char name[96];

    snprintf(name, sizeof name, "/proc/%d/task/%d/%s", (int)process, (int)tid, file);
    return culet_proc_line(name, line, room);
}

/* "NUMBER ARGUMENTS... STACK-POINTER INSTRUCTION", "-1 STACK-POINTER INSTRUCTION", or "running". */
static uint64_t stack_pointer(const char *line)
{
    const char *last = strrchr(line, ' ');

    while (last && last > line && last[-1] != ' ')
        last--;
    return last && last > line ? strtoull(last, NULL, 16) : 0;
}

void culet_thread_stacks_list(struct culet_thread_stacks *threads, pid_t process)
{
    char name[64];
    struct dirent *entry;

    snprintf(name, sizeof name, "/proc/%d/task", (int)process);
    DIR *tasks = opendir(name);
    while (tasks && (entry = readdir(tasks))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid <= 0)
            continue;
        threads->all = culet_grow(threads->all, &threads->room, threads->count + 1, sizeof *threads->all);
        threads->all[threads->count++] = (struct culet_thread_stack){.tid = tid};
    }
    if (tasks)
        closedir(tasks);
}

bool culet_thread_stack_find_pointer(struct culet_thread_stack *thread, pid_t process)
{
    char line[512];

    if (read_line(process, thread->tid, "syscall", line, sizeof line))
        thread->pointer = stack_pointer(line);
    return thread->pointer;
}

void culet_thread_stacks_read_names(struct culet_thread_stacks *threads, pid_t process)
{
    for (size_t i = 0; i < threads->count; i++)
        read_line(process, threads->all[i].tid, "comm", threads->all[i].name, sizeof threads->all[i].name);
}
