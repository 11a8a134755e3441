/* The profile against a naive model, and the lines of the stream. */
#define _GNU_SOURCE
#include "samples.h"

#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <sys/stat.h>

static const struct culet_profile_api *api = &culet_profile_api;
static uint64_t seed = 1;

static uint32_t random_below(uint32_t limit)
{
    return (uint32_t)check_random(&seed) % limit;
}

/* ---- mappings that fail ---- */

static int mappings_left = -1; /* as many succeed; -1: all */

/* The linker replaces mmap by these (--wrap). */
void *__real_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset);

void *__wrap_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    if (mappings_left == 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    if (mappings_left > 0)
        mappings_left--;
    return __real_mmap(address, length, protection, flags, file, offset);
}

/* ---- a clock that stands still ---- */

static uint64_t clock_ns; /* of the coarse clock; 0: the real one */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = __real_clock_gettime(clock, now);

    if (clock == CLOCK_MONOTONIC_COARSE && clock_ns)
        *now = (struct timespec){(time_t)(clock_ns / 1000000000), (long)(clock_ns % 1000000000)};
    return result;
}

/* ---- the stream, collected ---- */

static char *text;
static size_t length, room;

static bool collect(void *data, const char *part, size_t bytes)
{
    (void)data;
    if (length + bytes + 1 > room)
        text = realloc(text, room = 2 * (length + bytes + 1));
    CHECK(text, "no memory");
    memcpy(text + length, part, bytes);
    length += bytes;
    text[length] = '\0';
    return true;
}

/* ---- the stream, read ---- */

#define VIEWS "alpgi"
#define WORDS 4
#define PERIODS 12

struct key {
    uint64_t word[WORDS]; /* innermost first, then 0 */
    uint32_t label, type;
    char kind;
};

struct site {
    struct key key;
    struct culet_profile_sums sums[sizeof VIEWS - 1];
    struct culet_profile_sums births[PERIODS], born, dropped;
};

static struct stream {
    unsigned long long pid, sample_bytes, started, taken, epoch, generation, lost, resident, peak_resident;
    unsigned long long added, freed, no_site, no_sample, skipped[CULET_SKIPS];
    uint64_t lines;
    size_t sites;
    struct site site[4096];
    uint64_t word[4096];
    unsigned parent[4096];
    unsigned long long base, span, base_resident, taken_resident, large, large_resident;
    size_t shared;
    struct shared {
        unsigned site, id, inherited;
        double weight, size;
    } one[8192];
} found;

static const struct line {
    char type;
    const char *pattern;
} lines[] = {
    {'P', "^P [0-9]+ [0-9]+ [0-9]+ [0-9]+ [0-9]+ [0-9]+ [0-9]+$"},
    {'A', "^A( [0-9]+){7}$"},
    {'R', "^R [0-9]+ [0-9]+$"},
    {'G', "^G [0-9]+ [0-9]+ [0-9]+ [0-9]+$"},
    {'U', "^U [0-9]+ [0-9]+$"},
    {'M', "^M [0-9a-f]+ [0-9a-f]+ [0-9a-f]+ (([0-9a-f][0-9a-f])+|-) [^\t]+$"},
    {'K', "^K [0-9]+ [0-9]+ [0-9a-f]+$"},
    {'S', "^S [mo] [0-9]+ [0-9]+ [0-9]+( [alpgi] [0-9]+( [0-9]+\\.[0-9]+e[0-9]+){3})*$"},
    {'W', "^W [0-9]+( ([0-9]|1[01]) [0-9]+( [0-9]+\\.[0-9]+e[0-9]+){3})+$"},
    {'D', "^D [0-9]+( [+-] [0-9]+( [0-9]+\\.[0-9]+e[0-9]+){3}){1,2}$"},
    {'I', "^I [0-9]+ [0-9]+ [01] [0-9]+\\.[0-9]+e[0-9]+ [0-9]+$"},
};

/* Lines of one type follow each other, in the order of the table. */
static void check_lines(void)
{
    regex_t pattern[sizeof lines / sizeof *lines];
    size_t at = 0, count = sizeof lines / sizeof *lines;

    for (size_t i = 0; i < count; i++)
        CHECK(regcomp(&pattern[i], lines[i].pattern, REG_EXTENDED | REG_NOSUB) == 0, "pattern %zu", i);
    char *copy = strdup(text), *rest = NULL;
    CHECK(copy && length && text[length - 1] == '\n', "the last line has no end");
    uint64_t number = 0;
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), number++) {
        while (at < count && lines[at].type != line[0])
            at++;
        CHECK(at < count, "a line out of order: %s", line);
        CHECK(regexec(&pattern[at], line, 0, NULL, 0) == 0, "a malformed line: %s", line);
    }
    CHECK_EQUAL(found.lines, number);
    free(copy);
    for (size_t i = 0; i < count; i++)
        regfree(&pattern[i]);
}

static void read_site(const char *line)
{
    struct site *site = &found.site[found.sites++];
    unsigned stack, label, type, words = 0;
    int used;

    CHECK(found.sites < sizeof found.site / sizeof *found.site, "too many sites");
    *site = (struct site){0};
    CHECK(sscanf(line, "S %c %u %u %u%n", &site->key.kind, &stack, &label, &type, &used) == 4, "a site: %s", line);
    site->key.label = label;
    site->key.type = type;
    for (; stack; stack = found.parent[stack]) {
        CHECK(words < WORDS, "a stack without an end: %s", line);
        site->key.word[words++] = found.word[stack];
    }
    struct culet_profile_sums sums;
    unsigned long long samples;
    char view;
    for (line += used;
         sscanf(line, " %c %llu %lf %lf %lf%n", &view, &samples, &sums.blocks, &sums.bytes, &sums.variance, &used) == 5;
         line += used) {
        sums.samples = samples;
        site->sums[strchr(VIEWS, view) - VIEWS] = sums;
    }
    CHECK(*line == '\0', "more in a site: %s", line);
}

