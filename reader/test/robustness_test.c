/* The process runs on, or stays stopped, whatever happens to its reader. Whatever happens to the process, the reader
 * succeeds or ends with one sentence. */
#define _GNU_SOURCE
#include "reader.h"

#include <sys/ptrace.h>

static const char *const modes[] = {"", "--stop", "--live"};
#define MODES (sizeof modes / sizeof *modes)

static void check_used(const struct result *result, const struct target *target)
{
    CHECK_EQUAL(number_of(result, "malloc", 0, "used_bytes") + number_of(result, "malloc", 0, "tcache_bytes"),
                printed(target, "uordblks"));
}

static struct target start_counting(const char *command)
{
    int file = memfd_create("count", 0);

    CHECK(file >= 0 && ftruncate(file, 4096) == 0, "no memory to share");
    struct target target = start_with(command, file);
    target.count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(target.count != MAP_FAILED, "no memory to share");
    close(file);
    return target;
}

static void await_count(const struct target *target, uint64_t more)
{
    _Atomic uint64_t *count = target->count;
    uint64_t from = atomic_load(count);

    for (int i = 0; i < 60000 && atomic_load(count) < from + more; i++)
        nap(1000);
    CHECK(atomic_load(count) >= from + more, "the target does not run: its count went from %lu to %lu",
          (unsigned long)from, (unsigned long)atomic_load(count));
}

TEST(nothing_to_read)
{
    struct result result = read_process("", 0x3ffffff0);
    check_refused(&result, 1, "there is no process 1073741808");
    result = read_process("", 0);
    check_refused(&result, 2, "the PID is missing");
    result = read_process("--stop --live", 1);
    check_refused(&result, 2, "exclude each other");
    result = read_process("--pause-ms 0", 1);
    check_refused(&result, 2, "must be a number from 1");
    result = read_process("--frobnicate", 1);
    check_refused(&result, 2, "--frobnicate");
    result = read_process("12x", 0);
    check_refused(&result, 2, "\"12x\"");
}

TEST(a_thread_is_no_process)
{
    struct target target = start_frozen("heap mixed 2 1");
    char name[64], text[512];
    long tid = 0;

    /* The second thread's number is close to the first's. */
    for (long number = target.pid + 1; number < target.pid + 2000 && !tid; number++) {
        snprintf(name, sizeof name, "/proc/%d/task/%ld", (int)target.pid, number);
        if (access(name, F_OK) == 0)
            tid = number;
    }
    CHECK(tid, "the second thread was not found");
    struct result result = read_process("", (pid_t)tid);
    snprintf(text, sizeof text, "%ld is a thread of process %d", tid, (int)target.pid);
    check_refused(&result, 1, text);
    end(&target);
}

TEST(one_that_has_ended)
{
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    await_state(child, 'Z');
    struct result result = read_process("", child);
    check_refused(&result, 1, "is a zombie");
    waitpid(child, NULL, 0);
}

TEST(without_a_heap)
{
    struct target target = start_with("bare64", -1);

    read_line(&target);
    struct result result = read_complete("", target.pid);
    CHECK(contains(&result, "\"name\":\"none\"") && contains(&result, "\"level\":\"pages\""),
          "an allocator was reported");
    CHECK(number_of(&result, "process", 0, "rss_bytes") > 0, "nothing is resident");
    CHECK_EQUAL(number_of(&result, "process", 0, "rss_bytes"), figure(target.pid, "smaps_rollup", "Rss:"));
    end(&target);
}

#ifdef __x86_64__
TEST(a_32_bit_program)
{
    struct target target = start_with("bare32", -1);

    read_line(&target);
    if (strcmp(target.line, "ready") != 0) {
        CHECK(true, "this kernel runs no 32-bit programs");
        return;
    }
    struct result result = read_complete("", target.pid);
    CHECK_EQUAL(number_of(&result, "process", 0, "bits"), 32);
    CHECK(contains(&result, "is a 32-bit program"), "no problem is reported");
    CHECK(number_of(&result, "process", 0, "rss_bytes") > 0, "nothing is resident");
    end(&target);
}
#endif

