/* Bad weather: a process keeps on running, or resting, whatever happens to its reader; and whatever happens to it, the
 * reader ends with a sentence. */
#define _GNU_SOURCE
#include "reading.h"

#include <sys/ptrace.h>

static const char *const modes[] = {"", "--stop", "--live"};
#define MODES (sizeof modes / sizeof *modes)

/* Where churning targets count. */
static _Atomic uint64_t *shared_count(int *file)
{
    *file = memfd_create("count", 0);
    CHECK(*file >= 0 && ftruncate(*file, 4096) == 0, "no memory to share");
    void *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
    CHECK(count != MAP_FAILED, "no memory to share");
    return count;
}

static void await_count(_Atomic uint64_t *count, uint64_t more)
{
    uint64_t from = atomic_load(count);

    for (int i = 0; i < 60000 && atomic_load(count) < from + more; i++)
        nap(1000);
    CHECK(atomic_load(count) >= from + more, "the target does not run: %lu, then %lu", (unsigned long)from,
          (unsigned long)atomic_load(count));
}

TEST(nothing_to_read)
{
    struct reading reading = read_process("", 0x3ffffff0);
    check_refused(&reading, 1, "there is no process 1073741808");
    reading = read_process("", 0);
    check_refused(&reading, 2, "give its PID");
    reading = read_process("--stop --live", 1);
    check_refused(&reading, 2, "exclude each other");
    reading = read_process("--pause-ms 0", 1);
    check_refused(&reading, 2, "wants a number from 1");
    reading = read_process("--frobnicate", 1);
    check_refused(&reading, 2, "--frobnicate");
    reading = read_process("12x", 0);
    check_refused(&reading, 2, "\"12x\"");
}

TEST(a_thread_is_no_process)
{
    struct target target = start_frozen("heap mixed 2 1");
    char name[64], text[512];
    long tid = 0;

    /* The second thread's number follows soon on the first's. */
    for (long number = target.pid + 1; number < target.pid + 2000 && !tid; number++) {
        snprintf(name, sizeof name, "/proc/%d/task/%ld", (int)target.pid, number);
        if (access(name, F_OK) == 0)
            tid = number;
    }
    CHECK(tid, "the second thread was not found");
    struct reading reading = read_process("", (pid_t)tid);
    snprintf(text, sizeof text, "%ld is a thread of process %d", tid, (int)target.pid);
    check_refused(&reading, 1, text);
    end(&target);
}

TEST(one_that_has_ended)
{
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    await_state(child, 'Z');
    struct reading reading = read_process("", child);
    check_refused(&reading, 1, "has ended");
    waitpid(child, NULL, 0);
}

TEST(without_a_heap)
{
    struct target target = start_with("bare64", -1);

    listen(&target);
    struct reading reading = read_process("", target.pid);
    check_done(&reading);
    CHECK(tells(&reading, "\"name\":\"none\"") && tells(&reading, "\"level\":\"pages\""), "an allocator was made up");
    CHECK(number_of(&reading, "process", 0, "rss_bytes") > 0, "nothing is resident");
    CHECK_EQUAL(number_of(&reading, "process", 0, "rss_bytes"), figure(target.pid, "smaps_rollup", "Rss:"));
    end(&target);
}

#ifdef __x86_64__
TEST(a_32_bit_program)
{
    struct target target = start_with("bare32", -1);

    listen(&target);
    if (strcmp(target.said, "ready") != 0) {
        CHECK(true, "this kernel runs no 32-bit programs");
        return;
    }
    struct reading reading = read_process("", target.pid);
    check_done(&reading);
    CHECK_EQUAL(number_of(&reading, "process", 0, "bits"), 32);
    CHECK(tells(&reading, "is a 32-bit program"), "it is not said that it is one of 32 bits");
    CHECK(number_of(&reading, "process", 0, "rss_bytes") > 0, "nothing is resident");
    end(&target);
}
#endif

/* Pages of a program that was just built are dirty as long as the disk does not have them, and clean from one moment to
 * the next. */
static void write_out(const char *program)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", TARGETS, program);
    int file = open(path, O_RDONLY);
    CHECK(file >= 0 && fsync(file) == 0, "%s cannot be written to the disk", path);
    close(file);
}