static void read_stack(const char *line)
{
    unsigned id, parent;
    unsigned long long word;

    CHECK(sscanf(line, "K %u %u %llx", &id, &parent, &word) == 3, "a stack: %s", line);
    CHECK(id > 0 && parent < id && (parent == 0 || found.word[parent]), "the parent comes later: %s", line);
    if (id >= sizeof found.word / sizeof *found.word)
        return;
    found.parent[id] = parent;
    found.word[id] = word;
}

/* The lines W and D of a site. */
static void read_growth(const char *line)
{
    struct culet_profile_sums sums;
    unsigned long long samples;
    char name[4];
    unsigned site;
    int used;

    CHECK(sscanf(line + 1, "%u%n", &site, &used) == 1 && site > 0 && site <= found.sites, "a site's growth: %s", line);
    struct site *of = &found.site[site - 1];
    for (const char *at = line + 1 + used;
         sscanf(at, " %3s %llu %lf %lf %lf%n", name, &samples, &sums.blocks, &sums.bytes, &sums.variance, &used) == 5;
         at += used) {
        sums.samples = samples;
        *(name[0] == '+' ? &of->born : name[0] == '-' ? &of->dropped : &of->births[atoi(name)]) = sums;
    }
}

static void read_shared(const char *line)
{
    struct shared *one = &found.one[found.shared++];

    CHECK(found.shared < sizeof found.one / sizeof *found.one, "too many shared samples");
    CHECK(sscanf(line, "I %u %u %u %lf %lf", &one->site, &one->id, &one->inherited, &one->weight, &one->size) == 5 &&
              one->site > 0 && one->site <= found.sites,
          "a shared sample: %s", line);
}

static uint64_t samples_of(char view)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < found.sites; i++)
        sum += found.site[i].sums[strchr(VIEWS, view) - VIEWS].samples;
    return sum;
}

static void read_stream(void)
{
    char *rest = NULL;

    length = 0;
    memset(&found, 0, sizeof found);
    CHECK(api->write(collect, NULL, &found.lines), "the profile was not written");
    check_lines();
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == 'P')
            CHECK(sscanf(line, "P %llu %llu %llu %llu %llu %llu %llu", &found.pid, &found.sample_bytes, &found.started,
                         &found.taken, &found.epoch, &found.generation, &found.lost) == 7,
                  "%s", line);
        if (line[0] == 'A')
            CHECK(sscanf(line, "A %llu %llu %llu %llu %llu %llu %llu", &found.added, &found.freed, &found.no_site,
                         &found.no_sample, &found.skipped[0], &found.skipped[1], &found.skipped[2]) == 7,
                  "%s", line);
        if (line[0] == 'R')
            CHECK(sscanf(line, "R %llu %llu", &found.resident, &found.peak_resident) == 2, "%s", line);
        if (line[0] == 'G')
            CHECK(sscanf(line, "G %llu %llu %llu %llu", &found.base, &found.span, &found.base_resident,
                         &found.taken_resident) == 4,
                  "%s", line);
        if (line[0] == 'U')
            CHECK(sscanf(line, "U %llu %llu", &found.large, &found.large_resident) == 2, "%s", line);
        if (line[0] == 'I')
            read_shared(line);
        if (line[0] == 'K')
            read_stack(line);
        if (line[0] == 'S')
            read_site(line);
        if (line[0] == 'W' || line[0] == 'D')
            read_growth(line);
    }
    CHECK_EQUAL(found.pid, getpid());
    CHECK_EQUAL(found.lost, found.no_site + found.no_sample);
    CHECK(found.generation || found.added == samples_of('a'), "%llu samples, %lu of them allocated", found.added,
          (unsigned long)samples_of('a'));
    CHECK_EQUAL(found.added, samples_of('l') + found.freed);
    CHECK(found.base >= found.started && found.base <= found.taken, "the base at %llu", found.base);
    CHECK(found.started && found.taken >= found.started, "taken at %llu, started at %llu", found.taken, found.started);
}

/* ---- the model: a list of all samples of the profile, and a copy of what was live at the peak ---- */

#define MOST 6000

struct sample {
    struct key key;
    uint32_t number;
    double size, weight; /* whole numbers, so that all sums are exact */
    uint32_t epoch, generation, phase;
    uint32_t removed_phase;
    bool live, at_peak;
};

static struct model {
    struct sample sample[MOST];
    uint32_t samples;
    uint32_t former[MOST]; /* numbers of samples that are live since former profiles */
    uint32_t formers;
    uint32_t epoch, generation, phase;
    bool forked;
    uint64_t peak_resident;
} m;

static bool resident_is_set;
static uint64_t resident = 1000000;

static uint64_t get_resident(void)
{
    return resident;
}

static uint64_t live_bytes(void)
{
    double sum = 0;

    for (uint32_t i = 0; i < m.samples; i++)
        sum += m.sample[i].live ? m.sample[i].size * m.sample[i].weight : 0;
    return (uint64_t)sum;
}

static void check_number(uint32_t number)
{
    CHECK(number, "a sample was lost");
    for (uint32_t i = 0; i < m.samples; i++)
        CHECK(!m.sample[i].live || m.sample[i].number != number, "%u is live twice", number);
    for (uint32_t i = 0; i < m.formers; i++)
        CHECK(m.former[i] != number, "%u is live since a former profile", number);
}

