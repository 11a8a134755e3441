/* The record about pauses does not depend on their order. */
#include "process/pauses.h"

#include "check.h"
#include "output/stream.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(sums_and_the_longest)
{
    struct culet_pauses pauses = {0};

    for (uint64_t i = 1; i <= 1000; i++)
        culet_pauses_add(&pauses, (i * 37 % 1000 + 1) * 1000, 500, 250);
    CHECK_EQUAL(pauses.count, 1000);
    CHECK_EQUAL(pauses.sum_ns, UINT64_C(1000) * 1001 / 2 * 1000);
    CHECK_EQUAL(pauses.longest_ns, 1000000);
    CHECK_EQUAL(pauses.cpu_ns, 250000);
    CHECK_EQUAL(pauses.stopping_ns, 500000);
    CHECK_EQUAL(pauses.lengths[0], 38000);
}

/* The record goes to stdout, so a child writes it into a pipe. */
static void written_for(const struct culet_pauses *pauses, char *text, size_t bytes)
{
    int ends[2];
    size_t length = 0;
    ssize_t got;

    CHECK(pipe(ends) == 0, "no pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        culet_stream_open();
        culet_pauses_write(pauses);
        culet_stream_close();
        _exit(0);
    }
    close(ends[1]);
    while (length < bytes - 1 && (got = read(ends[0], text + length, bytes - 1 - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    waitpid(child, NULL, 0);
    /* The bytes before the object are no text. */
    for (size_t i = 0; i < length; i++)
        text[i] = text[i] ? text[i] : ' ';
    text[length] = 0;
}

TEST(percentiles_of_any_order)
{
    struct culet_pauses pauses = {0};
    char text[4096];

    for (uint64_t i = 0; i < 100; i++)
        culet_pauses_add(&pauses, (i * 7 % 100 + 1) * 1000000, 0, 0);
    written_for(&pauses, text, sizeof text);
    CHECK(strstr(text, "\"pauses\":100,"), "%s", text);
    CHECK(strstr(text, "\"median_pause_seconds\":0.050000,"), "%s", text);
    CHECK(strstr(text, "\"p95_pause_seconds\":0.095000,"), "%s", text);
    CHECK(strstr(text, "\"longest_pause_seconds\":0.100000,"), "%s", text);
}

TEST(none_at_all)
{
    struct culet_pauses pauses = {0};
    char text[4096];

    written_for(&pauses, text, sizeof text);
    CHECK(strstr(text, "\"pauses\":0,") && strstr(text, "\"median_pause_seconds\":0.000000,"), "%s", text);
}

CHECK_MAIN