/* Clean pages of files count as one: whether they are shared or private is for all the programs to say that use the
 * same libraries and come and go meanwhile. */
enum { FIGURES = 7 };
static const char *const figure_names[FIGURES] = {"Rss:",        "Pss_Anon:", "Private_Dirty:", "Shared_Dirty:",
                                                  "Anonymous:", "Swap:",     "clean"};

static void read_figures(pid_t pid, uint64_t figures[FIGURES])
{
    for (size_t i = 0; i < FIGURES - 1; i++)
        figures[i] = figure(pid, "smaps_rollup", figure_names[i]);
    figures[FIGURES - 1] = figure(pid, "smaps_rollup", "Private_Clean:") + figure(pid, "smaps_rollup", "Shared_Clean:");
}

/* Reading takes nothing and gives nothing: what is resident, dirty, shared and in swap stays, page by page. */
TEST(leaves_no_trace)
{
    static const char *const kinds[] = {"heap trimmed 4 30", "heap aligned 2 5", "heap gaps 2 10", "heap forked 2 10"};

    write_out("heap");
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        struct target target = start_frozen(kinds[kind]);
        for (size_t mode = 0; mode < MODES; mode++) {
            uint64_t before[FIGURES], after[FIGURES];
            read_figures(target.pid, before);
            struct reading reading = read_process(modes[mode], target.pid);
            check_done(&reading);
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
        struct reading reading = read_process(modes[mode], target.pid);
        check_done(&reading);
        /* It has to be given a processor to stop on again. */
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
    int file, nothing = open("/dev/null", O_WRONLY);
    _Atomic uint64_t *count = shared_count(&file);
    struct target target = start_with("churn 4 40", file);
    static const int ends[] = {SIGKILL, SIGINT, SIGTERM};

    await_count(count, 200000);
    for (unsigned i = 0; i < 30; i++) {
        int status;
        pid_t reader = start_reader(modes[i % 2], target.pid, nothing, nothing, 0);
        nap(i * 1500);
        kill(reader, ends[i % 3]);
        CHECK(waitpid(reader, &status, 0) == reader, "the reader cannot be waited for");
        await_count(count, 10000);
    }
    CHECK(figure(target.pid, "status", "TracerPid:") == 0, "it is still traced");
    end(&target);
}

TEST(one_that_is_traced)
{
    struct target target = start_frozen("heap mixed 1 1");
    char text[64];

    CHECK(ptrace(PTRACE_SEIZE, target.pid, 0, 0) == 0, "the test cannot trace its target");
    struct reading reading = read_process("", target.pid);
    snprintf(text, sizeof text, "traced already, by process %d", (int)getpid());
    check_refused(&reading, 1, text);
    reading = read_process("--live", target.pid);
    check_done(&reading);
    end(&target);
}

static uint64_t microseconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* Ends, or becomes another program, at some moment of a reading in very short slices: each time at another part of the
 * time that a reading of it, undisturbed, just took. */
static void check_vanishing(const char *what, const char *sentence, unsigned least)
{
    unsigned told = 0;

    for (unsigned i = 0; i < 12 || (told < least && i < 60); i++) {
        int file;
        char command[64];
        _Atomic uint64_t *count = shared_count(&file);
        snprintf(command, sizeof command, "churn 3 60 %s", what);
        struct target target = start_with(command, file);
        await_count(count, 20000);
        uint64_t began = microseconds();
        struct reading reading = read_process("--pause-ms 1", target.pid);
        check_done(&reading);
        free(reading.stream);
        atomic_store(&count[1], 1 + (microseconds() - began) * (i % 12) / 12);
        reading = read_process("--pause-ms 1", target.pid);
        if (reading.status == 0)
            check_done(&reading);
        else
            CHECK(reading.status == 1 && (strstr(reading.errors, sentence) || strstr(reading.errors, "there is no process") ||
                                          strstr(reading.errors, "has ended")),
                  "it ended with %d: %s", reading.status, reading.errors);
        told += strstr(reading.errors, sentence) != NULL;
        free(reading.stream);
        end(&target);
        munmap((void *)count, 4096);
        close(file);
    }
    CHECK(told >= least, "of all readings %u said \"%s\"", told, sentence);
}

TEST(ends_meanwhile) { check_vanishing("exit", "ended while it was being read", 1); }
TEST(executes_meanwhile) { check_vanishing("exec", "executed another program", 1); }

/* Threads are killed, and one takes over the main thread's number, while they are being stopped: the process is read, or
 * it is said that it executed another program; it is not taken for one that ended, or that somebody traces. */
static void check_executing(const char *command)
{
    int file;
    _Atomic uint64_t *count = shared_count(&file);
    struct target target = start_with(command, file);
    unsigned told = 0;

    await_count(count, 3);
    for (unsigned i = 0; i < 60; i++) {
        struct reading reading = read_process(i % 4 == 3 ? "--stop" : "--pause-ms 1", target.pid);
        if (reading.status == 0)
            check_done(&reading);
        else
            check_refused(&reading, 1, "executed another program");
        told += reading.status == 1;
        free(reading.stream);
    }
    CHECK(told > 0, "it never executed another program while it was read");
    await_count(count, 3);
    end(&target);
}

TEST(a_thread_executes_all_the_time) { check_executing("executes 6"); }
TEST(the_main_thread_executes_all_the_time) { check_executing("executes 6 main"); }

TEST(forks_all_the_time)
{
    int file;
    _Atomic uint64_t *count = shared_count(&file);
    struct target target = start_with("churn 3 30 fork", file);

    await_count(count, 100000);
    for (unsigned i = 0; i < 6; i++) {
        struct reading reading = read_process(modes[i % MODES], target.pid);
        check_done(&reading);
        free(reading.stream);
        await_count(count, 1000);
    }
    end(&target);
}

/* 25 threads that allocate in parallel: in pauses nothing is out of order. */
TEST(churning)
{
    int file;
    _Atomic uint64_t *count = shared_count(&file);
    struct target target = start_with("churn 25 100", file);

    await_count(count, 500000);
    for (unsigned i = 0; i < 9; i++) {
        struct reading reading = read_process(modes[i % MODES], target.pid);
        check_done(&reading);
        uint64_t arenas = number_of(&reading, "malloc", 0, "arenas");
        CHECK(arenas > 4, "%lu arenas", (unsigned long)arenas);
        if (i % MODES != 2)
            CHECK(!tells(&reading, "\"broken\":true"), "in mode \"%s\" an arena was taken for broken: %.400s",
                  modes[i % MODES], object(&reading, "problem", 0));
        CHECK(number_of(&reading, "malloc", 0, "chunks") > 50000, "few chunks");
        free(reading.stream);
        await_count(count, 1000);
    }
    end(&target);
}

/* A thread that sleeps in the kernel does not stop; that keeps nobody from reading the process, slice by slice. */
TEST(asleep_in_the_kernel)
{
    struct target target = start_with("asleep 160", -1);
    struct reading reading;

    listen(&target);
    CHECK(strcmp(target.said, "asleep") == 0, "the target said \"%s\"", target.said);
    reading = read_process("--pause-ms 1", target.pid);
    check_done(&reading);
    CHECK(number_of(&reading, "reading", 0, "pauses") > 3, "%lu pauses", (unsigned long)number_of(&reading, "reading", 0, "pauses"));
    CHECK(!tells(&reading, "\"broken\":true"), "an arena was taken for broken: %.400s", object(&reading, "problem", 0));
    free(reading.stream);
    for (size_t i = 0; i < 2; i++) {
        reading = read_process(modes[i], target.pid);
        check_done(&reading);
        free(reading.stream);
    }
    await_state(target.pid, 'S');
    end(&target);
}

/* A thread that is at work in the kernel does not stop soon: the others are let go and stopped anew meanwhile. */
TEST(at_work_in_the_kernel)
{
    struct target target = start_with("populates 200", -1);

    listen(&target);
    for (size_t i = 0; i < 2; i++) {
        struct reading reading = read_process(i ? "--stop" : "--pause-ms 2", target.pid);
        check_done(&reading);
        CHECK_EQUAL(number_of(&reading, "malloc", 0, "used_bytes") + number_of(&reading, "malloc", 0, "tcache_bytes"),
                    said(&target, "uordblks"));
        if (i)
            CHECK_EQUAL(number_of(&reading, "reading", 0, "pauses"), 1);
        else
            CHECK(number_of(&reading, "reading", 0, "pauses") > 5, "no try to stop it was given up");
        free(reading.stream);
    }
    end(&target);
}

/* A process of one thread takes no locks. */
TEST(churning_alone)
{
    int file;
    _Atomic uint64_t *count = shared_count(&file);
    struct target target = start_with("churn 1 60", file);

    await_count(count, 500000);
    for (unsigned i = 0; i < 12; i++) {
        struct reading reading = read_process(modes[i % 2], target.pid);
        check_done(&reading);
        CHECK(!tells(&reading, "\"broken\":true"), "in mode \"%s\" the arena was taken for broken: %.400s",
              modes[i % 2], object(&reading, "problem", 0));
        free(reading.stream);
    }
    end(&target);
}

TEST(a_spoiled_heap)
{
    struct target target = start_frozen("broken");

    for (size_t mode = 0; mode < MODES; mode++) {
        struct reading reading = read_process(modes[mode], target.pid);
        check_done(&reading);
        CHECK(tells(&reading, "\"broken\":true") && tells(&reading, "The walk of the main arena"),
              "a spoiled heap was not noticed");
        /* Half of main, and all of the other arena. */
        uint64_t chunks = number_of(&reading, "malloc", 0, "chunks");
        CHECK(chunks > 29000 && chunks < 31500, "%lu chunks", (unsigned long)chunks);
    }
    end(&target);
}

/* Never as if there were no heap. */
TEST(a_heap_that_is_not_found)
{
    struct target target = start_frozen("lost");

    struct reading before = read_process("", target.pid);
    check_done(&before);
    CHECK(tells(&before, "\"level\":\"blocks\""), "the heap was not found before it was spoiled");
    kill(target.pid, SIGCONT);
    await_state(target.pid, 'T');
    for (size_t mode = 0; mode < MODES; mode++) {
        struct reading reading = read_process(modes[mode], target.pid);
        check_done(&reading);
        CHECK(tells(&reading, "\"name\":\"glibc\"") && tells(&reading, "\"level\":\"pages\"") &&
                  tells(&reading, "glibc's arenas were not found") && tells(&reading, "taken for glibc's heap"),
              "the heap was lost silently: %.300s", object(&reading, "allocator", 0));
        CHECK(!tells(&reading, "{\"kind\":\"malloc\""), "there are figures of a heap that was not found");
    }
    end(&target);
}

/* The main thread has ended, the process has not: it is read by way of another thread. */
TEST(without_a_main_thread)
{
    struct target target = start_with("headless frozen", -1);
    int status;

    listen(&target);
    CHECK(waitpid(target.pid, &status, WUNTRACED) == target.pid && WIFSTOPPED(status), "it has not stopped itself");
    CHECK(state_of(target.pid) == 'Z', "its main thread is in state %c", state_of(target.pid));
    for (size_t mode = 0; mode < MODES; mode++) {
        struct reading reading = read_process(modes[mode], target.pid);
        check_done(&reading);
        CHECK_EQUAL(number_of(&reading, "process", 0, "pid"), target.pid);
        CHECK_EQUAL(number_of(&reading, "malloc", 0, "used_bytes") + number_of(&reading, "malloc", 0, "tcache_bytes"),
                    said(&target, "uordblks"));
        CHECK(number_of(&reading, "process", 0, "rss_bytes") > 5 << 20, "little is resident");
        CHECK(!tells(&reading, "{\"kind\":\"problem\""), "there is a problem: %.300s", object(&reading, "problem", 0));
        free(reading.stream);
    }
    end(&target);
}

/* The thread by which it is read ends all the time, too. */
TEST(without_any_lasting_thread)
{
    int file;
    _Atomic uint64_t *count = shared_count(&file);
    struct target target = start_with("headless relay", file);

    await_count(count, 100);
    for (unsigned i = 0; i < 20; i++) {
        struct reading reading = read_process(i % 2 ? "--stop" : "--pause-ms 1", target.pid);
        check_done(&reading);
        CHECK(tells(&reading, "\"level\":\"blocks\""), "its heap was not found: %.300s", object(&reading, "problem", 0));
        free(reading.stream);
        await_count(count, 1);
    }
    bool told = false;
    for (unsigned i = 0; i < 20 && !told; i++) {
        struct reading reading = read_process("--live", target.pid);
        check_done(&reading);
        told = tells(&reading, "The thread by which process ");
        free(reading.stream);
    }
    CHECK(told, "it is not said that the thread ended");
    end(&target);
}

/* To wait for any thread takes the kernel a walk over all of them: so many of these would make a pause long. Each is waited
 * for by its number. */
TEST(many_threads)
{
    struct target target = start_frozen("threads 600");

    waiting_for_any_denied = true;
    for (size_t i = 0; i < 2; i++) {
        struct reading reading = read_process(modes[i], target.pid);
        check_done(&reading);
        CHECK_EQUAL(number_of(&reading, "process", 0, "threads"), 600);
        CHECK_EQUAL(number_of(&reading, "malloc", 0, "used_bytes") + number_of(&reading, "malloc", 0, "tcache_bytes"),
                    said(&target, "uordblks"));
        free(reading.stream);
    }
    end(&target);
}

/* That pauses will be longer than they should be is said beforehand; where there are none, or as long as it takes, not. */
TEST(pauses_longer_than_asked)
{
    static const char *const options[] = {"--pause-ms 5", "--pause-ms 60000", "--stop", "--live"};
    static const char sentence[] = "has 600 threads; stopping them and letting them go takes about ";
    struct target target = start_frozen("threads 600");

    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct reading reading = read_process(options[i], target.pid);
        check_done(&reading);
        if (i == 0)
            CHECK(strncmp(reading.errors, "culet-scope: note: ", 19) == 0 && strstr(reading.errors, sentence) &&
                      strstr(reading.errors, "--live"), "it said \"%s\"", reading.errors);
        else
            CHECK(!*reading.errors, "with %s it said \"%s\"", options[i], reading.errors);
        free(reading.stream);
    }
    end(&target);
    target = start_frozen("threads 20");
    struct reading reading = read_process("--pause-ms 5", target.pid);
    check_done(&reading);
    CHECK(!*reading.errors, "of 20 threads it said \"%s\"", reading.errors);
    end(&target);
}

