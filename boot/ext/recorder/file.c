#include "recorder/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"

#define MAX_NUMBER 1000

static char folder[PATH_MAX];
static char path[PATH_MAX];
static pid_t file_pid; /* the process that the file belongs to; 0: none yet */
static off_t written;  /* bytes written */
static int is_open;    /* the file exists and recording continues */
static int failed;

void culet_recorder_file_in(const char *name)
{
    snprintf(folder, sizeof(folder), "%s", name);
}

static int fail(const char *what, const char *why)
{
    char words[PATH_MAX + 200];
    int length;

    if (!failed) {
        length = snprintf(words, sizeof(words), "culet: the recording of requires stops: cannot %s in %s: %s\n", what,
                          folder, why);
        (void)culet_write_all(STDERR_FILENO, words, (size_t)length);
    }
    failed = 1;
    is_open = 0;
    return 0;
}

/* After exec the process finds its earlier file and takes the next number. */
static int create_file(void)
{
    is_open = 0;
    file_pid = getpid();
    written = 0;
    for (int number = 0; number < MAX_NUMBER; number++) {
        if (snprintf(path, sizeof(path), "%s/%d-%d.jsonl", folder, (int)file_pid, number) >= (int)sizeof(path))
            return fail("name a file", strerror(ENAMETOOLONG));
        int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0) {
            close(file);
            return is_open = 1;
        }
        if (errno != EEXIST)
            break;
    }
    return fail("create a file", strerror(errno));
}

int culet_recorder_file_begun(void)
{
    return is_open && file_pid == getpid();
}

int culet_recorder_file_ready(void)
{
    if (failed)
        return 0;
    if (culet_recorder_file_begun())
        return 1;
    return create_file() ? 2 : 0;
}

/* Returns NULL or an error message. Writing beyond RLIMIT_FSIZE would end the program, so the limit is checked
 * first. */
static const char *append(int file, const char *bytes, size_t length)
{
    struct rlimit most;
    struct stat status;
    int error;

    if (fstat(file, &status) != 0)
        return strerror(errno);
    if (status.st_size < written)
        return "the file was truncated";
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY &&
        (rlim_t)written + length > most.rlim_cur)
        return strerror(EFBIG);
    error = lseek(file, written, SEEK_SET) < 0 ? errno : culet_write_all(file, bytes, length);
    if (error != 0)
        return strerror(error);
    written += (off_t)length;
    return NULL;
}

/* Opened each time, because programs close unknown descriptors or rely on descriptor numbers. */
void culet_recorder_file_add(const char *bytes, size_t length)
{
    const char *problem;
    int file;

    if (length == 0 || !is_open)
        return;
    file = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    problem = file < 0 ? strerror(errno) : append(file, bytes, length);
    if (file >= 0)
        close(file);
    if (problem != NULL)
        fail("write", problem);
}