/* Pages of a program that was just built are dirty until they are written to the disk. */
static void write_out(const char *program)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", TARGETS, program);
    int file = open(path, O_RDONLY);
    CHECK(file >= 0 && fsync(file) == 0, "%s cannot be written to the disk", path);
    close(file);
}

/* Shared and private clean pages of files are added up: other programs that use the same libraries come and go
 * meanwhile. */
enum { FIGURES = 7 };
static const char *const figure_names[FIGURES] = {
    "Rss:", "Pss_Anon:", "Private_Dirty:", "Shared_Dirty:", "Anonymous:", "Swap:", "clean"};

static void read_figures(pid_t pid, uint64_t figures[FIGURES])
{
    for (size_t i = 0; i < FIGURES - 1; i++)
        figures[i] = figure(pid, "smaps_rollup", figure_names[i]);
    figures[FIGURES - 1] = figure(pid, "smaps_rollup", "Private_Clean:") + figure(pid, "smaps_rollup", "Shared_Clean:");
}

/* Reading changes nothing: resident, dirty, shared and swapped pages stay the same. */
TEST(leaves_no_trace)
{
    static const char *const kinds[] = {"heap trimmed 4 30", "heap aligned 2 5", "heap gaps 2 10", "heap forked 2 10"};

    write_out("heap");
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        struct target target = start_frozen(kinds[kind]);
        for (size_t mode = 0; mode < MODES; mode++) {
            uint64_t before[FIGURES], after[FIGURES];
            read_figures(target.pid, before);
            (void)read_complete(modes[mode], target.pid);
            read_figures(target.pid, after);
            for (size_t i = 0; i < FIGURES; i++)
                CHECK(after[i] == before[i], "%s %s %s was %lu, is %lu", kinds[kind], modes[mode], figure_names[i],
                      (unsigned long)before[i], (unsigned long)after[i]);
        }
        end(&target);
    }
}

TEST(what_was_stopped_stays_stopped)
{
    struct target target = start_frozen("heap mixed 5 10");

    for (size_t mode = 0; mode < MODES; mode++) {
        (void)read_complete(modes[mode], target.pid);
        /* It needs a processor to stop again. */
        await_state(target.pid, 'T');
        nap(20000);
        CHECK(state_of(target.pid) == 'T', "after %s it is in state %c", modes[mode], state_of(target.pid));
    }
    /* And can be woken. */
    kill(target.pid, SIGCONT);
    await_state(target.pid, 'Z');
    end(&target);
}

TEST(a_killed_reader_lets_go)
{
    int nothing = open("/dev/null", O_WRONLY);
    struct target target = start_counting("churn 4 40");
    static const int ends[] = {SIGKILL, SIGINT, SIGTERM};

    await_count(&target, 200000);
    for (unsigned i = 0, readers = check_rounds(12, 30); i < readers; i++) {
        int status;
        pid_t reader = start_reader(modes[i % 2], target.pid, nothing, nothing, 0);
        nap(i * 45000 / readers);
        kill(reader, ends[i % 3]);
        CHECK(waitpid(reader, &status, 0) == reader, "the reader cannot be waited for");
        await_count(&target, 10000);
    }
    CHECK(figure(target.pid, "status", "TracerPid:") == 0, "it is still traced");
    end(&target);
}

TEST(one_that_is_traced)
{
    struct target target = start_frozen("heap mixed 1 1");
    char text[64];

    CHECK(ptrace(PTRACE_SEIZE, target.pid, 0, 0) == 0, "the test cannot trace its target");
    struct result result = read_process("", target.pid);
    snprintf(text, sizeof text, "already being traced by process %d", (int)getpid());
    check_refused(&result, 1, text);
    result = read_complete("--live", target.pid);
    end(&target);
}

static uint64_t microseconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* The process ends or calls exec during a reading in very short slices, each time after another part of the time
 * that an undisturbed reading took. */
