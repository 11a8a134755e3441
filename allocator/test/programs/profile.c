/* profile.c - CULET_PROFILE and CULET_PROFILE_OUT in a program without Ruby: the file that is written when it exits. Each
 * test starts this program again, with an argument that says what it does. */
#define _GNU_SOURCE
#include "../../../sampler/core/profile.h"
#include "programs.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/culet-profile-XXXXXX";
static char file[PATH_MAX];

/* Where the program keeps its blocks, so that they are live at its end. */
void *profile_kept[1000];

#define KEPT_BYTES ((size_t)1000 * 4096)
#define FREED_BYTES ((size_t)20000 * 512)

static __attribute__((noinline)) void keep_blocks(void)
{
    for (unsigned i = 0; i < 1000; i++)
        profile_kept[i] = malloc(4096);
}

static __attribute__((noinline)) void free_blocks(void)
{
    for (unsigned i = 0; i < 20000; i++)
        free(malloc(512));
}

static unsigned count_threads(void)
{
    struct dirent **names;
    int count = scandir("/proc/self/task", &names, NULL, NULL);

    return (unsigned)(count - 2);
}

/* The second file was begun after this. */
static void wait_until_written(void)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.*s%ld.last", (int)strcspn(getenv("CULET_PROFILE_OUT"), "%"),
             getenv("CULET_PROFILE_OUT"), (long)getpid());
    for (unsigned files = 0; files < 2; usleep(10000))
        if (access(path, F_OK) == 0 && ++files == 1)
            unlink(path);
}

static void kill_when_written(void)
{
    wait_until_written();
    kill(getpid(), SIGKILL);
}

static int run(const char *what)
{
    free_blocks();
    keep_blocks();
    if (strcmp(what, "fork") == 0) {
        pid_t child = fork();
        int status = 1;
        if (child == 0)
            exit(0);
        return waitpid(child, &status, 0) != child || status;
    }
    if (strcmp(what, "abort") == 0)
        _exit(0);
    if (strcmp(what, "killed") == 0)
        kill_when_written();
    if (strcmp(what, "fork-killed") == 0) {
        if (fork() == 0) {
            keep_blocks();
            kill_when_written();
        }
        return wait(NULL) < 0;
    }
    if (strcmp(what, "threads") == 0)
        return count_threads() != 1;
    if (strcmp(what, "written") == 0)
        wait_until_written();
    if (strcmp(what, "limit") == 0) {
        signal(SIGXFSZ, SIG_IGN);
        return setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 100, .rlim_max = 100});
    }
    return 0;
}

/* Starts this program with these settings. Its messages go to `messages`. */
static pid_t start(const char *what, const char *profile, const char *out, char *messages, size_t room)
{
    int ends[2], status;

    CHECK(pipe(ends) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        setenv("CULET_PROFILE", profile, 1);
        setenv("CULET_PROFILE_OUT", out, 1);
        execl("/proc/self/exe", "profile", "--run", what, NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; length < room - 1 && (got = read(ends[0], messages + length, room - 1 - length)) > 0;)
        length += (size_t)got;
    messages[length] = 0;
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child && status == (strcmp(what, "killed") == 0 ? SIGKILL : 0),
          "it ended with wait status 0x%x: %s", (unsigned)status, messages);
    return child;
}

static void set_up(const char *name)
{
    CHECK(mkdtemp(folder), "no folder");
    snprintf(file, sizeof file, "%s/%s", folder, name);
}

/* Number of files in the folder, which is removed with them. */
static unsigned clear(void)
{
    DIR *all = opendir(folder);
    unsigned count = 0;

    CHECK(all, "the folder is gone");
    for (struct dirent *entry; (entry = readdir(all));) {
        char path[PATH_MAX];
        if (entry->d_name[0] == '.')
            continue;
        count++;
        snprintf(path, sizeof path, "%.2000s/%.1000s", folder, entry->d_name);
        CHECK(unlink(path) == 0, "unlink %s", path);
    }
    closedir(all);
    CHECK(rmdir(folder) == 0, "rmdir");
    return count;
}

struct found {
    double allocated, live;
    unsigned sites, mappings;
};

/* Reads a stream and checks its frame. */
static struct found read_stream(const char *path)
{
    struct found found = {0};
    unsigned long lines = 0, end = 0, pid = 0, bytes = 0;
    struct stat status;
    char *line = NULL;
    size_t room = 0;
    FILE *stream = fopen(path, "r");