static void add_sample(void)
{
    struct sample s = {.key = {.label = random_below(3), .type = random_below(2), .kind = random_below(2) ? 'm' : 'o'},
                       .size = 1 + random_below(5000),
                       .weight = 1 + random_below(9),
                       .epoch = m.epoch,
                       .generation = m.generation,
                       .phase = m.phase,
                       .live = true};
    size_t count = random_below(WORDS);

    if (m.samples == MOST)
        return;
    for (size_t i = 0; i < count; i++)
        s.key.word[i] = (uint64_t)random_below(3) << CULET_WORD_SHIFT | (1 + random_below(2));
    resident += random_below(2001);
    resident -= random_below(2001);
    api->set_label(s.key.label);
    s.number = api->add(s.key.kind == 'm' ? CULET_PROFILE_MALLOC : CULET_PROFILE_OBJECT, NULL, (size_t)s.size, s.weight,
                        s.key.type, s.key.word, count);
    check_number(s.number);
    m.sample[m.samples++] = s;
    uint64_t now = resident_is_set ? resident : live_bytes();
    if (now <= m.peak_resident)
        return;
    m.peak_resident = now;
    for (uint32_t i = 0; i < m.samples; i++)
        m.sample[i].at_peak = m.sample[i].live;
}

static void remove_one(void)
{
    uint32_t i = random_below(m.samples);

    if (!m.sample[i].live)
        return;
    api->remove(m.sample[i].number);
    m.sample[i].live = false;
    m.sample[i].removed_phase = m.phase;
}

static void remove_former(void)
{
    uint32_t i = random_below(m.formers);

    api->remove(m.former[i]);
    m.former[i] = m.former[--m.formers];
}

static void start_anew(void)
{
    api->stop();
    CHECK(!api->running(), "it was stopped");
    CHECK(api->start(4096) && api->running(), "no memory");
    for (uint32_t i = 0; i < m.samples; i++)
        if (m.sample[i].live && m.formers < MOST)
            m.former[m.formers++] = m.sample[i].number;
    m.samples = m.epoch = 0;
    m.peak_resident = 0;
}

static bool belongs(const struct sample *s, char view)
{
    switch (view) {
    case 'a':
        return s->generation == m.generation;
    case 'l':
        return s->live;
    case 'p':
        return s->at_peak;
    case 'g':
        return s->live && s->phase == m.phase && m.epoch - s->epoch >= CULET_PROFILE_SURVIVALS;
    case '+':
        return s->live && s->phase == m.phase;
    case '-':
        return !s->live && s->phase != m.phase && s->removed_phase == m.phase;
    default:
        return s->live && s->generation != m.generation;
    }
}

static bool is_same(const struct key *a, const struct key *b)
{
    return !memcmp(a->word, b->word, sizeof a->word) && a->label == b->label && a->type == b->type &&
           a->kind == b->kind;
}

static void compare_site(const struct site *site, char view, const struct culet_profile_sums *sums)
{
    struct culet_profile_sums e = {0};

    for (uint32_t i = 0; i < m.samples; i++) {
        const struct sample *s = &m.sample[i];
        if (!is_same(&s->key, &site->key) || !belongs(s, view))
            continue;
        e.samples++;
        e.blocks += s->weight;
        e.bytes += s->weight * s->size;
        e.variance += s->weight * (s->weight - 1) * s->size * s->size;
    }
    CHECK(sums->samples == e.samples && sums->blocks == e.blocks && sums->bytes == e.bytes &&
              sums->variance == e.variance,
          "view %c: %lu samples, %f blocks, %f bytes, variance %f; expected %lu, %f, %f, %f", view,
          (unsigned long)sums->samples, sums->blocks, sums->bytes, sums->variance, (unsigned long)e.samples, e.blocks,
          e.bytes, e.variance);
}

static void compare_growth(const struct site *site)
{
    struct culet_profile_sums all = {0};

    for (unsigned i = 0; i < PERIODS; i++) {
        all.samples += site->births[i].samples;
        all.blocks += site->births[i].blocks;
        all.bytes += site->births[i].bytes;
        all.variance += site->births[i].variance;
    }
    compare_site(site, 'g', &all);
    compare_site(site, '+', &site->born);
    compare_site(site, '-', &site->dropped);
}

/* ---- the largest sites ---- */

#define TOP_SITES 48
#define TOP_NODES 512

static void check_nodes(const struct culet_profile_top *top)
{
    for (size_t i = 0; i < top->node_count; i++) {
        const struct culet_profile_top_node *node = &top->nodes[i];
        bool parent_is_there = node->parent == 0;
        CHECK(found.word[node->number] == node->word && found.parent[node->number] == node->parent, "another node");
        for (size_t j = 0; j < i; j++) {
            CHECK(top->nodes[j].number != node->number, "a node is there twice");
            parent_is_there |= top->nodes[j].number == node->parent;
        }
        CHECK(parent_is_there, "a node comes before its caller");
    }
}

static bool has_node(const struct culet_profile_top *top, uint32_t number)
{
    for (size_t i = 0; i < top->node_count; i++)
        if (top->nodes[i].number == number)
            return true;
    return number == 0;
}

static size_t larger_sites(double bytes, double *all)
{
    size_t larger = 0;

    *all = 0;
    for (size_t i = 0; i < found.sites; i++) {
        const struct culet_profile_sums *live = &found.site[i].sums[strchr(VIEWS, 'l') - VIEWS];
        *all += live->bytes;
        larger += live->bytes > bytes;
    }
    return larger;
}

