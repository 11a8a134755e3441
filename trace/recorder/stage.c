#define _GNU_SOURCE
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The table, for all processes that come from one by fork. Opened once, under the file's lock. */
static struct culet_stage *stage;
static bool asked;
static char path[64];
static uint64_t namespace;

static uint64_t own_namespace(void)
{
    struct stat status;

    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* Descriptor numbers are used again: another file may be behind the name by now. */
static bool is_stage(int fd)
{
    struct stat status;
    char magic[sizeof stage->magic];
    int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &status) == 0 &&
           (uint64_t)status.st_size == sizeof *stage + (uint64_t)CULET_STAGE_SLOTS * CULET_TRACE_CHUNK &&
           pread(fd, magic, sizeof magic, 0) == sizeof magic && memcmp(magic, CULET_STAGE_MAGIC, sizeof magic) == 0;
}

static int open_stage(void)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd >= 0 && !is_stage(fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void find(void)
{
    const char *name = getenv("CULET_TRACE_STAGE");

    asked = true;
    if (!name || strlen(name) >= sizeof path)
        return;
    strcpy(path, name);
    int fd = open_stage();
    if (fd < 0)
        return;
    void *table = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (table != MAP_FAILED)
        stage = table;
    namespace = own_namespace();
    close(fd);
}

static void reach(uint32_t count)
{
    uint32_t reached = atomic_load(&stage->reached);

    while (reached < count && !atomic_compare_exchange_weak(&stage->reached, &reached, count))
        ;
}

static struct culet_stage_slot *take_slot(void)
{
    for (uint32_t i = 0; i < CULET_STAGE_SLOTS; i++) {
        uint32_t free = CULET_SLOT_FREE;
        if (atomic_load_explicit(&stage->slots[i].state, memory_order_relaxed) == CULET_SLOT_FREE &&
            atomic_compare_exchange_strong(&stage->slots[i].state, &free, CULET_SLOT_TAKEN)) {
            reach(i + 1);
            return &stage->slots[i];
        }
    }
    return NULL;
}

/* A slot's body in place of the first bytes of `memory`; NULL where there is none to be had. */
static struct culet_stage_slot *map_slot(void *memory)
{
    int fd = stage && !atomic_load(&stage->closed) ? open_stage() : -1;
    struct culet_stage_slot *slot = fd >= 0 ? take_slot() : NULL;
    off_t offset = slot ? (off_t)(sizeof *stage + (uint64_t)(slot - stage->slots) * CULET_TRACE_CHUNK) : 0;

    if (slot && mmap(memory, CULET_TRACE_CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset) == MAP_FAILED) {
        /* What was mapped there may be gone. */
        mmap(memory, CULET_TRACE_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        atomic_store(&slot->state, CULET_SLOT_FREE);
        slot = NULL;
    }
    if (fd >= 0)
        close(fd);
    return slot;
}

static size_t loan_bytes(void)
{
    return CULET_TRACE_CHUNK + (size_t)sysconf(_SC_PAGESIZE);
}

struct culet_trace_chunk *culet_stage_take(const struct stat *file, uint32_t file_pid, uint32_t file_try, uint64_t offset)
{
    if (!asked)
        find();
    void *memory = mmap(NULL, loan_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;

    struct culet_trace_chunk *chunk = memory;
    struct culet_loan *loan = culet_stage_loan(chunk);
    struct culet_stage_slot *slot = map_slot(memory);
    /* A child neither needs it nor may write into it. */
    madvise(memory, loan_bytes(), MADV_DONTFORK);
    chunk->magic = CULET_TRACE_CHUNK_MAGIC;
    atomic_store(&chunk->used, sizeof *chunk);
    *loan = (struct culet_loan){.slot = slot, .offset = offset, .flushed = sizeof *chunk};
    if (slot) {
        slot->owner = (uint32_t)getpid();
        slot->file_pid = file_pid;
        slot->file_try = file_try;
        slot->offset = offset;
        slot->device = (uint64_t)file->st_dev;
        slot->inode = (uint64_t)file->st_ino;
        slot->namespace = namespace;
        atomic_store_explicit(&slot->state, CULET_SLOT_FILLED, memory_order_release);
    }
    return chunk;
}

void culet_stage_give(struct culet_trace_chunk *chunk, bool left)
{
    struct culet_stage_slot *slot = culet_stage_loan(chunk)->slot;

    munmap(chunk, loan_bytes());
    if (slot && !left)
        atomic_store_explicit(&slot->state, CULET_SLOT_FREE, memory_order_release);
}

bool culet_stage_collected(const struct culet_loan *loan)
{
    return loan->slot && !atomic_load(&stage->closed) && (kill((pid_t)stage->collector, 0) == 0 || errno == EPERM);
}