    CHECK(stream, "there is no %s", path);
    CHECK(fstat(fileno(stream), &status) == 0 && (status.st_mode & 07777) == 0600, "its mode is %o", status.st_mode);
    for (; getline(&line, &room, stream) > 0; lines++) {
        char name;
        int at = 0, next = 0;
        double samples, blocks, size, variance;
        CHECK(!end, "a line behind the end: %s", line);
        if (lines == 0)
            CHECK(strcmp(line, "culet-profile 1\n") == 0, "it begins with %s", line);
        if (sscanf(line, "E %lu", &end) == 1)
            CHECK(end == lines, "%lu lines before the end, which says %lu", lines, end);
        sscanf(line, "P %lu %lu", &pid, &bytes);
        found.mappings += line[0] == 'M';
        if (sscanf(line, "S m %*u %*u %*u%n", &at) == EOF || !at)
            continue;
        found.sites++;
        for (; sscanf(line + at, " %c %lf %lf %lf %lf%n", &name, &samples, &blocks, &size, &variance, &next) == 5;
             at += next)
            *(name == 'a' ? &found.allocated : name == 'l' ? &found.live : &variance) += size;
    }
    CHECK(end, "it has no end");
    CHECK(pid > 0, "it has no line P");
    CHECK(bytes == 16384, "its distance is %lu", bytes);
    free(line);
    fclose(stream);
    return found;
}

static void check_found(struct found found)
{
    double allocated = KEPT_BYTES + FREED_BYTES, live = KEPT_BYTES;

    CHECK(fabs(found.allocated - allocated) < 6 * sqrt(16384 * allocated), "%.0f bytes allocated instead of %.0f",
          found.allocated, allocated);
    CHECK(fabs(found.live - live) < 6 * sqrt(16384 * live), "%.0f bytes live instead of %.0f", found.live, live);
    CHECK(found.mappings > 1, "%u mappings", found.mappings);
    CHECK(found.sites > 1, "%u sites", found.sites);
}

static void expect_file(const char *profile)
{
    char messages[1000];

    start("exit", profile, file, messages, sizeof messages);
    CHECK(!messages[0], "%s", messages);
    check_found(read_stream(file));
    CHECK(clear() == 1, "other files are left");
}

TEST(the_profile_is_written_when_the_program_exits)
{
    set_up("out");
    expect_file("16k");
}

TEST(each_process_writes_a_file_of_its_own)
{
    char messages[1000], pattern[PATH_MAX], path[PATH_MAX];

    set_up("");
    snprintf(pattern, sizeof pattern, "%s/%%p.out", folder);
    pid_t pid = start("fork", "16384", pattern, messages, sizeof messages);
    CHECK(!messages[0], "%s", messages);
    snprintf(path, sizeof path, "%s/%ld.out", folder, (long)pid);
    check_found(read_stream(path));
    CHECK(clear() == 2, "not two files");
}

TEST(a_former_file_is_replaced)
{
    set_up("out");
    int former = open(file, O_WRONLY | O_CREAT, 0644);
    CHECK(former >= 0 && write(former, "former\n", 7) == 7 && close(former) == 0, "no file");
    expect_file("16K");
}

/* `shown`: how the message names the file */
static void expect_failure(const char *what, const char *name, const char *shown, int error)
{
    char messages[1000], expected[PATH_MAX + 100];

    start(what, "16k", name, messages, sizeof messages);
    snprintf(expected, sizeof expected, "culet: cannot write the profile to %s: %s\n", shown, strerror(error));
    CHECK(strcmp(messages, expected) == 0, "'%s' instead of '%s'", messages, expected);
    CHECK(clear() == 0, "a file is left");
}

TEST(a_file_that_cannot_be_written_is_reported)
{
    set_up("none/out");
    expect_failure("exit", file, file, ENOENT);
}

TEST(a_file_that_ends_early_is_removed)
{
    set_up("out");
    expect_failure("limit", file, file, EFBIG);
}

TEST(a_name_that_is_too_long_is_reported)
{
    char name[5001];

    set_up("");
    memset(name, 'x', 5000);
    name[5000] = 0;
    expect_failure("exit", name, "CULET_PROFILE_OUT", ENAMETOOLONG);
}

/* A value that is not accepted is reported, and the program ends well. An empty value and zeros are accepted. */
static void expect_report(const char *messages, const char *variable, const char *value)
{
    char expected[100];

    snprintf(expected, sizeof expected, "culet: %s takes ", variable);
    if (value[strspn(value, "0")])
        CHECK(strncmp(messages, expected, strlen(expected)) == 0, "'%s' of %s: '%s'", value, variable, messages);
    else
        CHECK(!messages[0], "%s", messages);
}

static void expect_no_file(const char *what, const char *profile, const char *name)
{
    char messages[1000];

    set_up("out");
    start(what, profile, *name ? file : "", messages, sizeof messages);
    expect_report(messages, "CULET_PROFILE", strcmp(profile, "16k") ? profile : "");
    CHECK(clear() == 0, "a file is left");
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
}