/* Of what the stream has, in lists with and without room for it. */
static void compare_top(void)
{
    static struct culet_profile_top_site sites[TOP_SITES];
    static struct culet_profile_top_node nodes[TOP_NODES];
    size_t room_for_nodes = random_below(4) ? TOP_NODES : random_below(12);
    struct culet_profile_top top = {
        .sites = sites, .site_count = random_below(TOP_SITES + 1), .nodes = nodes, .node_count = room_for_nodes};
    size_t room_for_sites = top.site_count, live = 0;
    double all;

    CHECK(api->top(&top), "no profile");
    CHECK(top.site_count <= room_for_sites && top.node_count <= room_for_nodes, "more than there is room for");
    check_nodes(&top);
    for (size_t i = 0; i < top.site_count; i++) {
        CHECK(has_node(&top, sites[i].stack), "a site without its stack");
        CHECK(sites[i].live.samples > 0 && larger_sites(sites[i].live.bytes, &all) <= i, "a larger site is missing");
        CHECK(i == 0 || sites[i - 1].live.bytes >= sites[i].live.bytes, "not the largest first");
    }
    (void)larger_sites(0, &all);
    CHECK(fabs(all - top.malloc_bytes - top.object_bytes) <= all * 1e-9, "%f bytes live, not %f", all,
          top.malloc_bytes + top.object_bytes);
    for (size_t i = 0; i < found.sites; i++)
        live += found.site[i].sums[strchr(VIEWS, 'l') - VIEWS].samples > 0;
    if (room_for_nodes == TOP_NODES)
        CHECK_EQUAL(top.site_count, live < room_for_sites ? live : room_for_sites);
    CHECK_EQUAL(top.epoch, found.epoch);
    CHECK_EQUAL(top.sample_bytes, found.sample_bytes);
}

/* Each live sample since the base, once; with little room some of them. */
static void compare_list(void)
{
    static struct culet_profile_sample list[MOST];
    struct culet_profile_samples all = {.list = list, .count = MOST}, some = {.list = list, .count = 3};
    double bytes = 0;

    CHECK(api->samples(&some) && some.count <= 3, "more than there is room for");
    CHECK(api->samples(&all), "no profile");
    CHECK_EQUAL(all.generation, m.generation);
    for (size_t i = 0; i < all.count; i++)
        bytes += list[i].bytes;
    for (uint32_t i = 0; i < m.samples; i++) {
        const struct sample *s = &m.sample[i];
        if (!s->live || s->phase != m.phase)
            continue;
        bytes -= s->weight * s->size;
        size_t at = 0;
        while (at < all.count && list[at].number != s->number)
            at++;
        CHECK(at < all.count && list[at].bytes == s->weight * s->size, "sample %u is missing", s->number);
    }
    CHECK(bytes == 0, "%f bytes too many", bytes);
}

/* Each live sample that another process may have, once. */
static void compare_shared(void)
{
    size_t expected = 0;
    double bytes = 0, inherited = 0;

    for (uint32_t i = 0; i < m.samples; i++) {
        const struct sample *s = &m.sample[i];
        bool is_inherited = s->generation != m.generation;
        if (!s->live || !(is_inherited || m.forked))
            continue;
        expected++;
        bytes += s->weight * s->size;
        inherited += is_inherited ? s->weight * s->size : 0;
    }
    CHECK_EQUAL(found.shared, expected);
    for (size_t i = 0; i < found.shared; i++) {
        const struct shared *one = &found.one[i];
        bytes -= one->weight * one->size;
        inherited -= one->inherited ? one->weight * one->size : 0;
        for (size_t j = 0; j < i; j++)
            CHECK(found.one[j].id != one->id, "id %u is there twice", one->id);
    }
    CHECK(bytes == 0 && inherited == 0, "%f bytes are missing, %f inherited", bytes, inherited);
}

static void compare(void)
{
    uint64_t own = 0;

    read_stream();
    compare_top();
    compare_list();
    compare_shared();
    CHECK_EQUAL(found.epoch, m.epoch);
    CHECK_EQUAL(found.generation, m.generation);
    CHECK_EQUAL(found.sample_bytes, 4096);
    CHECK_EQUAL(found.peak_resident, m.peak_resident);
    CHECK_EQUAL(found.lost, 0);
    for (size_t i = 0; i < found.sites; i++) {
        for (size_t j = 0; j < i; j++)
            CHECK(!is_same(&found.site[i].key, &found.site[j].key), "a site is there twice");
        for (size_t v = 0; v < sizeof VIEWS - 1; v++)
            compare_site(&found.site[i], VIEWS[v], &found.site[i].sums[v]);
        compare_growth(&found.site[i]);
    }
    for (uint32_t i = 0; i < m.samples; i++)
        own += m.sample[i].generation == m.generation;
    CHECK_EQUAL(samples_of('a'), own);
}

static void random_step(void)
{
    uint32_t what = random_below(1000);

    if (what < 560)
        add_sample();
    else if (what < 900 && m.samples)
        remove_one();
    else if (what < 950 && m.formers)
        remove_former();
    else if (what < 960)
        api->remove(random_below(2) ? 0 : CULET_SAMPLES - random_below(1000));
    else if (what < 968) {
        api->next_epoch();
        m.epoch++;
    } else if (what < 970)
        start_anew();
    else if (what < 972) {
        api->booted();
        m.phase++;
    }
}

