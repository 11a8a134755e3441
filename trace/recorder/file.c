#define _GNU_SOURCE
#include "file.h"

#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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
static uint32_t file_pid, file_try; /* how `path` comes from `base`: culet_stage_slot */
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

/* ---- writing to the file, by its name each time ---- */

/* Lets another process finish what it writes into a chunk. One that is stopped meanwhile is not waited for. */
static void lock_file(int fd)
{
    const struct timespec step = {.tv_nsec = 1000000};

    for (int tries = 0; tries < 100 && flock(fd, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR); tries++)
        nanosleep(&step, NULL);
}

/* The file, if it is still the one, and has all the bytes that were reserved up to `end`; else -1 and errno. */
static int reopen(uint64_t end, bool locked)
{
    struct stat status;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return -1;
    if (locked)
        lock_file(fd);
    if (fstat(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode && (uint64_t)status.st_size >= end)
        return fd;
    close(fd);
    errno = ESTALE;
    return -1;
}

/* The kernel sends a signal that ends the process where a file would be larger than the process's limit. */
static bool is_allowed(uint64_t end)
{
    struct rlimit largest;

    return getrlimit(RLIMIT_FSIZE, &largest) != 0 || largest.rlim_cur == RLIM_INFINITY || end <= (uint64_t)largest.rlim_cur;
}

/* @return 0, or an errno */
static int write_at(int fd, const void *bytes, size_t count, uint64_t offset)
{
    size_t done = 0;

    if (!is_allowed(offset + count))
        return EFBIG;
    while (done < count) {
        ssize_t put = pwrite(fd, (const char *)bytes + done, count - done, (off_t)(offset + done));
        if (put <= 0 && errno != EINTR)
            return put < 0 ? errno : EIO;
        if (put > 0)
            done += (size_t)put;
    }
    return 0;
}

/* A figure of the header that has changed; left as it was in a file that is no more the one. */
static void write_figure(const void *figure, size_t bytes)
{
    int fd = reopen(CULET_TRACE_CHUNK, false);

    if (fd < 0)
        return;
    write_at(fd, figure, bytes, (uint64_t)((const char *)figure - (const char *)culet_shared->header));
    close(fd);
}

void culet_file_lost(void)
{
    struct culet_trace_header *header = culet_shared->header;
    int saved = errno;

    if (header && !atomic_load(&culet_shared->stopped)) {
        atomic_fetch_add_explicit(&header->lost, 1, memory_order_relaxed);
        write_figure(&header->lost, sizeof header->lost);
    }
    errno = saved;
}

/* The program must not be disturbed by what befalls the recording: one line, and it goes on without. */
static void stop(enum culet_trace_stop reason, const char *words, int error)
{
    char line[sizeof path + 256], text[128];

    atomic_store(&culet_shared->stopped, true);
    if (culet_shared->header) {
        atomic_store(&culet_shared->header->stopped, reason);
        write_figure(&culet_shared->header->stopped, sizeof culet_shared->header->stopped);
    }
    int bytes = snprintf(line, sizeof line, "culet: process %d is not recorded%s: %s%s%s\n", (int)getpid(),
                         culet_shared->header ? " any further" : "", words, error ? ": " : "",
                         error == ESTALE ? "it was cut off or replaced" : error ? strerror_r(error, text, sizeof text) : "");
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
    file_pid = (uint32_t)getpid();
    file_try = 0;
    for (unsigned try = 1; fd < 0 && errno == EEXIST; try++) {
        if (try == 1)
            snprintf(path, sizeof path, "%s.%d", base, (int)getpid());
        else
            snprintf(path, sizeof path, "%s.%d.%u", base, (int)getpid(), try);
        fd = open(path, flags, 0666);
        file_try = try;
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
    memcpy(header->magic, CULET_TRACE_MAGIC, sizeof header->magic);
}

/* Memory for the header. A child neither needs it nor may write into it. */
static struct culet_trace_header *new_header(void)
{
    void *memory = mmap(NULL, CULET_TRACE_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, CULET_TRACE_CHUNK, MADV_DONTFORK);
    return memory;
}

/* As long as this process runs, no read lease is granted on the file: so others see that it is recorded into. A page
 * that nobody can touch, so it does no harm when the file is cut off. */
static void mark_recorded(int fd)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *mark = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);

    if (mark != MAP_FAILED)
        madvise(mark, bytes, MADV_DONTFORK);
}

/* Space that is really there: what is recorded later can be written. */
static int reserve(int fd, uint64_t offset)
{
    int error;

    if (!is_allowed(offset + CULET_TRACE_CHUNK))
        return EFBIG;
    do
        error = posix_fallocate(fd, (off_t)offset, CULET_TRACE_CHUNK);
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
    struct culet_trace_header *header = error ? NULL : new_header();
    if (!error && (!header || fstat(fd, &status) != 0))
        error = errno;
    if (!error) {
        fill(header, parent, parent_pid);
        error = write_at(fd, header, sizeof *header, 0);
        mark_recorded(fd);
    }
    close(fd);
    if (error) {
        stop(error == ENOSPC ? CULET_STOP_SPACE : CULET_STOP_FILE, path, error);
        return false;
    }
    device = status.st_dev;
    inode = status.st_ino;
    culet_shared->header = header;
    atomic_store(&culet_shared->epoch, ++epochs);
    return true;
}

