#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PAUSE_MS 20
#define DEFAULT_MAX_CHUNKS 2000000
/* Catches typing errors: a minute. */
#define MOST_PAUSE_MS 60000

static const char usage[] =
    "usage: culet-scope [--live | --stop] [--pause-ms N] [--max-chunks N] [--notes FD] PID > FILE\n"
    "\n"
    "Reads the memory of a running process: mappings, page states, and the blocks of its heap.\n"
    "Writes one stream (reader/format.h) for `culet report` and `culet map`.\n"
    "\n"
    "  --live          never stop the process\n"
    "  --stop          stop the process once, for as long as the reading takes: a consistent picture\n"
    "  --pause-ms N    otherwise stop the process for at most N milliseconds at a time (20)\n"
    "  --max-chunks N  write single blocks only if there are at most N (2000000)\n"
    "  --notes FD      write notes to this descriptor (2) before the first pause\n";

static _Noreturn void fail_usage(const char *what, const char *argument)
{
    fprintf(stderr, "culet-scope: %s%s; see culet-scope --help\n", what, argument);
    exit(2);
}

static uint64_t number(const char *option, const char *text, uint64_t least, uint64_t most)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value < least || value > most) {
        fprintf(stderr, "culet-scope: %s must be a number from %llu to %llu, not \"%s\"; see culet-scope --help\n",
                option, (unsigned long long)least, (unsigned long long)most, text);
        exit(2);
    }
    return value;
}

struct culet_options culet_options_read(int argc, char **argv)
{
    int live = 0, stop = 0, option;
    const struct option known[] = {
        {"live", no_argument, &live, 1},
        {"stop", no_argument, &stop, 1},
        {"pause-ms", required_argument, NULL, 'p'},
        {"max-chunks", required_argument, NULL, 'c'},
        {"notes", required_argument, NULL, 'n'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct culet_options options = {.mode = CULET_SLICED,
                                    .slice_ns = DEFAULT_PAUSE_MS * UINT64_C(1000000),
                                    .max_chunks = DEFAULT_MAX_CHUNKS,
                                    .notes = 2};

    opterr = 0;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
        switch (option) {
        case 0: /* a flag */
            break;
        case 'p':
            options.slice_ns = number("--pause-ms", optarg, 1, MOST_PAUSE_MS) * 1000000;
            break;
        case 'c':
            options.max_chunks = number("--max-chunks", optarg, 0, UINT32_MAX);
            break;
        case 'n':
            options.notes = (int)number("--notes", optarg, 0, INT32_MAX);
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fail_usage("unknown option, or missing argument: ", argv[optind - 1]);
        }
    if (live && stop)
        fail_usage("--live and --stop exclude each other", "");
    if (optind + 1 != argc)
        fail_usage(optind < argc ? "one PID only, not also " : "the PID is missing",
                   optind < argc ? argv[argc - 1] : "");
    options.mode = live ? CULET_LIVE : stop ? CULET_STOPPED : CULET_SLICED;
    options.pid = (pid_t)number("PID", argv[optind], 1, INT32_MAX);
    return options;
}