static void random_steps(unsigned steps)
{
    while (steps--)
        random_step();
    compare();
}

/* The child continues; what is live was inherited. */
static void fork_and_continue(void)
{
    culet_profile_prepare();
    pid_t child = fork();
    if (child == 0) {
        culet_profile_child();
        m.generation++;
        m.phase++;
        m.forked = false;
        m.peak_resident = 0;
        for (uint32_t i = 0; i < m.samples; i++)
            m.sample[i].at_peak = m.sample[i].live;
        compare();
        random_steps(300);
        random_steps(300);
        if (m.generation < 3)
            fork_and_continue();
        _exit(0);
    }
    culet_profile_parent();
    m.forked = true;
    check_child(child);
}

static void compare_with_model(void)
{
    CHECK(api->start(4096), "no memory");
    for (unsigned round = 0; round < 12; round++) {
        random_steps(1000);
        if (round % 4 == 3)
            fork_and_continue();
    }
}

TEST(random_samples_agree_with_the_model)
{
    compare_with_model();
}

TEST(the_host_knows_the_resident_size)
{
    const struct culet_profile_host host = {.resident = get_resident};

    resident_is_set = true;
    culet_profile_set_host(&host);
    compare_with_model();
}

/* ---- single samples ---- */

static uint32_t add_one(uint64_t word, size_t size)
{
    return api->add(CULET_PROFILE_MALLOC, NULL, size, 1, 0, &word, 1);
}

/* ---- processes that share samples ---- */

static unsigned id_of(double size)
{
    read_stream();
    for (size_t i = 0; i < found.shared; i++)
        if (found.one[i].size == size)
            return found.one[i].id;
    CHECK(false, "no sample of %.0f bytes", size);
    return 0;
}

/* Whether the sample of `size` bytes has that id in a forked child. */
static void check_in_child(double size, unsigned id, bool same)
{
    culet_profile_prepare();
    pid_t child = fork();
    if (child == 0) {
        culet_profile_child();
        _exit((id_of(size) == id) == same ? 0 : 1);
    }
    culet_profile_parent();
    check_child(child);
}

TEST(a_sample_has_one_id_in_all_processes)
{
    CHECK(api->start(1), "no memory");
    uint32_t first = add_one(1, 100);
    read_stream();
    CHECK_EQUAL(found.shared, 0);
    culet_profile_prepare();
    culet_profile_parent();
    unsigned id = id_of(100);
    check_in_child(100, id, true);
    /* Another one in its place. */
    api->remove(first);
    CHECK_EQUAL(add_one(1, 100), first);
    check_in_child(100, id, false);
    check_in_child(100, id_of(100), true);
}

/* ---- growth ---- */

TEST(growth_has_the_times_of_its_births)
{
    const struct culet_profile_host host = {.resident = get_resident};
    const uint64_t second = 1000000000;
    uint32_t before;

    culet_profile_set_host(&host);
    clock_ns = 100 * second;
    CHECK(api->start(1), "no memory");
    before = add_one(1, 1000);
    (void)add_one(1, 1);
    resident = 5000;
    clock_ns = 200 * second;
    api->booted();
    for (unsigned i = 0; i < 24; i++) {
        clock_ns = (200 + i) * second + second / 2;
        (void)add_one(1, 100);
        if (i % 2 == 0)
            api->remove(add_one(1, 7));
        if (i == 3)
            (void)add_one(2, 30);
    }
    clock_ns = 224 * second;
    read_stream();
    CHECK_EQUAL(found.span, 0);
    CHECK_EQUAL(found.site[0].births[0].samples, 0);
    for (unsigned i = 0; i < CULET_PROFILE_SURVIVALS; i++, clock_ns += second)
        api->next_epoch();
    api->remove(before);
    (void)add_one(1, 50); /* too young */
    resident = 9000;
    read_stream();
    CHECK_EQUAL(found.span, 24 * second);
    CHECK_EQUAL(found.base_resident, 5000);
    CHECK_EQUAL(found.taken_resident, 9000);
    for (unsigned i = 0; i < PERIODS; i++) {
        CHECK_EQUAL(found.site[0].births[i].samples, 2);
        CHECK_EQUAL(found.site[1].births[i].samples, i == 1);
    }
    CHECK(found.site[0].born.bytes == 24 * 100 + 50, "%f bytes born", found.site[0].born.bytes);
    CHECK(found.site[0].dropped.bytes == 1000, "%f bytes dropped", found.site[0].dropped.bytes);
    CHECK_EQUAL(found.site[1].dropped.samples, 0);
    clock_ns = 0;
}

/* ---- residency ---- */

TEST(of_large_blocks_what_is_resident_counts)
{
    enum { PAGE = 65536, BYTES = 16 * PAGE };
    const uint64_t word = 1;
    char *block = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(block != MAP_FAILED && madvise(block, BYTES, MADV_NOHUGEPAGE) == 0, "%s", strerror(errno));
    block = (char *)(((uintptr_t)block + PAGE - 1) & -(uintptr_t)PAGE);
    CHECK(api->start(1), "no memory");
    (void)api->add(CULET_PROFILE_MALLOC, block, BYTES, 2, 0, &word, 1);
    (void)api->add(CULET_PROFILE_MALLOC, block, CULET_PROFILE_LARGE_BYTES - 1, 2, 0, &word, 1);
    (void)api->add(CULET_PROFILE_MALLOC, NULL, BYTES, 2, 0, &word, 1);
    for (unsigned touched = 0; touched <= 2; touched++) {
        double live = 2.0 * (CULET_PROFILE_LARGE_BYTES - 1 + BYTES + touched * PAGE);
        read_stream();
        CHECK(found.site[0].sums[1].bytes == live, "%f bytes live, not %f", found.site[0].sums[1].bytes, live);
        CHECK_EQUAL(found.large, 2 * BYTES);
        CHECK_EQUAL(found.large_resident, 2 * touched * PAGE);
        memset(block + touched * 3 * PAGE, 1, PAGE);
    }
    /* Allocated, and live at the peak: all of it. */
    CHECK(found.site[0].sums[0].bytes == 2.0 * (CULET_PROFILE_LARGE_BYTES - 1 + 2 * BYTES), "%f bytes",
          found.site[0].sums[0].bytes);
}