static void check_vanishing(const char *what, const char *sentence, unsigned least)
{
    unsigned reported = 0, parts = check_rounds(6, 12);

    for (unsigned i = 0; i < parts || (reported < least && i < 60); i++) {
        char command[64];
        snprintf(command, sizeof command, "churn 3 60 %s", what);
        struct target target = start_counting(command);
        await_count(&target, 20000);
        uint64_t began = microseconds();
        (void)read_complete("--pause-ms 1", target.pid);
        atomic_store(&target.count[1], 1 + (microseconds() - began) * (i % parts) / parts);
        struct result result = read_process("--pause-ms 1", target.pid);
        if (result.status == 0)
            check_complete(&result);
        else
            CHECK(result.status == 1 &&
                      (strstr(result.errors, sentence) || strstr(result.errors, "there is no process") ||
                       strstr(result.errors, "is a zombie")),
                  "it ended with %d: %s", result.status, result.errors);
        reported += strstr(result.errors, sentence) != NULL;
        end(&target);
    }
    CHECK(reported >= least, "%u readings reported \"%s\"", reported, sentence);
}

TEST(ends_meanwhile)
{
    check_vanishing("exit", "ended while it was being read", 1);
}
TEST(executes_meanwhile)
{
    check_vanishing("exec", "executed another program", 1);
}

/* Threads are killed, and one takes over the main thread's number, while they are being stopped. The process is
 * read, or the reader reports the exec; it never reports that the process ended or is being traced. */
static void check_executing(const char *command)
{
    struct target target = start_counting(command);
    unsigned reported = 0;

    await_count(&target, 3);
    for (unsigned i = 0; i < 60; i++) {
        struct result result = read_process(i % 4 == 3 ? "--stop" : "--pause-ms 1", target.pid);
        if (result.status == 0)
            check_complete(&result);
        else
            check_refused(&result, 1, "executed another program");
        reported += result.status == 1;
    }
    CHECK(reported > 0, "no exec was reported");
    await_count(&target, 3);
    end(&target);
}

TEST(a_thread_executes_all_the_time)
{
    check_executing("executes 6");
}
TEST(the_main_thread_executes_all_the_time)
{
    check_executing("executes 6 main");
}

TEST(forks_all_the_time)
{
    struct target target = start_counting("churn 3 30 fork");

    await_count(&target, 100000);
    for (unsigned i = 0; i < 6; i++) {
        (void)read_complete(modes[i % MODES], target.pid);
        await_count(&target, 1000);
    }
    end(&target);
}

/* 25 threads allocate in parallel: in pauses the heap is consistent. */
TEST(churning)
{
    struct target target = start_counting("churn 25 100");

    await_count(&target, 500000);
    for (unsigned i = 0, readings = check_rounds(1, 3) * MODES; i < readings; i++) {
        struct result result = read_complete(modes[i % MODES], target.pid);
        uint64_t arenas = number_of(&result, "malloc", 0, "arenas");
        CHECK(arenas > 4, "%lu arenas", (unsigned long)arenas);
        if (i % MODES != 2)
            CHECK(!contains(&result, "\"broken\":true"), "in mode \"%s\" an arena is reported as broken: %.400s",
                  modes[i % MODES], object(&result, "problem", 0));
        CHECK(number_of(&result, "malloc", 0, "chunks") > 50000, "few chunks");
        await_count(&target, 1000);
    }
    end(&target);
}

/* A thread in uninterruptible sleep does not stop; the process is read all the same. */
TEST(asleep_in_the_kernel)
{
    struct target target = start_with("asleep 160", -1);
    struct result result;

    read_line(&target);
    CHECK(strcmp(target.line, "asleep") == 0, "the target printed \"%s\"", target.line);
    result = read_complete("--pause-ms 1", target.pid);
    CHECK(number_of(&result, "reading", 0, "pauses") > 3, "%lu pauses",
          (unsigned long)number_of(&result, "reading", 0, "pauses"));
    CHECK(!contains(&result, "\"broken\":true"), "an arena is reported as broken: %.400s",
          object(&result, "problem", 0));
    for (size_t i = 0; i < 2; i++)
        (void)read_complete(modes[i], target.pid);
    await_state(target.pid, 'S');
    end(&target);
}

