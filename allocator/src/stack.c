#define _GNU_SOURCE
#include "stack.h"

#include "os.h"
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How far from where it began a main thread's stack may reach to be looked at; there is 128 MiB of address space for
 * it at the least. */
#define CULET_STACK_REACH ((uintptr_t)64 << 20)

_Atomic bool culet_stack_requested;
static uintptr_t top;

/* The last seven characters of a line of /proc/self/maps that describes the main thread's stack: "[stack]". */
#define NAME UINT64_C(0x5b737461636b5d)
#define NAME_MASK UINT64_C(0xffffffffffffff)

/* A line of /proc/self/maps as it is read, "FROM-TO ... NAME". */
struct line {
    uintptr_t address[2];
    unsigned field; /* 0 and 1: of address; 2: the rest */
    uint64_t last;  /* characters of the rest */
};

static uintptr_t digit(char c)
{
    return (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void take(struct line *line, char c)
{
    if (line->field == 2)
        line->last = line->last << 8 | (unsigned char)c;
    else if (c == '-' || c == ' ')
        line->field++;
    else
        line->address[line->field] = line->address[line->field] << 4 | digit(c);
}

/* The start of the main thread's stack, if `address` lies in it; otherwise 0. In raw system calls, since open and
 * read are points where a thread may be cancelled, and malloc is none. */
static uintptr_t start_around(uintptr_t address)
{
    char buffer[1024];
    struct line line = {0};
    uintptr_t start = 0;
    long got;

    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !start && (got = syscall(SYS_read, fd, buffer, sizeof buffer)) > 0) {
        for (long i = 0; i < got && !start; i++) {
            if (buffer[i] != '\n') {
                take(&line, buffer[i]);
                continue;
            }
            if ((line.last & NAME_MASK) == NAME && line.address[0] <= address && address < line.address[1])
                start = line.address[0];
            line = (struct line){0};
        }
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
    return start;
}

void culet_stack_setup(void)
{
    top = (uintptr_t)__builtin_frame_address(0);
}

void culet_stack_request(void)
{
    static _Atomic bool wanted;

    if (!atomic_exchange_explicit(&wanted, true, memory_order_relaxed))
        atomic_store_explicit(&culet_stack_requested, true, memory_order_relaxed);
}

__attribute__((noinline)) size_t culet_stack_release(void)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    int saved = errno;
    uintptr_t start = start_around(frame);

    errno = saved;
    return start && start + CULET_STACK_MARGIN < frame ? culet_os_purge(start, frame - CULET_STACK_MARGIN - start) : 0;
}

void culet_stack_trim(void)
{
    if (top - (uintptr_t)__builtin_frame_address(0) >= CULET_STACK_REACH)
        return;
    atomic_store_explicit(&culet_stack_requested, false, memory_order_relaxed);
    if (culet_program_ruby())
        culet_stack_release();
}