/* ---- limits ---- */

TEST(numbers_of_former_profiles_are_used_again)
{
    static uint32_t number[1000];

    /* More samples than there is room for, in all. */
    for (unsigned profile = 0; profile < 2 + CULET_SAMPLES / 1000; profile++) {
        CHECK(api->start(1), "no memory");
        for (unsigned i = 0; i < 1000; i++) {
            api->remove(number[i]);
            number[i] = add_one(1, 100);
            CHECK(number[i], "no room in profile %u", profile);
        }
        api->stop();
    }
    read_stream();
    CHECK_EQUAL(samples_of('l'), 1000);
    CHECK_EQUAL(samples_of('a'), 1000);
}

TEST(without_a_start_there_is_no_profile)
{
    struct culet_profile_top top = {0};
    uint64_t count = 0;

    CHECK_EQUAL(add_one(1, 100), 0);
    api->remove(1);
    CHECK(!api->write(collect, NULL, &count), "something was written");
    CHECK(!api->top(&top), "there are sites");
    CHECK_EQUAL(length, 0);
    CHECK_EQUAL(count, 0);
}

static unsigned reached;

static void on_reached(void)
{
    reached++;
    /* No lock is held. */
    if (reached == 1)
        api->remove(add_one(1, 1));
}

TEST(growth_is_reported_once)
{
    CHECK(api->start(4096), "no memory");
    api->notify(1000, on_reached);
    uint32_t first = add_one(1, 1000);
    CHECK_EQUAL(reached, 0);
    uint32_t second = add_one(1, 1);
    CHECK_EQUAL(reached, 1);
    (void)add_one(1, 5000);
    CHECK_EQUAL(reached, 1);
    api->remove(first);
    api->remove(second);
    api->notify(5000, on_reached);
    api->notify(0, NULL);
    (void)add_one(1, 5000);
    CHECK_EQUAL(reached, 1);
}

/* As many stacks as there is room for, then one that stands for the others. */
TEST(a_full_table_of_stacks_loses_stacks_but_no_samples)
{
    uint64_t words[CULET_PROFILE_FRAMES];

    CHECK(api->start(1), "no memory");
    for (uint64_t i = 0; i < 2000; i++) {
        for (unsigned w = 0; w < CULET_PROFILE_FRAMES; w++)
            words[w] = i << 20 | w;
        CHECK(api->add(CULET_PROFILE_MALLOC, NULL, 1, 1, 0, words, CULET_PROFILE_FRAMES), "a sample was lost");
    }
    struct culet_copy copy;
    CHECK(culet_profile_copy(&copy), "no memory");
    const struct culet_tables *t = &copy.tables;
    CHECK_EQUAL(t->stacks.count, CULET_STACK_NODES);
    CHECK_EQUAL(t->no_site + t->no_sample, 0);
    CHECK_EQUAL(t->stacks.node[t->site[t->sites - 1].stack].word, culet_word_mark(CULET_MARK_FULL));
    culet_copy_unmap(&copy);
    /* At most three quarters of the slots are used. */
    CHECK(CULET_STACK_NODES <= (1u << 18) / 4 * 3, "the index is larger than 1 MiB");
    CHECK(CULET_STACK_NODES * sizeof *t->stacks.node + (1u << 18) * sizeof *t->stacks.index.slot <= 4u << 20,
          "stacks take more than 4 MiB");
}

TEST(samples_without_room_are_counted)
{
    const uint64_t word = 1;

    CHECK(api->start(1), "no memory");
    for (unsigned i = 1; i < CULET_SAMPLES; i++)
        CHECK_EQUAL(api->add(CULET_PROFILE_OBJECT, NULL, 1, 1, 0, &word, 1), i);
    CHECK_EQUAL(api->add(CULET_PROFILE_OBJECT, NULL, 1, 1, 0, &word, 1), 0);
    read_stream();
    CHECK_EQUAL(found.no_sample, 1);
    CHECK_EQUAL(samples_of('l'), CULET_SAMPLES - 1);
    api->remove(7);
    CHECK_EQUAL(api->add(CULET_PROFILE_OBJECT, NULL, 1, 1, 0, &word, 1), 7);
}

TEST(sites_without_room_are_counted)
{
    const uint64_t word = 1;

    CHECK(api->start(1), "no memory");
    for (uint32_t i = 1; i < CULET_SITES; i++)
        CHECK_EQUAL(api->add(CULET_PROFILE_OBJECT, NULL, 1, 1, i, &word, 1), i);
    CHECK_EQUAL(api->add(CULET_PROFILE_OBJECT, NULL, 1, 1, CULET_SITES, &word, 1), 0);
    CHECK_EQUAL(api->add(CULET_PROFILE_OBJECT, NULL, 1, 1, 1, &word, 1), CULET_SITES);
    struct culet_copy copy;
    CHECK(culet_profile_copy(&copy), "no memory");
    CHECK_EQUAL(copy.tables.no_site, 1);
    culet_copy_unmap(&copy);
}