/* A thread at work in the kernel does not stop soon: the others are released and stopped again meanwhile. */
TEST(at_work_in_the_kernel)
{
    struct target target = start_with("populates 200", -1);

    read_line(&target);
    for (size_t i = 0; i < 2; i++) {
        struct result result = read_complete(i ? "--stop" : "--pause-ms 2", target.pid);
        check_used(&result, &target);
        if (i)
            CHECK_EQUAL(number_of(&result, "reading", 0, "pauses"), 1);
        else
            CHECK(number_of(&result, "reading", 0, "pauses") > 5, "the other threads were never released");
    }
    end(&target);
}

/* A process with one thread takes no locks. */
TEST(churning_alone)
{
    struct target target = start_counting("churn 1 60");

    await_count(&target, 500000);
    for (unsigned i = 0; i < 12; i++) {
        struct result result = read_complete(modes[i % 2], target.pid);
        CHECK(!contains(&result, "\"broken\":true"), "in mode \"%s\" the arena is reported as broken: %.400s",
              modes[i % 2], object(&result, "problem", 0));
    }
    end(&target);
}

TEST(a_damaged_heap)
{
    struct target target = start_frozen("broken");

    for (size_t mode = 0; mode < MODES; mode++) {
        struct result result = read_complete(modes[mode], target.pid);
        CHECK(contains(&result, "\"broken\":true") && contains(&result, "The walk of the main arena"),
              "no broken arena is reported");
        /* Half of the main arena, and the whole other one. */
        uint64_t chunks = number_of(&result, "malloc", 0, "chunks");
        CHECK(chunks > 29000 && chunks < 31500, "%lu chunks", (unsigned long)chunks);
    }
    end(&target);
}

/* A heap that is not found is reported by pages. */
TEST(a_heap_that_is_not_found)
{
    struct target target = start_frozen("lost");

    struct result before = read_complete("", target.pid);
    CHECK(contains(&before, "\"level\":\"blocks\""), "the heap was not found before the damage");
    kill(target.pid, SIGCONT);
    await_state(target.pid, 'T');
    for (size_t mode = 0; mode < MODES; mode++) {
        struct result result = read_complete(modes[mode], target.pid);
        CHECK(contains(&result, "\"name\":\"glibc\"") && contains(&result, "\"level\":\"pages\"") &&
                  contains(&result, "glibc's arenas were not found") && contains(&result, "attributed to glibc's heap"),
              "the missing heap is not reported: %.300s", object(&result, "allocator", 0));
        CHECK(!contains(&result, "{\"kind\":\"malloc\""), "there are figures of a heap that was not found");
    }
    end(&target);
}

/* The main thread has ended: the process is read by way of another thread. */
TEST(without_a_main_thread)
{
    struct target target = start_with("headless frozen", -1);
    int status;

    read_line(&target);
    CHECK(waitpid(target.pid, &status, WUNTRACED) == target.pid && WIFSTOPPED(status), "it has not stopped itself");
    CHECK(state_of(target.pid) == 'Z', "its main thread is in state %c", state_of(target.pid));
    for (size_t mode = 0; mode < MODES; mode++) {
        struct result result = read_complete(modes[mode], target.pid);
        CHECK_EQUAL(number_of(&result, "process", 0, "pid"), target.pid);
        check_used(&result, &target);
        CHECK(number_of(&result, "process", 0, "rss_bytes") > 5 << 20, "little is resident");
        CHECK(!contains(&result, "{\"kind\":\"problem\""), "there is a problem: %.300s", object(&result, "problem", 0));
    }
    end(&target);
}

