#include "profile/top.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "profile/active_profile.h"
#include "profile/dump.h"
#include "sampler/core/writer.h"
#include "reading/clock.h"

#define SITES 32
#define NODES 3072

static struct culet_profile_top_site sites[SITES];
static struct culet_profile_top_node nodes[NODES];

/* The part of the list that is written. */
struct part {
    struct culet_buffer *buffer;
    const struct culet_profile_top *top;
    size_t sites;
    unsigned char wanted[NODES]; /* nodes of these sites */
    uint64_t lines;
};
static struct part part;

bool culet_profile_top_exists(void)
{
    struct culet_profile_top none = {.sites = NULL};

    return culet_active_profile->top(&none);
}

/* The place of a node; NODES: it is not in the list. A stack's nodes were added together, callers first. */
static size_t find_node(const struct culet_profile_top *top, uint32_t number)
{
    for (size_t i = 0; i < top->node_count; i++)
        if (top->nodes[i].number == number)
            return i;
    return NODES;
}

/* Usually the one before it. */
static size_t caller_of(const struct culet_profile_top *top, size_t at)
{
    uint32_t parent = top->nodes[at].parent;

    if (at > 0 && top->nodes[at - 1].number == parent)
        return at - 1;
    return parent != 0 ? find_node(top, parent) : NODES;
}

static void want_nodes(const struct culet_profile_top *top, size_t count)
{
    memset(part.wanted, 0, sizeof(part.wanted));
    for (size_t i = 0; i < count; i++) {
        size_t at = find_node(top, top->sites[i].stack);
        while (at < NODES && !part.wanted[at]) {
            part.wanted[at] = 1;
            at = caller_of(top, at);
        }
    }
}

static void write_head(struct part *p)
{
    culet_buffer_text(p->buffer, "culet-profile 1\n");
    culet_buffer_format(p->buffer,
                        "P %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u %" PRIu64 "\nR %" PRIu64 " %" PRIu64 "\n",
                        (int)getpid(), p->top->sample_bytes, p->top->started_ns, culet_clock(CLOCK_REALTIME),
                        p->top->epoch, p->top->generation, p->top->lost, p->top->resident, p->top->peak_resident);
    p->lines = 3;
}

/* ---- modules ---- */

static bool has_address(const void *data, uintptr_t start, uintptr_t end)
{
    const struct part *p = data;

    for (size_t i = 0; i < p->top->node_count; i++) {
        uint64_t word = p->top->nodes[i].word;
        if (p->wanted[i] && word >> CULET_WORD_SHIFT == CULET_WORD_NATIVE && word >= start && word < end)
            return true;
    }
    return false;
}

static bool add(void *buffer, const char *text, size_t length)
{
    culet_buffer_add(buffer, text, length);
    return !((struct culet_buffer *)buffer)->failed;
}

/* ---- stacks, sites ---- */

static void write_nodes(struct part *p)
{
    for (size_t i = 0; i < p->top->node_count; i++) {
        const struct culet_profile_top_node *node = &p->top->nodes[i];
        if (!p->wanted[i])
            continue;
        culet_buffer_format(p->buffer, "K %u %u %" PRIx64 "\n", node->number, node->parent, node->word);
        p->lines++;
    }
}

/* Whole numbers: printf's %f has the decimal point of the program's locale. */
static uint64_t whole(double number)
{
    return number > 0 ? (number < 0x1p62 ? (uint64_t)(number + 0.5) : UINT64_C(1) << 62) : 0;
}

static void write_sites(struct part *p)
{
    for (size_t i = 0; i < p->sites; i++) {
        const struct culet_profile_top_site *site = &p->top->sites[i];
        culet_buffer_format(p->buffer, "S %c %u %u %u l %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "e6\n",
                            site->kind == CULET_PROFILE_OBJECT ? 'o' : 'm', site->stack, site->label, site->type,
                            site->live.samples, whole(site->live.blocks), whole(site->live.bytes),
                            whole(site->live.variance / 1e6));
        p->lines++;
    }
}

/* ---- the stream ---- */

static void write_part(const struct culet_profile_top *top, struct culet_buffer *buffer, size_t count)
{
    buffer->length = 0;
    part.buffer = buffer;
    part.top = top;
    part.sites = count;
    want_nodes(top, count);
    write_head(&part);
    if (!culet_profile_write_modules(has_address, &part, add, buffer, &part.lines))
        buffer->failed = 1;
    write_nodes(&part);
    write_sites(&part);
    culet_profile_dump_names(buffer, &part.lines);
    culet_buffer_format(buffer, "B %" PRIu64 " %" PRIu64 "\n", whole(top->malloc_bytes), whole(top->object_bytes));
    culet_buffer_format(buffer, "E %" PRIu64 "\n", part.lines + 1);
}

double culet_profile_top(struct culet_buffer *buffer, size_t most)
{
    struct culet_profile_top top = {.sites = sites, .site_count = SITES, .nodes = nodes, .node_count = NODES};
    size_t count;

    buffer->failed = 0;
    if (!culet_active_profile->top(&top))
        return -1;
    for (count = top.site_count; write_part(&top, buffer, count), buffer->length > most && count > 0;)
        count = count * 3 / 4;
    return buffer->failed || buffer->length > most ? -1 : top.malloc_bytes + top.object_bytes;
}