TEST(of_another_user)
{
    struct target target = start_frozen("heap mixed 1 1");
    struct reading reading;

    if (geteuid() != 0) {
        CHECK(true, "only root can be somebody else");
        return;
    }
    reading = read_as("", target.pid, 65534);
    check_refused(&reading, 1, "belongs to another user (root)");
    end(&target);
}

/* The memory can be had from a file, too. */
TEST(a_sandbox_without_the_call_to_read)
{
    struct target target = start_frozen("heap mixed 3 5");

    reading_denied = SYS_process_vm_readv;
    struct reading reading = read_process("", target.pid);
    check_done(&reading);
    CHECK_EQUAL(number_of(&reading, "malloc", 0, "used_bytes") + number_of(&reading, "malloc", 0, "tcache_bytes"),
                said(&target, "uordblks"));
    end(&target);
}

/* What cannot be stopped is read while it runs, and that is said. */
TEST(a_sandbox_without_ptrace)
{
    struct target target = start_frozen("heap mixed 3 5");

    reading_denied = SYS_ptrace;
    struct reading reading = read_process("", target.pid);
    check_done(&reading);
    CHECK(tells(&reading, "does not let this program stop process"), "it is not said that it was not stopped");
    CHECK(tells(&reading, "\"mode\":\"live\""), "the mode is not told");
    CHECK_EQUAL(number_of(&reading, "malloc", 0, "used_bytes") + number_of(&reading, "malloc", 0, "tcache_bytes"),
                said(&target, "uordblks"));
    end(&target);
}