/* ---- chunks ---- */

static void give_up(int error)
{
    stop(error == ENOSPC || error == EDQUOT ? CULET_STOP_SPACE : CULET_STOP_FILE, path, error);
}

static void enlist(struct culet_loan *loan)
{
    loan->next = culet_shared->loans;
    if (loan->next)
        loan->next->before = loan;
    culet_shared->loans = loan;
}

static void strike(struct culet_loan *loan)
{
    if (loan->next)
        loan->next->before = loan->before;
    if (loan->before)
        loan->before->next = loan->next;
    else
        culet_shared->loans = loan->next;
}

/* A chunk at the end of the file, still without events there. */
static struct culet_trace_chunk *lend_at(int fd, uint64_t offset, uint64_t chunks)
{
    struct culet_trace_header *header = culet_shared->header;
    struct stat status = {.st_dev = device, .st_ino = inode};
    struct culet_trace_chunk *chunk = culet_stage_take(&status, file_pid, file_try, offset);
    uint64_t more = chunks + 1;

    if (!chunk) {
        errno = ENOMEM;
        return NULL;
    }
    int error = write_at(fd, chunk, sizeof *chunk, offset);
    if (!error)
        error = write_at(fd, &more, sizeof more, offsetof(struct culet_trace_header, chunks));
    if (error) {
        culet_stage_give(chunk, false);
        errno = error;
        return NULL;
    }
    atomic_store(&header->chunks, more);
    enlist(culet_stage_loan(chunk));
    return chunk;
}

/* With the lock held. */
static struct culet_trace_chunk *add(void)
{
    struct culet_trace_header *header = culet_shared->header;
    uint64_t chunks = atomic_load(&header->chunks);
    uint64_t offset = header->header_bytes + chunks * CULET_TRACE_CHUNK;
    struct culet_trace_chunk *chunk = NULL;

    if (limit_chunks && chunks >= limit_chunks) {
        stop(CULET_STOP_LIMIT, "its file has reached the limit", 0);
        return NULL;
    }
    int fd = reopen(offset, false);
    int error = fd < 0 ? errno : reserve(fd, offset);
    if (!error) {
        chunk = lend_at(fd, offset, chunks);
        error = chunk ? 0 : errno;
    }
    if (fd >= 0)
        close(fd);
    if (error)
        give_up(error);
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

/* What the file does not have yet, and then how much that is. With the lock held. */
static int flush(int fd, struct culet_trace_chunk *chunk)
{
    struct culet_loan *loan = culet_stage_loan(chunk);
    uint32_t used = atomic_load_explicit(&chunk->used, memory_order_acquire);

    if (used == loan->flushed)
        return 0;
    int error = write_at(fd, (const char *)chunk + loan->flushed, used - loan->flushed, loan->offset + loan->flushed);
    if (!error)
        error = write_at(fd, &used, sizeof used, loan->offset + offsetof(struct culet_trace_chunk, used));
    if (!error)
        loan->flushed = used;
    return error;
}

/* Likewise. `last`: the chunk's memory is given up, under the file's lock, so that nobody writes anything older after it. */
static void put_down(struct culet_trace_chunk *chunk, bool last)
{
    struct culet_loan *loan = culet_stage_loan(chunk);
    int fd = reopen(loan->offset + CULET_TRACE_CHUNK, true);
    int error = fd < 0 ? errno : flush(fd, chunk);

    if (last) {
        strike(loan);
        culet_stage_give(chunk, error);
    }
    if (fd >= 0)
        close(fd);
    if (error && !atomic_load(&culet_shared->stopped))
        give_up(error);
}

void culet_file_full(struct culet_trace_chunk *chunk)
{
    lock();
    put_down(chunk, true);
    unlock();
}

void culet_file_flush(struct culet_trace_chunk *chunk)
{
    if (culet_stage_collected(culet_stage_loan(chunk)))
        return;
    lock();
    put_down(chunk, false);
    unlock();
}

void culet_file_flush_all(void)
{
    if (!atomic_load(&culet_shared->epoch))
        return;
    lock();
    for (struct culet_loan *loan = culet_shared->loans; loan; loan = loan->next)
        if (!culet_stage_collected(loan))
            put_down((struct culet_trace_chunk *)((char *)loan - CULET_TRACE_CHUNK), false);
    unlock();
}

void culet_file_return(struct culet_trace_chunk *chunk)
{
    bool kept = false;

    culet_file_flush(chunk);
    lock();
    if (culet_shared->spares < sizeof culet_shared->spare / sizeof *culet_shared->spare) {
        culet_shared->spare[culet_shared->spares++] = chunk;
        kept = true;
    }
    unlock();
    if (!kept)
        culet_file_full(chunk);
}
