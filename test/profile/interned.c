/* A thread uses a table all the time while the process forks. Ends with 0 if each child can use the table, too. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile/interned.h"

#define FORKS 200
#define SECONDS 10 /* for a child */

static struct culet_texts table = CULET_INTERNED_EMPTY;

/* Not called. */
void culet_buffer_add(struct culet_buffer *buffer, const void *bytes, size_t length)
{
    (void)buffer, (void)bytes, (void)length;
}

void culet_buffer_text(struct culet_buffer *buffer, const char *text)
{
    (void)buffer, (void)text;
}

void culet_buffer_format(struct culet_buffer *buffer, const char *format, ...)
{
    (void)buffer, (void)format;
}

static void *use_table(void *unused)
{
    (void)unused;
    for (;;)
        (void)culet_interned_number(&table, "String", strlen("String"), 10);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int status = culet_interned_prepare();

    if (status != 0 || pthread_create(&thread, NULL, use_table, NULL) != 0)
        return 2;
    for (int i = 0; i < FORKS && status == 0; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS);
            _exit(culet_interned_number(&table, "Array", strlen("Array"), 10) == 0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
            return 2;
    }
    return status != 0;
}