/* A child that is nobody's and waits; 0 where only root could make one. `hides`: it does not let itself be read. */
static pid_t start_nobody(bool hides)
{
    int ends[2];
    char byte;

    if (geteuid() != 0 || pipe(ends) != 0)
        return 0;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (setgid(65534) != 0 || setuid(65534) != 0 || prctl(PR_SET_DUMPABLE, !hides) != 0 ||
            write(ends[1], "x", 1) != 1)
            _exit(3);
        for (;;)
            pause();
    }
    CHECK(read(ends[0], &byte, 1) == 1, "the child said nothing");
    return child;
}

static void end_nobody(pid_t child)
{
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child, "the child cannot be waited for");
}

/* Same user, but it does not let itself be read. */
TEST(one_that_hides)
{
    pid_t child = start_nobody(true);

    CHECK(child >= 0, "only root can be somebody else");
    if (!child)
        return;
    struct reading reading = read_as("", child, 65534);
    check_refused(&reading, 1, "does not let itself be read");
    end_nobody(child);
}

/* Same user without root is enough. */
TEST(as_anybody)
{
    pid_t child = start_nobody(false);

    CHECK(child >= 0, "only root can be somebody else");
    if (!child)
        return;
    struct reading reading = read_as("", child, 65534);
    check_done(&reading);
    CHECK(number_of(&reading, "malloc", 0, "chunks") > 0 || tells(&reading, "\"level\":\"pages\""), "nothing was told");
    end_nobody(child);
}

