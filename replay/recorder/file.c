#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static struct culet_process unmapped; /* until the page is mapped */
struct culet_process *culet_process = &unmapped;
_Atomic uint64_t culet_sequence = 1;

uint64_t culet_file_limit;

/* Not wiped: a child needs the parent's values. Written under the lock. */
static char path[3072]; /* of the file */
static char base[2048]; /* CULET_TRACE_FILE */
static uint64_t device, inode;
static uint64_t epochs;
static uint64_t monotonic_ns;
static pid_t process; /* 0 until the first file of this program */
static uint32_t execs;

void culet_file_lock(void)
{
    uint32_t free = 0;

    while (!atomic_compare_exchange_weak_explicit(&culet_process->lock, &free, 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
        free = 0;
        sched_yield();
    }
}

void culet_file_unlock(void)
{
    atomic_store_explicit(&culet_process->lock, 0, memory_order_release);
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

/* ---- writing ---- */

int culet_file_open(uint64_t end)
{
    struct stat status;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode && (uint64_t)status.st_size >= end)
        return fd;
    close(fd);
    errno = ESTALE;
    return -1;
}

/* Beyond RLIMIT_FSIZE the kernel sends SIGXFSZ, which would end the program. */
static bool is_allowed(uint64_t end)
{
    struct rlimit largest;

    return getrlimit(RLIMIT_FSIZE, &largest) != 0 || largest.rlim_cur == RLIM_INFINITY ||
           end <= (uint64_t)largest.rlim_cur;
}

int culet_file_write(int fd, const void *bytes, size_t count, uint64_t offset)
{
    size_t done = 0;

    if (!is_allowed(offset + count))
        return EFBIG;
    while (done < count) {
        ssize_t put = pwrite(fd, (const char *)bytes + done, count - done, (off_t)(offset + done));
        if (put == 0)
            return EIO;
        if (put > 0)
            done += (size_t)put;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

/* Writes one changed field of the header. */
static void write_field(const void *field, size_t bytes)
{
    int fd = culet_file_open(CULET_TRACE_CHUNK);

    if (fd < 0)
        return;
    culet_file_write(fd, field, bytes, (uint64_t)((const char *)field - (const char *)culet_process->header));
    close(fd);
}

void culet_file_count_lost(void)
{
    struct culet_trace_header *header = culet_process->header;
    int saved = errno;

    if (header && !atomic_load(&culet_process->stopped)) {
        atomic_fetch_add_explicit(&header->lost, 1, memory_order_relaxed);
        write_field(&header->lost, sizeof header->lost);
    }
    errno = saved;
}

static const char *describe(int error, char *text, size_t bytes)
{
    if (!error)
        return "";
    if (error == ESTALE)
        return "it was truncated or replaced";
#ifdef __GLIBC__
    return strerror_r(error, text, bytes);
#else
    return strerror_r(error, text, bytes) == 0 ? text : "unknown error";
#endif
}

void culet_file_stop(enum culet_trace_stop reason, const char *message, int error)
{
    char line[sizeof path + 256], text[128];

    atomic_store(&culet_process->stopped, true);
    if (culet_process->header) {
        atomic_store(&culet_process->header->stopped, reason);
        write_field(&culet_process->header->stopped, sizeof culet_process->header->stopped);
    }
    int bytes = snprintf(line, sizeof line, "culet: %s process %d: %s%s%s\n",
                         culet_process->header ? "stopped recording" : "cannot record", (int)getpid(), message,
                         error ? ": " : "", describe(error, text, sizeof text));
    if (bytes > 0 && write(STDERR_FILENO, line, (size_t)bytes) < 0)
        return; /* stderr is closed */
}

void culet_file_fail(int error)
{
    culet_file_stop(error == ENOSPC || error == EDQUOT ? CULET_STOP_SPACE : CULET_STOP_FILE, path, error);
}

/* ---- creating the file ---- */

static bool read_environment(void)
{
    const char *name = environ ? getenv("CULET_TRACE_FILE") : NULL;
    const char *limit = environ ? getenv("CULET_TRACE_LIMIT") : NULL;

    if (!environ)
        return false; /* libc has not set it yet */
    if (!name || !*name || strlen(name) >= sizeof base) {
        atomic_store(&culet_process->stopped, true); /* loaded without a request to record */
        return false;
    }
    strcpy(base, name);
    if (limit)
        culet_file_limit = strtoull(limit, NULL, 10) / CULET_TRACE_CHUNK;
    return true;
}

/* For kernels before 4.14, and emulators that accept MADV_WIPEONFORK and ignore it. */
static void wipe_in_child(void)
{
    memset(culet_process, 0, sizeof *culet_process);
}

static bool map_process(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    struct culet_process *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return false;
    madvise(page, bytes, MADV_WIPEONFORK);
    culet_process = page;
    return pthread_atfork(NULL, NULL, wipe_in_child) == 0;
}

bool culet_file_prepare(void)
{
    if (atomic_load(&culet_process->stopped))
        return false;
    return culet_process != &unmapped || (read_environment() && map_process());
}

/* In clock ticks since boot: field 22 of /proc/self/stat, which an exec does not change. 0: not known. */
static uint64_t process_start(void)
{
    char line[1024];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;

    if (fd >= 0)
        close(fd);
    line[got > 0 ? got : 0] = 0;
    const char *at = strrchr(line, ')'); /* the end of field 2, which may have spaces */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* The inode of this process's PID namespace; 0: not known. */
static uint64_t pid_namespace(void)
{
    struct stat status;

    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* Whether another program of this very process recorded into the file, and all of it is there. */
static bool is_own(int fd, const struct culet_trace_header *header)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
           memcmp(header->magic, CULET_TRACE_MAGIC, sizeof header->magic) == 0 &&
           header->version == CULET_TRACE_VERSION && header->pid == (uint32_t)getpid() && header->process_start &&
           header->process_start == process_start() && header->pid_namespace == pid_namespace() &&
           header->header_bytes == CULET_TRACE_CHUNK && header->stride == CULET_TRACE_CHUNK &&
           header->chunks < UINT32_MAX && (uint64_t)status.st_size >= (header->chunks + 1) * CULET_TRACE_CHUNK;
}

/* The file of `path` if this process began it before an exec; its header goes to `earlier`. */
static int open_own(struct culet_trace_header *earlier)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd >= 0 && (pread(fd, earlier, sizeof *earlier, 0) != sizeof *earlier || !is_own(fd, earlier))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Sets `path`: FILE, FILE.PID, FILE.PID.2 and so on. */
static void name_file(unsigned number)
{
    if (number == 0)
        strcpy(path, base);
    else if (number == 1)
        snprintf(path, sizeof path, "%s.%d", base, (int)getpid());
    else
        snprintf(path, sizeof path, "%s.%d.%u", base, (int)getpid(), number);
}

/* Opens FILE in the first process, FILE.PID in others; FILE.PID.2 and so on where these files belong to others.
 *
 * @param earlier gets the header where another program of this process has begun the file; otherwise its magic is empty */
static int open_file(struct culet_trace_header *earlier)
{
    static const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd;

    for (unsigned number = 0;; number++) {
        name_file(number);
        earlier->magic[0] = 0;
        fd = open(path, flags, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
        fd = process ? -1 : open_own(earlier); /* a forked child has executed nothing yet */
        if (fd >= 0)
            return fd;
    }
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

/* Truncates the text to a field of zeros. */
static void copy(char *field, size_t bytes, const char *text)
{
    memcpy(field, text, strnlen(text, bytes - 1));
}

/* What stays as it was when the process executes another program: the file's length, the fork, the times. */
static void keep(struct culet_trace_header *header, const struct culet_trace_header *earlier)
{
    atomic_store(&header->chunks, atomic_load(&earlier->chunks));
    header->started_ns = earlier->started_ns;
    header->monotonic_ns = monotonic_ns = earlier->monotonic_ns;
    header->forked_at = earlier->forked_at;
    header->parent_execs = earlier->parent_execs;
    memcpy(header->parent, earlier->parent, sizeof header->parent);
    header->execs = earlier->execs + 1;
}

static void fill_header(struct culet_trace_header *header, const char *parent, pid_t parent_pid)
{
    const char *allocator = getenv("CULET_TRACE_ALLOCATOR");
    const char *slash = strrchr(parent, '/');
    struct utsname name;

    header->version = CULET_TRACE_VERSION;
    header->header_bytes = CULET_TRACE_CHUNK;
    header->stride = CULET_TRACE_CHUNK;
    header->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    header->started_ns = clock_ns(CLOCK_REALTIME);
    if (!monotonic_ns)
        monotonic_ns = clock_ns(CLOCK_MONOTONIC); /* a child keeps the parent's */
    header->monotonic_ns = monotonic_ns;
    header->pid = (uint32_t)getpid();
    header->process_start = process_start();
    header->pid_namespace = pid_namespace();
    header->parent_pid = (uint32_t)getppid();
    if (parent_pid) {
        header->forked_at = atomic_load(&culet_sequence);
        header->parent_execs = execs;
        copy(header->parent, sizeof header->parent, slash ? slash + 1 : parent);
    }
    copy(header->allocator, sizeof header->allocator, allocator ? allocator : "glibc");
    if (uname(&name) == 0)
        copy(header->machine, sizeof header->machine, name.machine);
    read_command(header);
    memcpy(header->magic, CULET_TRACE_MAGIC, sizeof header->magic);
}

/* Memory for the header. A child must not write to it. */
static struct culet_trace_header *new_header(void)
{
    void *memory = mmap(NULL, CULET_TRACE_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, CULET_TRACE_CHUNK, MADV_DONTFORK);
    return memory;
}

int culet_file_reserve(int fd, uint64_t offset)
{
    int error;

    if (!is_allowed(offset + CULET_TRACE_CHUNK))
        return EFBIG;
    do
        error = posix_fallocate(fd, (off_t)offset, CULET_TRACE_CHUNK);
    while (error == EINTR);
    return error;
}

/* The header of a file; 0 or an errno. */
static int write_header(int fd, const struct culet_trace_header *earlier, const char *parent, pid_t parent_pid)
{
    bool executed = earlier->magic[0];
    struct stat status;
    int error = culet_file_reserve(fd, 0);
    struct culet_trace_header *header = error ? NULL : new_header();

    if (error)
        return error;
    if (!header || fstat(fd, &status) != 0)
        return errno;
    fill_header(header, parent, parent_pid);
    if (executed)
        keep(header, earlier);
    error = culet_file_write(fd, header, sizeof *header, 0);
    if (error)
        return error;
    device = (uint64_t)status.st_dev;
    inode = (uint64_t)status.st_ino;
    culet_process->header = header;
    culet_process->executed = executed;
    execs = header->execs;
    return 0;
}

bool culet_file_create(void)
{
    static struct culet_trace_header earlier; /* not on the stack, which may be small */
    char parent[sizeof path];
    pid_t parent_pid = process;

    if (atomic_load(&culet_process->stopped) || atomic_load(&culet_process->epoch))
        return !atomic_load(&culet_process->stopped);
    memcpy(parent, path, sizeof parent);
    int fd = open_file(&earlier);
    process = getpid();
    int error = fd < 0 ? errno : write_header(fd, &earlier, parent, parent_pid);
    if (fd >= 0)
        close(fd);
    if (error) {
        culet_file_fail(error);
        return false;
    }
    atomic_store(&culet_process->epoch, ++epochs);
    return true;
}