/* The thread used for reading ends again and again, too. */
TEST(without_any_lasting_thread)
{
    struct target target = start_counting("headless relay");

    await_count(&target, 100);
    for (unsigned i = 0; i < 20; i++) {
        struct result result = read_complete(i % 2 ? "--stop" : "--pause-ms 1", target.pid);
        CHECK(contains(&result, "\"level\":\"blocks\""), "its heap was not found: %.300s",
              object(&result, "problem", 0));
        await_count(&target, 1);
    }
    bool reported = false;
    for (unsigned i = 0; i < 20 && !reported; i++) {
        struct result result = read_complete("--live", target.pid);
        reported = contains(&result, "The thread used to read process ");
    }
    CHECK(reported, "the end of the thread is not reported");
    end(&target);
}

/* Each thread is waited for by its number: waitpid(-1) takes the kernel a walk over all threads. */
TEST(many_threads)
{
    struct target target = start_frozen("threads 600");

    waiting_for_any_denied = true;
    for (size_t i = 0; i < 2; i++) {
        struct result result = read_complete(modes[i], target.pid);
        CHECK_EQUAL(number_of(&result, "process", 0, "threads"), 600);
        check_used(&result, &target);
    }
    end(&target);
}

/* A note says that pauses will be longer than requested; not with --stop and --live, where no limit applies. */
TEST(pauses_longer_than_asked)
{
    static const char *const options[] = {"--pause-ms 5", "--pause-ms 60000", "--stop", "--live"};
    static const char sentence[] = "has 600 threads; stopping and releasing them takes about ";
    struct target target = start_frozen("threads 600");

    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct result result = read_complete(options[i], target.pid);
        if (i == 0)
            CHECK(strncmp(result.errors, "culet-scope: note: ", 19) == 0 && strstr(result.errors, sentence) &&
                      strstr(result.errors, "--live"),
                  "it printed \"%s\"", result.errors);
        else
            CHECK(!*result.errors, "with %s it printed \"%s\"", options[i], result.errors);
    }
    end(&target);
    target = start_frozen("threads 20");
    struct result result = read_complete("--pause-ms 5", target.pid);
    CHECK(!*result.errors, "with 20 threads it printed \"%s\"", result.errors);
    end(&target);
}

TEST(of_another_user)
{
    struct target target = start_frozen("heap mixed 1 1");
    struct result result;

    if (geteuid() != 0) {
        CHECK(true, "this needs root");
        return;
    }
    result = read_as("", target.pid, 65534);
    check_refused(&result, 1, "belongs to another user (root)");
    end(&target);
}

/* Without process_vm_readv memory is read from /proc/PID/mem. */
TEST(a_sandbox_without_the_call_to_read)
{
    struct target target = start_frozen("heap mixed 3 5");

    reading_denied = SYS_process_vm_readv;
    struct result result = read_complete("", target.pid);
    check_used(&result, &target);
    end(&target);
}

/* A process that cannot be stopped is read while it runs, which is reported. */
TEST(a_sandbox_without_ptrace)
{
    struct target target = start_frozen("heap mixed 3 5");

    reading_denied = SYS_ptrace;
    struct result result = read_complete("", target.pid);
    CHECK(contains(&result, "does not let this program stop process"), "the missing pauses are not reported");
    CHECK(contains(&result, "\"mode\":\"live\""), "the mode is wrong");
    check_used(&result, &target);
    end(&target);
}

/* A waiting child of the user nobody; 0 without root. */
static pid_t start_nobody(bool dumpable)
{
    int ends[2];
    char byte;

    if (geteuid() != 0 || pipe(ends) != 0)
        return 0;
    pid_t child = fork();
    if (child == 0) {
        /* setuid resets the signal. */
        if (setgid(65534) != 0 || setuid(65534) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
            prctl(PR_SET_DUMPABLE, dumpable) != 0 || write(ends[1], "x", 1) != 1)
            _exit(3);
        for (;;)
            pause();
    }
    CHECK(read(ends[0], &byte, 1) == 1, "the child did not start");
    return child;
}

static void end_nobody(pid_t child)
{
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child, "the child cannot be waited for");
}

