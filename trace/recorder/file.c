#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static struct culet_shared before_start; /* until the page is mapped */
struct culet_shared *culet_shared = &before_start;
_Atomic uint64_t culet_sequence = 1;

/* Not wiped, for a child to know where it comes from. Written under the lock. */
static char path[3072];      /* of the file */
static char base[2048];      /* what the user asked for */
static dev_t device;
static ino_t inode;
static uint64_t epochs;
static uint64_t monotonic_ns;
static uint64_t limit_chunks;
static pid_t process;
static _Atomic uint32_t threads;

static void lock(void)
{
    uint32_t free = 0;

    while (!atomic_compare_exchange_weak_explicit(&culet_shared->lock, &free, 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
        free = 0;
        sched_yield();
    }
}

static void unlock(void)
{
    atomic_store_explicit(&culet_shared->lock, 0, memory_order_release);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t culet_file_time(void)
{
    return (clock_ns(CLOCK_MONOTONIC) - monotonic_ns) / 1000;
}

uint32_t culet_file_thread(void)
{
    return atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
}

void culet_file_lost(void)
{
    struct culet_trace_header *header = culet_shared->header;

    if (header)
        atomic_fetch_add_explicit(&header->lost, 1, memory_order_relaxed);
}

/* The program must not be disturbed by what befalls the recording: one line, and it goes on without. */
static void stop(enum culet_trace_stop reason, const char *words, int error)
{
    char line[sizeof path + 256], text[128];

    atomic_store(&culet_shared->stopped, true);
    if (culet_shared->header)
        atomic_store(&culet_shared->header->stopped, reason);
    int bytes = snprintf(line, sizeof line, "culet: process %d is not recorded%s: %s%s%s\n", (int)getpid(),
                         culet_shared->header ? " any further" : "", words, error ? ": " : "",
                         error ? strerror_r(error, text, sizeof text) : "");
    if (bytes > 0 && write(STDERR_FILENO, line, (size_t)bytes) < 0)
        return; /* there is nobody to tell */
}

/* ---- making the file ---- */

static bool ask_environment(void)
{
    const char *name = environ ? getenv("CULET_TRACE_FILE") : NULL;
    const char *limit = environ ? getenv("CULET_TRACE_LIMIT") : NULL;

    if (!environ)
        return false; /* too early: libc does not have it yet */
    if (!name || !*name || strlen(name) >= sizeof base) {
        atomic_store(&culet_shared->stopped, true); /* the library was loaded, but nobody wants a recording */
        return false;
    }
    strcpy(base, name);
    if (limit)
        limit_chunks = strtoull(limit, NULL, 10) / CULET_TRACE_CHUNK;
    return true;
}

/* For kernels before 4.14 and emulators that take the advice and ignore it; elsewhere the page is zero already. */
static void forked(void)
{
    memset(culet_shared, 0, sizeof *culet_shared);
}

static bool map_shared(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    struct culet_shared *page =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return false;
    madvise(page, bytes, MADV_WIPEONFORK);
    culet_shared = page;
    return pthread_atfork(NULL, NULL, forked) == 0;
}

/* The first process has the name itself; whoever comes later, by fork or exec, adds its process number, and a
 * process that executes one program after another counts on. */
static int create(void)
{
    static const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd;

    strcpy(path, base);
    fd = open(path, flags, 0666);
    for (unsigned try = 1; fd < 0 && errno == EEXIST; try++) {
        if (try == 1)
            snprintf(path, sizeof path, "%s.%d", base, (int)getpid());
        else
            snprintf(path, sizeof path, "%s.%d.%u", base, (int)getpid(), try);
        fd = open(path, flags, 0666);
    }
    return fd;
}

static void read_command(struct culet_trace_header *header)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;

    ssize_t got = read(fd, header->command, sizeof header->command);
    header->command_bytes = got > 0 ? (uint32_t)got : 0;
    close(fd);
}

/* As much of the text as fits, into a field of zeros. */
static void copy(char *field, size_t bytes, const char *text)
{
    memcpy(field, text, strnlen(text, bytes - 1));
}

static void fill(struct culet_trace_header *header, const char *parent, pid_t parent_pid)
{
    const char *allocator = getenv("CULET_TRACE_ALLOCATOR");
    const char *folder = strrchr(parent, '/');
    struct utsname name;

    header->version = CULET_TRACE_VERSION;
    header->header_bytes = CULET_TRACE_CHUNK;
    header->stride = CULET_TRACE_CHUNK;
    header->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    header->started_ns = clock_ns(CLOCK_REALTIME);
    if (!monotonic_ns)
        monotonic_ns = clock_ns(CLOCK_MONOTONIC); /* a child counts on from its parent's start */
    header->monotonic_ns = monotonic_ns;
    header->pid = (uint32_t)process;
    header->parent_pid = (uint32_t)getppid();
    if (parent_pid) {
        header->forked_at = atomic_load(&culet_sequence);
        copy(header->parent, sizeof header->parent, folder ? folder + 1 : parent);
    }
    copy(header->allocator, sizeof header->allocator, allocator ? allocator : "glibc");
    if (uname(&name) == 0)
        copy(header->machine, sizeof header->machine, name.machine);
    read_command(header);
    /* Last, so that a file is a trace only when its header is whole. */
    atomic_thread_fence(memory_order_release);
    memcpy(header->magic, CULET_TRACE_MAGIC, sizeof header->magic);
}

static void *map(int fd, off_t offset, size_t bytes)
{
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

    if (mapped == MAP_FAILED)
        return NULL;
    /* A child neither needs it nor may write into it. */
    madvise(mapped, bytes, MADV_DONTFORK);
    return mapped;
}

/* Space that is really there: writing to a mapping beyond it would end the process. So would the signal that the
 * kernel sends where the file would be larger than the process's limit; hence that is looked at first. */
static int reserve(int fd, off_t offset)
{
    struct rlimit largest;
    int error;

    if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur != RLIM_INFINITY &&
        largest.rlim_cur < (rlim_t)offset + CULET_TRACE_CHUNK)
        return EFBIG;
    do
        error = posix_fallocate(fd, offset, CULET_TRACE_CHUNK);
    while (error == EINTR);
    return error;
}

