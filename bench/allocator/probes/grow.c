/* grow.c - buffers that grow by realloc, as strings do that are appended to: several at a time, in turn. */
#define _GNU_SOURCE
#include "probe.h"

static struct parameter parameters[] = {
    {"buffers", 100, "buffers that grow at the same time"},
    {"from", 24, "bytes at first"},
    {"to", 65536, "bytes at which a buffer is freed"},
    {"percent", 200, "the next size, in percent of this one"},
    {"operations", 1000000, "reallocs in all"},
    {0},
};
enum { BUFFERS, FROM, TO, PERCENT, OPERATIONS };

#define MAX_BUFFERS 100000

int main(int argc, char **argv)
{
    static char *buffer[MAX_BUFFERS];
    static size_t size[MAX_BUFFERS];
    uint64_t random = 1;

    read_parameters(argc, argv, parameters);
    size_t buffers = at_most(parameters[BUFFERS].value, MAX_BUFFERS, "buffers"), live = 0, peak = 0, base = rss_bytes();
    at_most(parameters[FROM].value, parameters[TO].value, "from");
    if (parameters[PERCENT].value <= 100)
        give_up("percent must be above 100");

    struct watch watch = start_watch();
    for (uint64_t n = parameters[OPERATIONS].value; n; n--) {
        size_t i = index_below(next_random(&random), buffers), old = size[i];
        size_t bytes = old ? old * parameters[PERCENT].value / 100 + 1 : parameters[FROM].value;
        if (bytes > parameters[TO].value) {
            free(buffer[i]);
            buffer[i] = NULL;
            live -= old;
            size[i] = 0;
            continue;
        }
        char *moved = realloc(buffer[i], bytes);
        if (!moved)
            give_up("realloc to %zu bytes gave nothing", bytes);
        if (old && moved[old - 1] != (char)i)
            give_up("realloc lost what the buffer held");
        memset(moved + old, (char)i, bytes - old);
        buffer[i] = moved;
        size[i] = bytes;
        live += bytes - old;
        if (live > peak)
            peak = live;
    }
    watch = stop_watch(watch);
    figure_speed(parameters[OPERATIONS].value, watch);
    figure_memory(peak, base);
    return print_figures("grow");
}