TEST(samples_that_are_not_taken_are_counted)
{
    static const enum culet_skip reasons[] = {CULET_SKIP_INSIDE, CULET_SKIP_FORKING, CULET_SKIP_FORKING};

    CHECK(api->start(1), "no memory");
    for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++)
        culet_profile_skip(reasons[i]);
    read_stream();
    CHECK_EQUAL(found.skipped[CULET_SKIP_INSIDE], 1);
    CHECK_EQUAL(found.skipped[CULET_SKIP_FORKING], 2);
    CHECK_EQUAL(found.skipped[CULET_SKIP_MEMORY], 0);
    api->stop();
    CHECK(api->start(1), "no memory");
    read_stream();
    CHECK_EQUAL(found.skipped[CULET_SKIP_FORKING], 0);
}

TEST(sums_stay_finite)
{
    const double weights[] = {0, -1, 0.5, __builtin_nan(""), __builtin_inf(), -__builtin_inf(), 1e300};
    const uint64_t word = 1;

    CHECK(api->start(1), "no memory");
    for (unsigned i = 0; i < sizeof weights / sizeof *weights; i++)
        CHECK(api->add(CULET_PROFILE_MALLOC, NULL, SIZE_MAX, weights[i], 0, &word, 1), "lost");
    read_stream();
    CHECK(found.site[0].sums[0].blocks == 5 + 2 * 0x1p62, "%f blocks", found.site[0].sums[0].blocks);
    CHECK(found.site[0].sums[0].variance > 1e70, "a variance of %g", found.site[0].sums[0].variance);
}

TEST(a_missing_mapping_fails_without_harm)
{
    uint64_t count = 0;
    int allowed = 0;

    for (mappings_left = 0; !api->start(100); mappings_left = ++allowed) {
        CHECK(!api->running(), "it runs");
        CHECK_EQUAL(add_one(1, 1), 0);
    }
    CHECK(allowed >= 5, "it started with %d mappings", allowed);
    uint32_t kept = add_one(1, 1);
    api->stop();
    for (allowed = mappings_left = 0; !api->start(100); mappings_left = ++allowed) {
        mappings_left = -1;
        read_stream();
        CHECK_EQUAL(samples_of('l'), 1);
    }
    CHECK(allowed >= 5, "it started with %d mappings", allowed);
    api->remove(kept);
    length = 0;
    collect(NULL, "", 0);
    for (allowed = mappings_left = 0; !api->write(collect, NULL, &count); mappings_left = ++allowed)
        CHECK_EQUAL(length, 0);
    mappings_left = -1;
    CHECK(allowed >= 3 && length, "written with %d mappings", allowed);
}

static unsigned calls, calls_allowed;

static bool fail_later(void *data, const char *part, size_t bytes)
{
    (void)data, (void)part, (void)bytes;
    CHECK(calls <= calls_allowed, "called after a failure");
    return calls++ < calls_allowed;
}

TEST(an_output_that_fails_ends_it)
{
    uint64_t words[3], count;

    CHECK(api->start(1), "no memory");
    for (words[0] = 1; words[0] < 3000; words[0]++)
        api->add(CULET_PROFILE_OBJECT, NULL, 10, 2, 0, words, 1);
    for (calls_allowed = 0; calls = 0, !api->write(fail_later, NULL, &count); calls_allowed++)
        CHECK_EQUAL(calls, calls_allowed + 1);
    CHECK(calls_allowed > 10, "%u parts", calls_allowed);
}

/* ---- modules ---- */

#ifdef __GLIBC__ /* musl has no library to make a copy of */

static bool copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    char part[4096];
    size_t bytes;

    CHECK(in && out, "%s to %s: %s", from, to, strerror(errno));
    while ((bytes = fread(part, 1, sizeof part, in)))
        CHECK(fwrite(part, 1, bytes, out) == bytes, "%s", strerror(errno));
    return fclose(in) == 0 && fclose(out) == 0;
}

/* The build id of the module with that path in the stream. */
static void find_id(const char *path, char *id)
{
    const char *at = strstr(text, path);

    CHECK(at && at[strlen(path)] == '\n', "%s is not there", path);
    while (at[-1] != '\n')
        at--;
    CHECK(sscanf(at, "M %*x %*x %*x %127s", id) == 1, "no id: %.100s", at);
}

TEST(modules_have_their_ids_and_paths)
{
    char folder[] = "/tmp/culet-profile-XXXXXX", path[256], escaped[256], id[128], same[128];
    void *library = dlopen("libresolv.so.2", RTLD_NOW), *copy;
    struct link_map *map;
    uint64_t count = 0;

    CHECK(library && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0, "%s", dlerror());
    CHECK(mkdtemp(folder), "%s", strerror(errno));
    snprintf(path, sizeof path, "%s/a \xc3\xa9\xe2\x82\xac\xf0\x9f\x92\x8e\\\n\xff\xc2\x80\xed\xa0\x80\xc3.so", folder);
    snprintf(escaped, sizeof escaped,
             "%s/a \xc3\xa9\xe2\x82\xac\xf0\x9f\x92\x8e\\x5c\\x0a\\xff\\xc2\\x80\\xed\\xa0\\x80\\xc3.so", folder);
    CHECK(copy_file(map->l_name, path), "%s", strerror(errno));
    copy = dlopen(path, RTLD_NOW);
    unlink(path);
    rmdir(folder);
    CHECK(copy, "%s", dlerror());
    CHECK(api->start(1) && api->write(collect, NULL, &count), "not written");
    find_id(map->l_name, id);
    find_id(escaped, same);
    CHECK(strlen(id) >= 16 && !strcmp(id, same), "%s and %s", id, same);
    dlclose(copy);
    /* The program itself. */
    path[readlink("/proc/self/exe", path, sizeof path - 1)] = '\0';
    find_id(path, id);
}
#endif