/* With the lock held. */
static bool start(void)
{
    char parent[sizeof path];
    pid_t parent_pid = process;
    struct stat status;

    memcpy(parent, path, sizeof parent);
    process = getpid();
    int fd = create();
    if (fd < 0) {
        stop(CULET_STOP_FILE, path, errno);
        return false;
    }
    int error = reserve(fd, 0);
    struct culet_trace_header *header = error ? NULL : map(fd, 0, CULET_TRACE_CHUNK);
    if (!error && (!header || fstat(fd, &status) != 0))
        error = errno;
    close(fd);
    if (error) {
        stop(error == ENOSPC ? CULET_STOP_SPACE : CULET_STOP_FILE, path, error);
        return false;
    }
    device = status.st_dev;
    inode = status.st_ino;
    fill(header, parent, parent_pid);
    culet_shared->header = header;
    atomic_store(&culet_shared->epoch, ++epochs);
    return true;
}

/* ---- chunks ---- */

static int reopen(void)
{
    struct stat status;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd >= 0 && (fstat(fd, &status) != 0 || status.st_dev != device || status.st_ino != inode)) {
        close(fd);
        errno = ESTALE;
        return -1;
    }
    return fd;
}

/* With the lock held. */
static struct culet_trace_chunk *add(void)
{
    struct culet_trace_header *header = culet_shared->header;
    uint64_t chunks = atomic_load(&header->chunks);
    off_t offset = (off_t)(header->header_bytes + chunks * CULET_TRACE_CHUNK);
    struct culet_trace_chunk *chunk = NULL;

    if (limit_chunks && chunks >= limit_chunks) {
        stop(CULET_STOP_LIMIT, "its file has reached the limit", 0);
        return NULL;
    }
    int fd = reopen();
    int error = fd < 0 ? errno : reserve(fd, offset);
    if (!error) {
        chunk = map(fd, offset, CULET_TRACE_CHUNK);
        error = chunk ? 0 : errno;
    }
    if (fd >= 0)
        close(fd);
    if (error) {
        stop(error == ENOSPC ? CULET_STOP_SPACE : CULET_STOP_FILE, path, error);
        return NULL;
    }
    chunk->magic = CULET_TRACE_CHUNK_MAGIC;
    atomic_store(&chunk->used, sizeof *chunk);
    atomic_store(&header->chunks, chunks + 1);
    return chunk;
}

struct culet_trace_chunk *culet_file_lend(void)
{
    struct culet_trace_chunk *chunk = NULL;

    if (atomic_load(&culet_shared->stopped))
        return NULL;
    if (culet_shared == &before_start && (!ask_environment() || !map_shared()))
        return NULL;
    lock();
    if (!atomic_load(&culet_shared->stopped) && (atomic_load(&culet_shared->epoch) || start()))
        chunk = culet_shared->spares ? culet_shared->spare[--culet_shared->spares] : add();
    unlock();
    return chunk;
}

void culet_file_full(struct culet_trace_chunk *chunk)
{
    munmap(chunk, CULET_TRACE_CHUNK);
}

void culet_file_return(struct culet_trace_chunk *chunk)
{
    bool kept = false;

    lock();
    if (culet_shared->spares < sizeof culet_shared->spare / sizeof *culet_shared->spare) {
        culet_shared->spare[culet_shared->spares++] = chunk;
        kept = true;
    }
    unlock();
    if (!kept)
        culet_file_full(chunk);
}
