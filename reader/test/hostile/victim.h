/* victim.h - a process whose memory a test overwrites, and the reader under the sanitizers as a function. */
#pragma once

#include "image.h"

#include "allocator/src/selfmap.h"

#include <sys/resource.h>

int culet_scope_main(int argc, char **argv);

/* Includes the sanitizers' memory. */
#define MOST_KILOBYTES (600 << 10)

/* Processor time; large because the sanitizers are slow. */
#define MOST_SECONDS 120

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0:quarantine_size_mb=4:allocator_may_return_null=1";
}

/* ---- the process ---- */

struct victim {
    struct target target;
    pid_t pid;
    int memory;
    struct image image;
    uint64_t reserved; /* address of the longest mapping, if it has terabytes; or 0 */
    uint64_t state;    /* of the random number generator */
};

static inline uint64_t word_of(const struct victim *victim, uint64_t address)
{
    uint64_t word = 0;

    return pread(victim->memory, &word, sizeof word, (off_t)address) == sizeof word ? word : 0;
}

static inline void set_word(const struct victim *victim, uint64_t address, uint64_t word)
{
    CHECK(pwrite(victim->memory, &word, sizeof word, (off_t)address) == sizeof word, "0x%lx cannot be written to",
          (unsigned long)address);
}

/* Constants can be overwritten too, unless the kernel forbids it (proc_mem.force_override). */
static inline bool can_write(const struct victim *victim, uint64_t address)
{
    uint64_t word = word_of(victim, address);

    return pwrite(victim->memory, &word, sizeof word, (off_t)address) == sizeof word;
}

static inline struct victim open_memory(struct target target)
{
    char name[64];
    const char *seed = getenv("SCOPE_FUZZ_SEED");

    snprintf(name, sizeof name, "/proc/%d/mem", (int)target.pid);
    struct victim victim = {.target = target,
                            .pid = target.pid,
                            .memory = open(name, O_RDWR | O_CLOEXEC),
                            .state = seed ? strtoull(seed, NULL, 10) : 1};
    CHECK(victim.memory >= 0, "the memory of the process cannot be written to");
    return victim;
}

static inline void finish(struct victim *victim)
{
    await_state(victim->pid, 'T');
    close(victim->memory);
    end(&victim->target);
}

/* ---- the reader ---- */

static int output = -1, errors = -1;

static inline void empty(int file)
{
    CHECK(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0, "no file");
}

static inline void be_reader(pid_t pid, const char *mode)
{
    char number[16], *argv[] = {(char *)(uintptr_t) "culet-scope", number, (char *)(uintptr_t)mode, NULL};

    snprintf(number, sizeof number, "%d", (int)pid);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    setrlimit(RLIMIT_CPU, &(struct rlimit){MOST_SECONDS, MOST_SECONDS});
    signal(SIGALRM, SIG_DFL);
    alarm(4 * MOST_SECONDS);
    exit(culet_scope_main(mode ? 3 : 2, argv));
}

static inline struct result read_sanitized(pid_t pid, const char *mode, long *kilobytes)
{
    struct result result = {0};
    struct rusage used;
    int status = 0;
    size_t length;

    if (output < 0) {
        output = memfd_create("output", 0);
        errors = memfd_create("errors", 0);
    }
    empty(output);
    empty(errors);
    pid_t reader = fork();
    if (reader == 0)
        be_reader(pid, mode);
    CHECK(reader > 0 && wait4(reader, &status, 0, &used) == reader, "the reader cannot be waited for");
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.stream = slurp(output, &result.bytes);
    char *text = slurp(errors, &length);
    snprintf(result.errors, sizeof result.errors, "%s", text);
    free(text);
    *kilobytes = used.ru_maxrss;
    return result;
}

/* ---- the words that the reader depends on ---- */

/* Adds the headers of two chunks out of so many. */
#define CHUNKS_APART 37

/* Adds headers of a region's chunks, always that of the last one: the top, or a fencepost. */
static inline void find_chunks(struct image *image, struct record record, const struct range *region)
{
    uint64_t at = region->start, last = at;

    take_varint(&record);
    at += take_varint(&record);
    for (unsigned i = 0; record.at < record.end; i++) {
        uint64_t bytes = (take_varint(&record) >> 2) * CULET_BLOCK_UNIT;
        if (i % CHUNKS_APART < 2)
            add_words(image, "chunks", at, 32);
        if (bytes >= 0x290 && bytes <= 0x310)
            add_words(image, "tcaches", at, bytes);
        last = at;
        at += bytes;
    }
    add_words(image, "tops", last, 16);
}

