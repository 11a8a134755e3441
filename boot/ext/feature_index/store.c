#include "feature_index/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"

#define LOCK_STEP_NANOSECONDS 2000000

static const char *check_index(struct culet_index *index, const void *base, size_t bytes)
{
    const char *problem = culet_index_check(index, base, bytes);
    size_t head = sizeof(*index->header);

    if (problem != NULL)
        return problem;
    return culet_index_sum((const uint8_t *)base + head, bytes - head) == index->header->sum ? NULL : "it is damaged";
}

/* Not mapped: if the file were truncated while mapped, the process would be killed. */
static const char *read_file(struct culet_index *index, int file)
{
    struct stat status;
    const char *problem;
    void *base;

    if (fstat(file, &status) != 0)
        return strerror(errno);
    if (!S_ISREG(status.st_mode))
        return "it is not a regular file";
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return "it belongs to another user";
    if (status.st_mode & (S_IWGRP | S_IWOTH))
        return "other users may write to it";
    if (status.st_size < (off_t)sizeof(struct culet_index_header) || status.st_size > (off_t)CULET_INDEX_MAX_BYTES)
        return "it does not have the size of an index";
    base = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return strerror(errno);
    problem = culet_read_all_at(file, base, (size_t)status.st_size, 0) == (size_t)status.st_size
                  ? check_index(index, base, (size_t)status.st_size)
                  : "it cannot be read";
    if (problem == NULL && mprotect(base, (size_t)status.st_size, PROT_READ) != 0)
        problem = strerror(errno);
    if (problem != NULL) {
        munmap(base, (size_t)status.st_size);
        memset(index, 0, sizeof(*index));
    }
    return problem;
}

const char *culet_store_read(struct culet_index *index, const char *path)
{
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const char *problem;

    if (file < 0)
        return strerror(errno);
    problem = read_file(index, file);
    close(file);
    return problem;
}

void culet_store_free(struct culet_index *index)
{
    if (index->in_memory)
        free((void *)(uintptr_t)index->base);
    else if (index->base != NULL)
        munmap((void *)(uintptr_t)index->base, index->bytes);
    memset(index, 0, sizeof(*index));
}

int culet_store_write(const char *path, const void *bytes, size_t count)
{
    char temporary[PATH_MAX];
    int file, error;

    if (snprintf(temporary, sizeof(temporary), "%s.%ld.part", path, (long)getpid()) >= (int)sizeof(temporary))
        return ENAMETOOLONG;
    unlink(temporary); /* of a killed process with this PID */
    file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR);
    if (file < 0)
        return errno;
    error = culet_write_all(file, bytes, count);
    if (close(file) != 0 && error == 0)
        error = errno;
    if (error == 0 && rename(temporary, path) != 0)
        error = errno;
    if (error != 0)
        unlink(temporary);
    return error;
}

int culet_store_prepare(const char *path)
{
    char folder[PATH_MAX];
    size_t length = strlen(path), i;

    if (length >= sizeof(folder))
        return ENAMETOOLONG;
    memcpy(folder, path, length + 1);
    for (i = 1; i < length; i++) {
        if (folder[i] != '/')
            continue;
        folder[i] = '\0';
        if (mkdir(folder, S_IRWXU) != 0 && errno != EEXIST && access(folder, F_OK) != 0)
            return errno;
        folder[i] = '/';
    }
    return 0;
}

int culet_store_lock(const char *path, unsigned milliseconds)
{
    const struct timespec step = {.tv_nsec = LOCK_STEP_NANOSECONDS};
    unsigned steps = milliseconds * 1000000 / LOCK_STEP_NANOSECONDS;
    char name[PATH_MAX];
    int lock;

    if (snprintf(name, sizeof(name), "%s.lock", path) >= (int)sizeof(name))
        return CULET_LOCK_REFUSED;
    lock = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (lock < 0)
        return CULET_LOCK_REFUSED;
    while (flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        if (steps-- == 0) {
            close(lock);
            return CULET_LOCK_BUSY;
        }
        nanosleep(&step, NULL);
    }
    return lock;
}

void culet_store_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}