/* Memory may not be read, page tables may: what can be told of the pages is. */
static void check_pages_only(const struct reading *reading, pid_t pid, const char *why)
{
    check_done(reading);
    CHECK(tells(reading, "Only pages can be told, not blocks") && tells(reading, why), "it is not said why: %.300s",
          object(reading, "problem", 0));
    CHECK(tells(reading, "\"level\":\"pages\"") && !tells(reading, "{\"kind\":\"malloc\""), "blocks were told");
    CHECK_EQUAL(number_of(reading, "process", 0, "rss_bytes"), figure(pid, "smaps_rollup", "Rss:"));
    CHECK(number_of(reading, "process", 0, "rss_bytes") > 0 && object(reading, "mapping", 3), "nothing was told");
}

TEST(only_its_pages)
{
    struct target target = start_frozen("heap mixed 2 5");

    memory_denied = true;
    for (size_t mode = 0; mode < MODES; mode++) {
        struct reading reading = read_process(modes[mode], target.pid);
        check_pages_only(&reading, target.pid, geteuid() == 0 ? "this container does not let root read process"
                                                              : "does not let itself be read");
    }
    CHECK(state_of(target.pid) == 'T', "it is in state %c", state_of(target.pid));
    end(&target);
}

/* The sentences, where Yama keeps a plain user from his own processes. */
TEST(yama)
{
    static const char *const sentences[] = {"sudo sysctl kernel.yama.ptrace_scope=0", "lets only root read other processes",
                                            "lets nobody read other processes"};
    static const char *const scopes[] = {"1\n", "2\n", "3\n"};
    pid_t child = start_nobody(false);

    CHECK(child >= 0, "only root can be somebody else");
    if (!child)
        return;
    memory_denied = true;
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        yama_scope = scopes[i];
        struct reading reading = read_as("", child, 65534);
        check_pages_only(&reading, child, sentences[i]);
    }
    end_nobody(child);
}