/* The last page of a thread's stack has its control block. */
static inline void find_in_mapping(struct image *image, const struct record *record)
{
    uint64_t start = key_of(record, "start"), end = key_of(record, "end");

    if (record_has(record, "\"use\":\"stack\"") && record_has(record, "\"label\":\"thread"))
        add_words(image, "control blocks", end - 4096, 4096);
    if (end - start >= UINT64_C(1) << 40)
        add_words(image, "reserved", end - 4096, 64);
    if (record_has(record, "/libc.so.6\"") && record_has(record, "\"perms\":\"rw-p\""))
        add_words(image, "libc's data", start, end - start);
}

static inline void find_in_region(struct image *image, const struct record *record)
{
    uint64_t start = key_of(record, "start");

    if (record_has(record, "\"holds\":\"heap\""))
        add_words(image, "heads of heaps", start, 48);
    if (record_has(record, "\"holds\":\"mmapped\""))
        add_words(image, "large chunks", start, 32);
}

static inline void find_figures(struct victim *victim, const struct result *result)
{
    struct range region = {0};
    struct record record;

    for (size_t at = CULET_STREAM_MAGIC_BYTES; take_record(result, &at, &record);) {
        if (is_kind(&record, "mapping")) {
            find_in_mapping(&victim->image, &record);
            if (key_of(&record, "end") - key_of(&record, "start") >= UINT64_C(1) << 40)
                victim->reserved = key_of(&record, "start");
        }
        if (is_kind(&record, "region")) {
            region = (struct range){key_of(&record, "start"), key_of(&record, "end")};
            find_in_region(&victim->image, &record);
        }
        if (is_kind(&record, "arena"))
            add_words(&victim->image, "arenas", key_of(&record, "address"), 2208);
        if (record.type == 'C')
            find_chunks(&victim->image, record, &region);
        if (record.type == 'R') {
            uint64_t page = take_varint(&record);
            add_words(&victim->image, "Ruby's pages", page, 128);
            add_words(&victim->image, "descriptions", word_of(victim, page), 128);
        }
    }
}

static inline struct victim start_victim(const char *command)
{
    long kilobytes;

    setenv("HEAP_RESERVES", "1", 1);
    struct target target = start_with(command, -1);
    await_state(target.pid, 'T');
    struct victim victim = open_memory(target);
    struct result result = read_sanitized(victim.pid, NULL, &kilobytes);
    check_stream(&result);
    find_figures(&victim, &result);
    free(result.stream);
    return victim;
}

/* The address of the library's record of itself; 0: not found. */
static inline uint64_t find_self(const struct victim *victim, const struct result *result)
{
    struct record record;
    char magic[16];

    for (size_t at = CULET_STREAM_MAGIC_BYTES; take_record(result, &at, &record);) {
        if (!is_kind(&record, "mapping") || !record_has(&record, "/libculet.so\"") ||
            !record_has(&record, "\"perms\":\"r"))
            continue;
        for (uint64_t from = key_of(&record, "start"); from < key_of(&record, "end"); from += 8)
            if (pread(victim->memory, magic, sizeof magic, (off_t)from) == sizeof magic &&
                memcmp(magic, CULET_SELFMAP_MAGIC, sizeof magic) == 0 &&
                word_of(victim, from + offsetof(struct culet_selfmap, self)) == from)
                return from;
    }
    return 0;
}

/* Starts a target on culet's heap, frozen; *self gets the heap's record, *address the record's address. */
static inline struct victim start_on_culet(const char *command, struct culet_selfmap *self, uint64_t *address)
{
    long kilobytes;

    setenv("LD_PRELOAD", LIBCULET, 1);
    struct victim victim = start_victim(command);
    unsetenv("LD_PRELOAD");
    struct result result = read_sanitized(victim.pid, NULL, &kilobytes);
    CHECK(contains(&result, "\"name\":\"culet\""), "the process does not run on culet");
    *address = find_self(&victim, &result);
    CHECK(*address && pread(victim.memory, self, sizeof *self, (off_t)*address) == sizeof *self,
          "libculet.so has no record");
    free(result.stream);
    return victim;
}