/* ---- stacks ---- */

static size_t frames_count, frames_max;
static uintptr_t frames_first;

static size_t make_frames(const uintptr_t *pcs, size_t count, uint64_t *words, size_t max)
{
    CHECK(culet_profile_inside(), "the allocations of an interpreter are not to be sampled");
    api->remove(add_one(9, 1));
    CHECK(culet_profile_inside(), "a sample inside ends it");
    frames_count = count;
    frames_max = max;
    frames_first = pcs[0];
    words[0] = culet_word_ruby(1, 2);
    return 1;
}

__attribute__((noinline)) static size_t capture_here(uint64_t *words, size_t max)
{
    size_t count = api->capture(words, max);

    __asm__ volatile("" ::: "memory");
    return count;
}

TEST(a_stack_begins_at_the_caller)
{
    uint64_t words[CULET_PROFILE_FRAMES];
    uintptr_t start, end;
    size_t count = capture_here(words, CULET_PROFILE_FRAMES), native = count;

    CHECK(count > 2, "%zu frames", count);
    CHECK(api->function((uintptr_t)capture_here, &start, &end), "the function is not known");
    CHECK(words[0] >= start && words[0] <= end, "%lx is not in %lx to %lx", (long)words[0], (long)start, (long)end);
#ifdef __GLIBC__
    CHECK(words[count - 1] >> CULET_WORD_SHIFT == CULET_WORD_NATIVE, "a whole stack is marked");
#else
    /* musl's own code, which calls main, has no tables of frames. */
    CHECK_EQUAL(words[count - 1], culet_word_mark(CULET_MARK_TRUNCATED));
    native--;
#endif
    CHECK_EQUAL(capture_here(words, 2), 2);
    CHECK_EQUAL(words[1], culet_word_mark(CULET_MARK_TRUNCATED));
    CHECK_EQUAL(capture_here(words, 0), 0);
    CHECK(api->start(1), "no memory");
    api->set_frames(make_frames);
    CHECK_EQUAL(capture_here(words, 5), 1);
    CHECK(words[0] == culet_word_ruby(1, 2) && frames_max == 5 && frames_count == native, "%zu frames", frames_count);
    CHECK(frames_first >= start && frames_first <= end, "%lx", (long)frames_first);
    CHECK(!culet_profile_inside(), "still inside");
    api->set_frames(NULL);
    CHECK_EQUAL(capture_here(words, CULET_PROFILE_FRAMES), count);
}

/* ---- threads and forks ---- */

TEST(the_forking_thread_is_not_locked_out)
{
    CHECK(api->start(1), "no memory");
    culet_profile_prepare();
    uint32_t number = add_one(1, 1), other;
    api->remove(number);
    other = add_one(1, 1);
    CHECK(number && number == other, "%u and %u", number, other);
    culet_profile_parent();
    read_stream();
    CHECK_EQUAL(samples_of('l'), 1);
}

static void *add_and_remove(void *data)
{
    uint64_t words[CULET_PROFILE_FRAMES];

    for (unsigned i = 0; i < 2000; i++) {
        size_t count = api->capture(words, CULET_PROFILE_FRAMES);
        CHECK(count > 1, "no stack");
        uint32_t number = api->add(CULET_PROFILE_MALLOC, NULL, 64, 2, 0, words, count);
        if (i % 4)
            api->remove(number);
    }
    return data;
}

static _Atomic unsigned started, stopped;

static void count_start(void)
{
    atomic_fetch_add(&started, 1);
}

static void count_stop(void)
{
    atomic_fetch_add(&stopped, 1);
}

static void *start_and_stop(void *data)
{
    for (unsigned i = 0; i < 200; i++) {
        CHECK(api->start(1 + i), "no memory");
        api->stop();
    }
    return data;
}

static bool ignore(void *data, const char *part, size_t bytes)
{
    (void)data, (void)part, (void)bytes;
    return true;
}

static void write_in_child(void)
{
    uint64_t count = 0;
    culet_profile_prepare();
    pid_t child = fork();
    if (child == 0) {
        culet_profile_child();
        _exit(api->start(1) && add_one(1, 1) && api->write(ignore, NULL, &count) ? 0 : 1);
    }
    culet_profile_parent();
    check_child(child);
}

static void run_threads(void *(*third)(void *))
{
    pthread_t thread[4];

    CHECK(api->start(1), "no memory");
    for (unsigned i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, i < 2 ? add_and_remove : third, NULL) == 0, "no thread");
    for (unsigned i = 0; i < 20; i++) {
        read_stream();
        write_in_child();
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    read_stream();
}

TEST(threads_share_the_tables)
{
    run_threads(add_and_remove);
    CHECK_EQUAL(samples_of('l'), 4 * 500);
    CHECK_EQUAL(samples_of('a'), 4 * 2000);
}

TEST(threads_start_and_stop_it)
{
    const struct culet_profile_host host = {.started = count_start, .stopped = count_stop};

    culet_profile_set_host(&host);
    run_threads(start_and_stop);
    CHECK_EQUAL(started, 401);
    CHECK(stopped > 0 && stopped <= 401 && !api->running(), "stopped %u times", stopped);
}

CHECK_MAIN
