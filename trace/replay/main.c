/* culet-replay - plays a recorded trace of allocations through this process's malloc and prints what that took.
 *
 *   culet-replay [--info | --list] [--single] [--paced] [--touch none|page|line|all|check] [--samples N] FILE
 *
 * `culet replay` starts it, with LD_PRELOAD choosing the malloc. Exit status: 0 done, 1 failed with a sentence on
 * stderr, 2 wrong usage. */
#define _GNU_SOURCE
#include "complain.h"
#include "meter.h"
#include "player.h"
#include "report.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SAMPLES 400
#define MAX_SAMPLES 1000000

struct choices {
    bool info, list, single;
    struct culet_settings settings;
    const char *path;
};

static _Noreturn void usage(void)
{
    fputs("usage: culet-replay [--info | --list] [--single] [--paced] [--touch none|page|line|all|check] "
          "[--samples N] FILE\n", stderr);
    exit(2);
}

static enum culet_touch touch(const char *word)
{
    static const char *const words[] = {"none", "page", "line", "all", "check"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0)
            return (enum culet_touch)i;
    usage();
}

static size_t count(const char *word)
{
    char *end;
    unsigned long value = strtoul(word, &end, 10);

    if (*end || value < 1 || value > MAX_SAMPLES)
        usage();
    return value;
}

static struct choices choose(int argc, char **argv)
{
    static const struct option options[] = {
        {"info", no_argument, NULL, 'i'},       {"list", no_argument, NULL, 'l'},
        {"single", no_argument, NULL, 's'},     {"paced", no_argument, NULL, 'p'},
        {"touch", required_argument, NULL, 't'}, {"samples", required_argument, NULL, 'n'},
        {NULL, 0, NULL, 0}};
    struct choices choices = {.settings = {.touch = CULET_TOUCH_LINE, .samples = DEFAULT_SAMPLES}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'i': choices.info = true; break;
        case 'l': choices.list = true; break;
        case 's': choices.single = true; break;
        case 'p': choices.settings.paced = true; break;
        case 't': choices.settings.touch = touch(optarg); break;
        case 'n': choices.settings.samples = count(optarg); break;
        default: usage();
        }
    }
    if (optind + 1 != argc)
        usage();
    choices.path = argv[optind];
    return choices;
}

int main(int argc, char **argv)
{
    struct choices choices = choose(argc, argv);
    struct culet_script script = culet_script_read(choices.path, choices.single);

    if (choices.list) {
        culet_report_operations(&script);
    } else if (choices.info) {
        culet_report(&script, &choices.settings, NULL);
    } else {
        culet_meter_open(script.threads);
        struct culet_performance performance = culet_play(&script, &choices.settings);
        culet_report(&script, &choices.settings, &performance);
    }
    if (fflush(stdout) != 0)
        culet_complain("cannot write the report: %s", strerror(errno));
    return 0;
}