/* Root of a container, over a process that may do more. */
TEST(root_without_the_capability)
{
    struct target target = start_frozen("heap mixed 1 1");

    if (geteuid() != 0) {
        CHECK(true, "only root has what can be taken");
        end(&target);
        return;
    }
    capabilities_denied = sizeof capabilities / sizeof *capabilities;
    struct reading reading = read_process("", target.pid);
    check_refused(&reading, 1, "start it with --cap-add SYS_PTRACE, or ask from the host");
    /* Whether pages may be told then is the kernel's matter. */
    capabilities_denied = 1;
    reading = read_process("", target.pid);
    if (reading.status == 0)
        check_pages_only(&reading, target.pid, "this container does not let root read process");
    else
        check_refused(&reading, 1, "start it with --cap-add SYS_PTRACE, or ask from the host");
    end(&target);
}

TEST(a_full_disk)
{
    struct target target = start_frozen("heap mixed 1 5");
    int full = open("/dev/full", O_WRONLY), errors = memfd_create("errors", 0), status;
    size_t length;

    pid_t reader = start_reader("", target.pid, full, errors, 0);
    CHECK(waitpid(reader, &status, 0) == reader, "the reader cannot be waited for");
    struct reading reading = {.status = WEXITSTATUS(status)};
    snprintf(reading.errors, sizeof reading.errors, "%s", slurp(errors, &length));
    check_refused(&reading, 1, "cannot be written");
    end(&target);
}

CHECK_MAIN
