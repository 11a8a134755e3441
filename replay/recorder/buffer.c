#define _GNU_SOURCE
#include "buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opened once, under the file's lock; forked children use the same mapping. */
static struct culet_buffer *buffer;
static bool searched;
static char path[64];
static uint64_t pid_namespace;

uint64_t culet_buffer_pid_namespace(void)
{
    struct stat status;

    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* The path is /proc/PID/fd/N; the descriptor may have been reused for another file. */
static bool is_buffer(int fd)
{
    struct stat status;
    char magic[sizeof buffer->magic];
    int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &status) == 0 &&
           (uint64_t)status.st_size == sizeof *buffer + (uint64_t)CULET_BUFFER_SLOTS * CULET_TRACE_CHUNK &&
           pread(fd, magic, sizeof magic, 0) == sizeof magic && memcmp(magic, CULET_BUFFER_MAGIC, sizeof magic) == 0;
}

static int open_buffer(void)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd >= 0 && !is_buffer(fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void map_buffer(void)
{
    const char *name = getenv("CULET_TRACE_STAGE");

    searched = true;
    if (!name || strlen(name) >= sizeof path)
        return;
    strcpy(path, name);
    int fd = open_buffer();
    if (fd < 0)
        return;
    void *table = mmap(NULL, sizeof *buffer, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (table != MAP_FAILED)
        buffer = table;
    pid_namespace = culet_buffer_pid_namespace();
    close(fd);
}

static void raise_reached(uint32_t count)
{
    uint32_t reached = atomic_load(&buffer->reached);

    while (reached < count && !atomic_compare_exchange_weak(&buffer->reached, &reached, count))
        ;
}

static struct culet_buffer_slot *take_slot(void)
{
    for (uint32_t i = 0; i < CULET_BUFFER_SLOTS; i++) {
        uint32_t free = CULET_SLOT_FREE;
        if (atomic_load_explicit(&buffer->slots[i].state, memory_order_relaxed) == CULET_SLOT_FREE &&
            atomic_compare_exchange_strong(&buffer->slots[i].state, &free, CULET_SLOT_TAKEN)) {
            raise_reached(i + 1);
            return &buffer->slots[i];
        }
    }
    return NULL;
}

/* Maps a slot's chunk over the first bytes of `memory`; NULL without a free slot. */
static struct culet_buffer_slot *map_slot(void *memory)
{
    int fd = buffer && !atomic_load(&buffer->closed) ? open_buffer() : -1;
    struct culet_buffer_slot *slot = fd >= 0 ? take_slot() : NULL;
    off_t offset = slot ? (off_t)(sizeof *buffer + (uint64_t)(slot - buffer->slots) * CULET_TRACE_CHUNK) : 0;

    if (slot &&
        mmap(memory, CULET_TRACE_CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset) == MAP_FAILED) {
        /* The failed mmap may have removed the previous mapping. */
        mmap(memory, CULET_TRACE_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        atomic_store(&slot->state, CULET_SLOT_FREE);
        slot = NULL;
    }
    if (fd >= 0)
        close(fd);
    return slot;
}

static size_t mapped_bytes(void)
{
    return CULET_TRACE_CHUNK + (size_t)sysconf(_SC_PAGESIZE);
}

struct culet_trace_chunk *culet_buffer_take(const struct culet_file_id *file, uint64_t offset)
{
    if (!searched)
        map_buffer();
    void *memory = mmap(NULL, mapped_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;

    struct culet_trace_chunk *chunk = memory;
    struct culet_chunk_info *info = culet_chunk_info(chunk);
    struct culet_buffer_slot *slot = map_slot(memory);
    /* A child must not write to it. */
    madvise(memory, mapped_bytes(), MADV_DONTFORK);
    chunk->magic = CULET_TRACE_CHUNK_MAGIC;
    atomic_store(&chunk->used, sizeof *chunk);
    *info = (struct culet_chunk_info){.slot = slot, .offset = offset, .flushed = sizeof *chunk};
    if (slot) {
        slot->pid = (uint32_t)getpid();
        slot->file_pid = file->pid;
        slot->file_number = file->number;
        slot->offset = offset;
        slot->device = file->device;
        slot->inode = file->inode;
        slot->pid_namespace = pid_namespace;
        atomic_store_explicit(&slot->state, CULET_SLOT_FILLED, memory_order_release);
    }
    return chunk;
}

void culet_buffer_release(struct culet_trace_chunk *chunk, bool unwritten)
{
    struct culet_buffer_slot *slot = culet_chunk_info(chunk)->slot;

    munmap(chunk, mapped_bytes());
    if (slot && !unwritten)
        atomic_store_explicit(&slot->state, CULET_SLOT_FREE, memory_order_release);
}

bool culet_buffer_collects(const struct culet_chunk_info *info)
{
    return info->slot && !atomic_load(&buffer->closed) && (kill((pid_t)buffer->collector, 0) == 0 || errno == EPERM);
}
