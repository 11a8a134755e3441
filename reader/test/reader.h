/* result.h - starts targets, has the reader read them, and finds figures in what it tells. */
#pragma once

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

/* A reading takes less than a second, or some seconds on a busy machine; after this time it hangs. */
#define READING_SECONDS 200

struct target {
    pid_t pid;
    int output;
    char line[512];          /* its last line */
    _Atomic uint64_t *count; /* that it counts in, where it does */
};

struct result {
    int status; /* exit status, or 128 + signal */
    char *stream;
    size_t bytes;
    char errors[2048];
};

static inline void nap(unsigned microseconds)
{
    struct timespec time = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000L};

    nanosleep(&time, NULL);
}

/* The state of a process as a letter, as in ps. */
static inline char state_of(pid_t pid)
{
    char name[64], text[512], *at;

    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(name, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    at = strrchr(text, ')');
    return at ? at[2] : 0;
}

static inline void await_state(pid_t pid, char state)
{
    for (int i = 0; i < 60000 && state_of(pid) != state; i++)
        nap(1000);
    CHECK(state_of(pid) == state, "process %d is in state %c, not %c", (int)pid, state_of(pid), state);
}

/* One line of the target's output. */
static inline void read_line(struct target *target)
{
    size_t length = 0;

    while (length < sizeof target->line - 1 && read(target->output, target->line + length, 1) == 1 &&
           target->line[length] != '\n')
        length++;
    target->line[length] = 0;
}

/* The number after `key` in the target's last line. */
static inline uint64_t printed(const struct target *target, const char *key)
{
    const char *at = strstr(target->line, key);

    CHECK(at, "the target wrote \"%s\" without %s", target->line, key);
    return strtoull(at + strlen(key) + 1, NULL, 10);
}

/* Starts a target: its name and arguments, separated by blanks. Its standard input is `input`. It ends with the
 * test. */
static inline struct target start_with(const char *command, int input)
{
    struct target target = {0};
    int ends[2];

    CHECK(pipe(ends) == 0, "no pipe");
    target.pid = fork();
    if (target.pid == 0) {
        char words[256], path[512], *argv[16] = {NULL};
        int count = 0;
        snprintf(words, sizeof words, "%s", command);
        for (char *word = strtok(words, " "); word && count < 15; word = strtok(NULL, " "))
            argv[count++] = word;
        snprintf(path, sizeof path, "%s/%s", TARGETS, argv[0]);
        argv[0] = path;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDOUT_FILENO);
        if (input >= 0)
            dup2(input, STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv(path, argv);
        _exit(127);
    }
    close(ends[1]);
    target.output = ends[0];
    return target;
}

/* Starts a target, and waits until it has written its line and stopped itself. */
static inline struct target start_frozen(const char *command)
{
    struct target target = start_with(command, -1);

    read_line(&target);
    await_state(target.pid, 'T');
    return target;
}

static inline void end(struct target *target)
{
    kill(target->pid, SIGKILL);
    CHECK(waitpid(target->pid, NULL, 0) == target->pid, "the target cannot be waited for");
    close(target->output);
}

/* A system call that fails with EPERM in readers, as in a sandbox. 0: none. */
static long reading_denied;

static inline bool deny(long call)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Whether waitpid(-1) fails in readers, as if they had no children. */
static bool waiting_for_any_denied;

static inline bool deny_waiting_for_any(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_wait4, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])), /* the lower half: little-endian */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ECHILD),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Denies stopping and both ways to read memory, but not page tables, as Yama or a container may. Offsets in a page
 * table are far below addresses of memory. */
static bool memory_denied;

static inline bool deny_memory(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 0, 3),
        /* The upper half of the offset. */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3]) + 4),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x100, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Yama's setting as readers see it; NULL: the machine's own. Needs root. */
static const char *yama_scope;

static inline bool pretend_yama(void)
{
    int file = -1;

    /* The mounts belong to this process and end with it. */
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/proc/sys/kernel", "tmpfs", 0, "mode=755") != 0 || mkdir("/proc/sys/kernel/yama", 0755) != 0 ||
        (file = open("/proc/sys/kernel/yama/ptrace_scope", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) < 0)
        return false;
    return write(file, yama_scope, strlen(yama_scope)) == (ssize_t)strlen(yama_scope) && close(file) == 0;
}

/* How many of these capabilities readers lack, as in a container. CAP_PERFMON (38; the headers may be older) and
 * CAP_SYS_ADMIN let newer kernels show mappings and page tables. */
static const unsigned long capabilities[] = {CAP_SYS_PTRACE, 38, CAP_SYS_ADMIN};
static unsigned capabilities_denied;

static inline bool drop_capabilities(void)
{
    for (unsigned i = 0; i < capabilities_denied; i++)
        if (prctl(PR_CAPBSET_DROP, capabilities[i], 0, 0, 0) != 0 && errno != EINVAL)
            return false;
    return true;
}

