/* culet-replay - replays an allocation trace with the malloc of this process and prints memory, CPU time and instructions.
 *
 *   culet-replay [--info | --list] [--single] [--paced] [--touch none|page|line|all|check] FILE
 *
 * `culet replay` starts it with LD_PRELOAD set to the allocator. Exit status: 0 done, 1 failed with a message on stderr,
 * 2 wrong usage. */
#define _GNU_SOURCE
#include "measure.h"
#include "report.h"

#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct arguments {
    int info, list, single, paced;
    enum culet_touch touch;
    const char *path;
};

static _Noreturn void usage(void)
{
    fputs("usage: culet-replay [--info | --list] [--single] [--paced] [--touch none|page|line|all|check] FILE\n",
          stderr);
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

static struct arguments parse(int argc, char **argv)
{
    struct arguments arguments = {.touch = CULET_TOUCH_LINE};
    const struct option long_options[] = {
        {"info", no_argument, &arguments.info, 1},     {"list", no_argument, &arguments.list, 1},
        {"single", no_argument, &arguments.single, 1}, {"paced", no_argument, &arguments.paced, 1},
        {"touch", required_argument, NULL, 't'},       {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == 't')
            arguments.touch = touch(optarg);
        else if (option)
            usage();
    }
    if (optind + 1 != argc)
        usage();
    arguments.path = argv[optind];
    return arguments;
}

int main(int argc, char **argv)
{
    struct arguments arguments = parse(argc, argv);
    struct culet_replay_options options = {.touch = arguments.touch, .paced = arguments.paced};
    struct culet_operations operations = culet_operations_read(arguments.path, arguments.single);

    if (arguments.list) {
        culet_report_list(&operations);
    } else if (arguments.info) {
        culet_report_print(&operations, &options, NULL);
    } else {
        culet_measure_open(operations.threads);
        struct culet_replay_result result = culet_replay(&operations, &options);
        culet_report_print(&operations, &options, &result);
    }
    if (fflush(stdout) != 0)
        err(1, "cannot write the report");
    return 0;
}
