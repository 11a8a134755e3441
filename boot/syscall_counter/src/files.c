/* files.c - counts libc's functions that take a path, and calls the next definition.
 *
 * Programs built against glibc before 2.33 call stat as __xstat. Headers that define these functions inline are not
 * included; the buffers are passed on untyped. */
#define _GNU_SOURCE
#include "counts.h"
#include "realpath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>

/* musl before 1.2.4 declares these as macros; programs that were linked earlier call them by name. */
#undef open64
#undef openat64

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* Looks the next symbol up at the first call; `next` has its type. */
#define NEXT(type, name, ...)                                                                                          \
    typedef type function(__VA_ARGS__);                                                                                \
    static function *next;                                                                                             \
    if (__builtin_expect(!next, 0)) {                                                                                  \
        void *found = culet_next_symbol(name);                                                                         \
        memcpy(&next, &found, sizeof next);                                                                            \
    }

/* A function that calls the next one and counts by the result. */
#define FORWARD(type, name, parameters, arguments, count)                                                              \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        NEXT(type, #name, UNWRAP parameters)                                                                           \
        type result = next arguments;                                                                                  \
        count;                                                                                                         \
        return result;                                                                                                 \
    }
#define UNWRAP(...) __VA_ARGS__

/* Functions that return -1 on an error. */
#define COUNTED(name, parameters, arguments) FORWARD(int, name, parameters, arguments, culet_count_path(result < 0))

/* ---- opening ---- */

static mode_t mode_of(int flags, va_list more)
{
    return flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? (mode_t)va_arg(more, int) : 0;
}

/* The last argument of a function that opens a file, which it has with some flags only. */
#define MODE                                                                                                           \
    ({                                                                                                                 \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode_t mode = mode_of(flags, more);                                                                            \
        va_end(more);                                                                                                  \
        mode;                                                                                                          \
    })

COUNTED(open, (const char *path, int flags, ...), (path, flags, MODE))
COUNTED(open64, (const char *path, int flags, ...), (path, flags, MODE))
COUNTED(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, MODE))
COUNTED(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, MODE))
COUNTED(__open_2, (const char *path, int flags), (path, flags))
COUNTED(__open64_2, (const char *path, int flags), (path, flags))
COUNTED(__openat_2, (int folder, const char *path, int flags), (folder, path, flags))
COUNTED(__openat64_2, (int folder, const char *path, int flags), (folder, path, flags))

#define POINTER(name, parameters, arguments) FORWARD(void *, name, parameters, arguments, culet_count_path(!result))

POINTER(fopen, (const char *path, const char *mode), (path, mode))
POINTER(fopen64, (const char *path, const char *mode), (path, mode))
POINTER(opendir, (const char *path), (path))

/* ---- stat and access ---- */

COUNTED(stat, (const char *path, void *answer), (path, answer))
COUNTED(stat64, (const char *path, void *answer), (path, answer))
COUNTED(lstat, (const char *path, void *answer), (path, answer))
COUNTED(lstat64, (const char *path, void *answer), (path, answer))
COUNTED(__xstat, (int version, const char *path, void *answer), (version, path, answer))
COUNTED(__xstat64, (int version, const char *path, void *answer), (version, path, answer))
COUNTED(__lxstat, (int version, const char *path, void *answer), (version, path, answer))
COUNTED(__lxstat64, (int version, const char *path, void *answer), (version, path, answer))

/* An empty path stands for the descriptor. */
static void count_at(const char *path, bool failed)
{
    if (path && *path)
        culet_count_path(failed);
}

#define AT(name, parameters, arguments) FORWARD(int, name, parameters, arguments, count_at(path, result < 0))

AT(fstatat, (int folder, const char *path, void *answer, int flags), (folder, path, answer, flags))
AT(fstatat64, (int folder, const char *path, void *answer, int flags), (folder, path, answer, flags))
AT(__fxstatat, (int version, int folder, const char *path, void *answer, int flags),
   (version, folder, path, answer, flags))
AT(__fxstatat64, (int version, int folder, const char *path, void *answer, int flags),
   (version, folder, path, answer, flags))
AT(statx, (int folder, const char *path, int flags, unsigned mask, void *answer), (folder, path, flags, mask, answer))

COUNTED(access, (const char *path, int mode), (path, mode))
COUNTED(eaccess, (const char *path, int mode), (path, mode))
COUNTED(euidaccess, (const char *path, int mode), (path, mode))
COUNTED(faccessat, (int folder, const char *path, int mode, int flags), (folder, path, mode, flags))

/* ---- links ---- */

#define LINK(name, parameters, arguments)                                                                              \
    FORWARD(ssize_t, name, parameters, arguments, culet_count_path(result < 0 && errno != EINVAL))

LINK(readlink, (const char *path, char *answer, size_t bytes), (path, answer, bytes))
LINK(__readlink_chk, (const char *path, char *answer, size_t bytes, size_t size), (path, answer, bytes, size))
LINK(readlinkat, (int folder, const char *path, char *answer, size_t bytes), (folder, path, answer, bytes))
LINK(__readlinkat_chk, (int folder, const char *path, char *answer, size_t bytes, size_t size),
     (folder, path, answer, bytes, size))

#define REALPATH(name, parameters, arguments)                                                                          \
    FORWARD(char *, name, parameters, arguments, culet_count_realpath(path, result))

REALPATH(realpath, (const char *path, char *answer), (path, answer))
REALPATH(__realpath_chk, (const char *path, char *answer, size_t size), (path, answer, size))
REALPATH(canonicalize_file_name, (const char *path), (path))
