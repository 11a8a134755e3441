#include "blackbox/box.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define POLYNOMIAL 0xedb88320u

static const struct culet_box_place places[CULET_BOX_TABLES] = CULET_BOX_PLACES;
static _Atomic(char *) mapping;
static char *_Atomic guarded; /* the mapping, for the signal handler */
static _Atomic bool lost;
static struct sigaction former; /* handler of SIGBUS */
static uint32_t checksums[256];

/* ---- records ---- */

static void prepare_checksums(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t sum = byte;
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? sum >> 1 ^ POLYNOMIAL : sum >> 1;
        checksums[byte] = sum;
    }
}

static uint32_t checksum(const void *from, size_t length)
{
    const unsigned char *bytes = from;
    uint32_t sum = UINT32_MAX;

    for (size_t i = 0; i < length; i++)
        sum = sum >> 8 ^ checksums[(sum ^ bytes[i]) & 0xff];
    return ~sum;
}

void *culet_box_slot(enum culet_box_table table, uint64_t number)
{
    char *start = atomic_load_explicit(&mapping, memory_order_relaxed);

    return start == NULL ? NULL
                         : start + places[table].offset + number % places[table].slots * places[table].slot_bytes;
}

size_t culet_box_room(enum culet_box_table table)
{
    return places[table].slot_bytes - sizeof(struct culet_box_record);
}

void culet_box_write(enum culet_box_table table, void *slot, uint64_t number, uint64_t time, const void *payload,
                     size_t length)
{
    struct culet_box_record *record = slot;
    size_t room = culet_box_room(table);

    if (slot == NULL)
        return;
    length = length < room ? length : room;
    record->checksum = 0;
    record->length = (uint32_t)length;
    record->number = number;
    record->time = time;
    memcpy(record + 1, payload, length);
    record->checksum = checksum(&record->length, sizeof(*record) - sizeof(record->checksum) + length);
}

void culet_box_clear(void *slot)
{
    if (slot != NULL)
        ((struct culet_box_record *)slot)->number = 0;
}

/* ---- the mapping ---- */

/* Puts memory without a file in the place of the mapping. Returns whether that was possible. */
static bool replace(char *start)
{
    atomic_store(&lost, true);
    return mmap(start, CULET_BOX_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
           MAP_FAILED;
}

static void call_former(int number, siginfo_t *info, void *context)
{
    if (former.sa_flags & SA_SIGINFO) {
        former.sa_sigaction(number, info, context);
        return;
    }
    if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) {
        former.sa_handler(number);
        return;
    }
    /* the access is repeated, and ends the process as without the black box */
    (void)sigaction(SIGBUS, &former, NULL);
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    char *start = atomic_load(&guarded), *at = info->si_addr;
    int error = errno;

    if (start == NULL || at < start || at >= start + CULET_BOX_BYTES || !replace(start))
        call_former(number, info, context);
    errno = error;
}

static int guard(void)
{
    static bool done;
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    if (done)
        return 0;
    if (sigaction(SIGBUS, &action, &former) != 0)
        return errno;
    done = true;
    return 0;
}

int culet_box_map(int file)
{
    char *start;
    int error = posix_fallocate(file, 0, CULET_BOX_BYTES);

    if (error != 0 || (error = guard()) != 0)
        return error;
    prepare_checksums();
    start = mmap(NULL, CULET_BOX_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (start == MAP_FAILED)
        return errno;
    atomic_store(&lost, false);
    atomic_store(&guarded, start);
    atomic_store(&mapping, start);
    return 0;
}

bool culet_box_mapped(void)
{
    return atomic_load(&mapping) != NULL;
}

bool culet_box_lost(void)
{
    return atomic_load(&lost);
}

/* Another thread may be writing: its place stays, and is no file any more. */
void culet_box_unmap(void)
{
    char *start = atomic_exchange(&mapping, NULL);

    if (start != NULL)
        (void)mmap(start, CULET_BOX_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void culet_box_forget(void)
{
    char *start = atomic_exchange(&mapping, NULL);

    atomic_store(&guarded, NULL);
    if (start != NULL)
        (void)munmap(start, CULET_BOX_BYTES);
}