/* A process of the reader's own user that is not dumpable. */
TEST(not_dumpable)
{
    pid_t child = start_nobody(false);

    CHECK(child >= 0, "this needs root");
    if (!child)
        return;
    struct result result = read_as("", child, 65534);
    check_refused(&result, 1, "is not dumpable");
    end_nobody(child);
}

/* Processes of the same user need no root. */
TEST(the_same_user)
{
    pid_t child = start_nobody(true);

    CHECK(child >= 0, "this needs root");
    if (!child)
        return;
    struct result result = read_as("", child, 65534);
    check_complete(&result);
    CHECK(number_of(&result, "malloc", 0, "chunks") > 0 || contains(&result, "\"level\":\"pages\""),
          "nothing is reported");
    end_nobody(child);
}

/* Memory must not be read, page tables may: pages are reported. */
static void check_pages_only(const struct result *result, pid_t pid, const char *why)
{
    check_complete(result);
    CHECK(contains(result, "Only pages can be reported, not blocks") && contains(result, why),
          "the reason is missing: %.300s", object(result, "problem", 0));
    CHECK(contains(result, "\"level\":\"pages\"") && !contains(result, "{\"kind\":\"malloc\""), "blocks are reported");
    CHECK_EQUAL(number_of(result, "process", 0, "rss_bytes"), figure(pid, "smaps_rollup", "Rss:"));
    CHECK(number_of(result, "process", 0, "rss_bytes") > 0 && object(result, "mapping", 3), "nothing is reported");
}

TEST(only_its_pages)
{
    struct target target = start_frozen("heap mixed 2 5");

    memory_denied = true;
    for (size_t mode = 0; mode < MODES; mode++) {
        struct result result = read_process(modes[mode], target.pid);
        check_pages_only(&result, target.pid,
                         geteuid() == 0 ? "this container does not let root read process" : "is not dumpable");
    }
    CHECK(state_of(target.pid) == 'T', "it is in state %c", state_of(target.pid));
    end(&target);
}

/* Yama keeps a plain user from reading their own processes. */
TEST(yama)
{
    static const char *const sentences[] = {"sudo sysctl kernel.yama.ptrace_scope=0",
                                            "lets only root read other processes", "lets nobody read other processes"};
    static const char *const scopes[] = {"1\n", "2\n", "3\n"};
    pid_t child = start_nobody(true);

    CHECK(child >= 0, "this needs root");
    if (!child)
        return;
    memory_denied = true;
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        yama_scope = scopes[i];
        struct result result = read_as("", child, 65534);
        check_pages_only(&result, child, sentences[i]);
    }
    end_nobody(child);
}

/* Root of a container, without the capability that the process has. */
TEST(root_without_the_capability)
{
    struct target target = start_frozen("heap mixed 1 1");

    if (geteuid() != 0) {
        CHECK(true, "this needs root");
        end(&target);
        return;
    }
    capabilities_denied = sizeof capabilities / sizeof *capabilities;
    struct result result = read_process("", target.pid);
    check_refused(&result, 1, "start it with --cap-add SYS_PTRACE, or run this on the host");
    /* It depends on the kernel whether page tables may be read. */
    capabilities_denied = 1;
    result = read_process("", target.pid);
    if (result.status == 0)
        check_pages_only(&result, target.pid, "this container does not let root read process");
    else
        check_refused(&result, 1, "start it with --cap-add SYS_PTRACE, or run this on the host");
    end(&target);
}

TEST(a_full_disk)
{
    struct target target = start_frozen("heap mixed 1 5");
    int full = open("/dev/full", O_WRONLY), errors = memfd_create("errors", 0), status;
    size_t length;

    pid_t reader = start_reader("", target.pid, full, errors, 0);
    CHECK(waitpid(reader, &status, 0) == reader, "the reader cannot be waited for");
    struct result result = {.status = WEXITSTATUS(status)};
    snprintf(result.errors, sizeof result.errors, "%s", slurp(errors, &length));
    check_refused(&result, 1, "cannot write the result");
    end(&target);
}

CHECK_MAIN
