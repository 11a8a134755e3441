/* usage: headless MEGABYTES
 *
 * Its main thread ends, another one goes on, with so many megabytes in blocks. Prints a line when the kernel reports
 * the main thread as ended. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t bytes;

static int main_has_ended(void)
{
    char name[64], text[512] = "", *at;

    snprintf(name, sizeof name, "/proc/self/task/%d/stat", (int)getpid());
    FILE *file = fopen(name, "r");
    if (file && !fgets(text, sizeof text, file))
        *text = 0;
    if (file)
        fclose(file);
    at = strrchr(text, ')');
    return at && at[2] == 'Z';
}

static void *stay(void *unused)
{
    for (size_t done = 0; done < bytes; done += 1000)
        memset(malloc(1000), 1, 1000);
    while (!main_has_ended())
        usleep(1000);
    puts("end");
    fflush(stdout);
    for (;;)
        pause();
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    bytes = (size_t)atoi(argc > 1 ? argv[1] : "1") << 20;
    if (pthread_create(&thread, NULL, stay, NULL))
        return 1;
    pthread_exit(NULL);
}
