#include "agent/socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 128
#define FOLDER "culet"
#define TRIES 4 /* names of 64 random bits: a collision is improbable */

/* ---- the folder ---- */

/* Opens a folder if it belongs to this user.
 *
 * others: mode bits that must not be set
 * Returns a descriptor, or -1. */
static int open_own(int within, const char *name, mode_t others)
{
    int fd = openat(within, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat stat;

    if (fd < 0)
        return -1;
    if (fstat(fd, &stat) == 0 && stat.st_uid == geteuid() && (stat.st_mode & others) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Opens "culet" in a folder in which no other user can create files. Returns a descriptor, or -1. */
static int open_folder(const char *base)
{
    int outer, inner;

    if (base == NULL || base[0] != '/')
        return -1;
    outer = open_own(AT_FDCWD, base, S_IWGRP | S_IWOTH);
    if (outer < 0)
        return -1;
    (void)mkdirat(outer, FOLDER, S_IRWXU); /* if it exists, opening it checks it */
    inner = open_own(outer, FOLDER, S_IRWXG | S_IRWXO);
    close(outer);
    return inner;
}

/* PID namespaces may share a folder and use the same PIDs. 0: /proc is not mounted. */
static unsigned long long namespace_inode(void)
{
    struct stat space = {0};

    (void)stat("/proc/self/ns/pid", &space);
    return (unsigned long long)space.st_ino;
}

/* Removes the sockets of killed processes. Takes the descriptor. */
static void sweep_folder(int folder)
{
    unsigned long long own = namespace_inode(), inode;
    struct dirent *entry;
    DIR *list = fdopendir(folder);
    long pid;

    if (list == NULL) {
        close(folder);
        return;
    }
    while (own != 0 && (entry = readdir(list)) != NULL)
        if (sscanf(entry->d_name, "agent-%ld-%llu", &pid, &inode) == 2 && inode == own && pid > 0 &&
            kill((pid_t)pid, 0) != 0 && errno == ESRCH)
            (void)unlinkat(folder, entry->d_name, 0);
    closedir(list);
}

static int listen_in(struct culet_agent_socket *opened, const char *base, int sweep)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = sizeof(address.sun_path);
    int folder = open_folder(base), length, bound;

    if (folder < 0)
        return 0;
    if (sweep)
        sweep_folder(folder);
    else
        close(folder);
    length = snprintf(address.sun_path, size, "%s/" FOLDER "/agent-%ld-%llu", base, (long)getpid(), namespace_inode());
    if (length < 0 || (size_t)length >= size)
        return 0;
    (void)unlink(address.sun_path); /* of an earlier process with this PID */
    bound = bind(opened->fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    if (bound)
        memcpy(opened->path, address.sun_path, sizeof(opened->path));
    return bound;
}

static int listen_in_folder(struct culet_agent_socket *opened, int sweep)
{
    char folder[64], first[sizeof(opened->path)];
    const char *list = getenv("RUNTIME_DIRECTORY");

    if (listen_in(opened, getenv("XDG_RUNTIME_DIR"), sweep))
        return 1;
    if (list != NULL) {
        snprintf(first, sizeof(first), "%.*s", (int)strcspn(list, ":"), list);
        if (listen_in(opened, first, sweep))
            return 1;
    }
    snprintf(folder, sizeof(folder), "/run/user/%lu", (unsigned long)geteuid());
    return listen_in(opened, folder, sweep) || (geteuid() == 0 && listen_in(opened, "/run", sweep));
}

/* ---- the abstract name ---- */

static int listen_abstract(struct culet_agent_socket *opened)
{
    for (int i = 0; i < TRIES; i++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        uint64_t number;
        int length;

        if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number))
            return 0;
        length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "culet-agent/%ld/%016llx", (long)getpid(),
                          (unsigned long long)number);
        if (bind(opened->fd, (struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0)
            return 1;
        if (errno != EADDRINUSE)
            return 0;
    }
    return 0;
}

int culet_agent_socket_open(struct culet_agent_socket *opened, int sweep)
{
    int error;

    *opened = (struct culet_agent_socket){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (opened->fd < 0)
        return errno;
    if ((listen_in_folder(opened, sweep) || listen_abstract(opened)) && listen(opened->fd, BACKLOG) == 0)
        return 0;
    error = errno;
    culet_agent_socket_close(opened, 0);
    return error;
}

void culet_agent_socket_forget(struct culet_agent_socket *opened)
{
    if (opened->path[0] != '\0')
        (void)unlink(opened->path);
    opened->path[0] = '\0';
}

void culet_agent_socket_close(struct culet_agent_socket *opened, int keep_name)
{
    if (opened->fd >= 0)
        close(opened->fd);
    if (!keep_name)
        culet_agent_socket_forget(opened);
    *opened = (struct culet_agent_socket){.fd = -1};
}