TEST(without_a_profile_there_is_no_file)
{
    static const char *const values[] = {"0", "", "yes", "16q", "16kk", "-1", "k", "99999999999999999999999"};

    for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
        expect_no_file("exit", values[i], "out");
    expect_no_file("exit", "16k", "");
    expect_no_file("abort", "16k", "out");
}

/* With CULET_PROFILE_EVERY: starts the program and returns its number. */
static pid_t start_written(const char *what, const char *every)
{
    char messages[1000], pattern[PATH_MAX];

    set_up("");
    snprintf(pattern, sizeof pattern, "%s/%%p", folder);
    setenv("CULET_PROFILE_EVERY", every, 1);
    pid_t pid = start(what, "16k", pattern, messages, sizeof messages);
    expect_report(messages, "CULET_PROFILE_EVERY", strcmp(every, "1") ? every : "");
    return pid;
}

TEST(a_killed_program_leaves_its_last_file)
{
    char path[PATH_MAX];

    pid_t pid = start_written("killed", "1");
    snprintf(path, sizeof path, "%s/%ld.last", folder, (long)pid);
    check_found(read_stream(path));
    CHECK(clear() == 1, "other files are left");
}

TEST(a_forked_child_writes_its_own_last_file)
{
    char path[PATH_MAX];
    struct dirent **names;

    pid_t pid = start_written("fork-killed", "1");
    snprintf(path, sizeof path, "%s/%ld", folder, (long)pid);
    check_found(read_stream(path));
    CHECK(unlink(path) == 0, "unlink");
    CHECK(scandir(folder, &names, NULL, alphasort) == 3, "not one file besides");
    CHECK(strstr(names[2]->d_name, ".last"), "it is %s", names[2]->d_name);
    snprintf(path, sizeof path, "%.2000s/%.1000s", folder, names[2]->d_name);
    CHECK(read_stream(path).live > 1.5 * KEPT_BYTES, "the child's own blocks are missing");
    CHECK(clear() == 1, "other files are left");
}

TEST(a_program_that_exits_removes_its_last_file)
{
    char path[PATH_MAX];

    pid_t pid = start_written("written", "1");
    snprintf(path, sizeof path, "%s/%ld", folder, (long)pid);
    check_found(read_stream(path));
    CHECK(clear() == 1, "other files are left");
}

TEST(without_an_interval_there_is_no_last_file)
{
    static const char *const values[] = {"0", "", "x", "1x", "-1", "3601", "99999999999999999999"};

    for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
        start_written("threads", values[i]);
        CHECK(clear() == 1, "other files are left");
        memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    }
}

TEST(the_program_may_start_and_end_it)
{
    const struct culet_profile_api *api = dlsym(RTLD_DEFAULT, "culet_profile_api");

    CHECK(api && api->version == CULET_PROFILE_VERSION && api->samples_malloc, "no profile");
    CHECK(!api->running(), "it runs");
    CHECK(api->start(1 << 16) && api->running() && api->sample_bytes() == 1 << 16, "it does not start");
    free_blocks();
    api->stop();
    CHECK(!api->running(), "it still runs");
}

static void pause_briefly(void)
{
    syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* The resident size is read again after some milliseconds. */
static void *allocate_cancelled(void *count)
{
    pthread_cancel(pthread_self());
    for (uintptr_t i = 0; i < (uintptr_t)count; i++) {
        profile_kept[i] = malloc(1000);
        pause_briefly();
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return count;
}

TEST(a_sample_is_no_cancellation_point)
{
    const struct culet_profile_api *api = dlsym(RTLD_DEFAULT, "culet_profile_api");
    void *const count = (void *)(uintptr_t)20;
    void *result;
    pthread_t thread;

    CHECK(api->start(1), "it does not start");
    CHECK(pthread_create(&thread, NULL, allocate_cancelled, count) == 0, "no thread");
    CHECK(pthread_join(thread, &result) == 0 && result == count, "malloc has ended the thread");
    api->stop();
}

static void *allocate_on_small_stack(void *count)
{
    for (uintptr_t i = 0; i < (uintptr_t)count; i++) {
        profile_kept[i] = malloc(1000);
        free(profile_kept[i]);
    }
    return count;
}

TEST(threads_may_have_the_smallest_stacks)
{
    const struct culet_profile_api *api = dlsym(RTLD_DEFAULT, "culet_profile_api");
    void *const count = (void *)(uintptr_t)1000;
    pthread_attr_t attributes;
    pthread_t thread;
    void *result;

    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, least_stack()) == 0, "no such stack");
    CHECK(api->start(1), "it does not start");
    CHECK(pthread_create(&thread, &attributes, allocate_on_small_stack, count) == 0, "no thread");
    CHECK(pthread_join(thread, &result) == 0 && result == count, "it ended early");
    api->stop();
    pthread_attr_destroy(&attributes);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--run") == 0)
        return run(argv[2]);
    return check_main(argc, argv);
}