/* Starts the reader. `options` are separated by blanks. */
static inline pid_t start_reader(const char *options, pid_t pid, int output, int errors, uid_t user)
{
    int program = open(SCOPE, O_RDONLY);
    pid_t reader = fork();

    CHECK(reader >= 0, "no fork");
    if (reader == 0) {
        char words[256], number[16], *argv[16] = {(char *)(uintptr_t)SCOPE, NULL};
        int count = 1;
        snprintf(words, sizeof words, "%s", options);
        for (char *word = strtok(words, " "); word && count < 13; word = strtok(NULL, " "))
            argv[count++] = word;
        snprintf(number, sizeof number, "%d", (int)pid);
        if (pid)
            argv[count++] = number;
        dup2(output, STDOUT_FILENO);
        dup2(errors, STDERR_FILENO);
        if (yama_scope && !pretend_yama())
            _exit(124);
        if (!drop_capabilities())
            _exit(123);
        if (user && (setgid(65534) != 0 || setuid(user) != 0))
            _exit(126);
        alarm(READING_SECONDS);
        if (reading_denied && !deny(reading_denied))
            _exit(125);
        if (waiting_for_any_denied && !deny_waiting_for_any())
            _exit(121);
        if (memory_denied && !deny_memory())
            _exit(122);
        /* Another user may not have access to its directory. */
        fexecve(program, argv, environ);
        _exit(127);
    }
    close(program);
    return reader;
}

static inline char *slurp(int file, size_t *bytes)
{
    off_t length = lseek(file, 0, SEEK_END);
    char *text = calloc(1, (size_t)length + 1);

    CHECK(text && pread(file, text, (size_t)length, 0) == length, "the output of the reader cannot be read");
    *bytes = (size_t)length;
    return text;
}

static inline struct result read_as(const char *options, pid_t pid, uid_t user)
{
    struct result result = {0};
    int output = memfd_create("output", 0), errors = memfd_create("errors", 0), status = 0;
    size_t length;

    pid_t reader = start_reader(options, pid, output, errors, user);
    CHECK(waitpid(reader, &status, 0) == reader, "the reader cannot be waited for");
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.stream = slurp(output, &result.bytes);
    char *text = slurp(errors, &length);
    snprintf(result.errors, sizeof result.errors, "%s", text);
    free(text);
    close(output);
    close(errors);
    return result;
}

static inline struct result read_process(const char *options, pid_t pid)
{
    return read_as(options, pid, 0);
}

/* The `index`th object of this kind, or NULL. */
static inline const char *object(const struct result *result, const char *kind, unsigned index)
{
    char begin[64];
    const char *at = result->stream, *end = result->stream + result->bytes;

    snprintf(begin, sizeof begin, "{\"kind\":\"%s\"", kind);
    for (;; index--) {
        at = memmem(at, (size_t)(end - at), begin, strlen(begin));
        if (!at || index == 0)
            return at;
        at++;
    }
}

/* A number of an object of the stream. */
static inline uint64_t number_of(const struct result *result, const char *kind, unsigned index, const char *key)
{
    char name[64];
    const char *at = object(result, kind, index), *end = result->stream + result->bytes;

    CHECK(at, "there is no %s number %u; the reader wrote: %s", kind, index, result->errors);
    snprintf(name, sizeof name, "\"%s\":", key);
    at = memmem(at, (size_t)(end - at), name, strlen(name));
    CHECK(at, "%s has no %s", kind, key);
    return strtoull(at + strlen(name), NULL, 10);
}

static inline bool contains(const struct result *result, const char *text)
{
    return memmem(result->stream, result->bytes, text, strlen(text));
}

/* The sum of a key's values in a file of /proc, in bytes: "Rss:" of smaps_rollup. */
static inline uint64_t figure(pid_t pid, const char *file_name, const char *key)
{
    char name[64], line[512];
    uint64_t sum = 0;

    snprintf(name, sizeof name, "/proc/%d/%s", (int)pid, file_name);
    FILE *file = fopen(name, "r");
    CHECK(file, "%s cannot be read", name);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            sum += strtoull(line + strlen(key), NULL, 10) * 1024;
    fclose(file);
    return sum;
}

/* The reader succeeded, and its stream is complete: it ends with the end record. */
static inline void check_complete(const struct result *result)
{
    CHECK(result->status == 0, "the reader ended with %d: %s", result->status, result->errors);
    CHECK(result->bytes > 22 && result->stream[result->bytes - 6] == 'E' && result->stream[result->bytes - 5] == 4,
          "the stream of %zu bytes has no end", result->bytes);
}

/* A reading that has to succeed. */
static inline struct result read_complete(const char *options, pid_t pid)
{
    struct result result = read_process(options, pid);

    check_complete(&result);
    return result;
}

/* The reader failed with one sentence that contains the text. */
static inline void check_refused(const struct result *result, int status, const char *text)
{
    CHECK(result->status == status, "the reader ended with %d: %s", result->status, result->errors);
    CHECK(strncmp(result->errors, "culet-scope: ", 13) == 0 && strstr(result->errors, text),
          "it wrote \"%s\", not \"%s\"", result->errors, text);
    CHECK(strchr(result->errors, '\n') == result->errors + strlen(result->errors) - 1, "more than one line: %s",
          result->errors);
}
