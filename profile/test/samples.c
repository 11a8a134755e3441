/* The tables against a naive model, over random samples, frees, epochs, forks and starts. */
#include "check.h"
#include "random.h"
#include "samples.h"

#include <math.h>
#include <pthread.h>

static const struct culet_profile_api *api = &culet_profile_api;
static uint64_t seed = 88172645463325252u;

static uint64_t random_below(uint64_t limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % limit;
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

static uint64_t stream(void)
{
    uint64_t lines = 0;

    length = 0;
    CHECK(api->write(collect, NULL, &lines), "the profile was not written");
    return lines;
}

/* The sums of a view, over all sites. */
static struct culet_profile_sums total(char view)
{
    struct culet_profile_sums all = {0};
    char *rest = NULL, *line = strtok_r(text, "\n", &rest), pattern[] = {' ', view, ' ', '\0'};

    for (; line; line = strtok_r(NULL, "\n", &rest)) {
        char *at = line[0] == 'S' ? strstr(line, pattern) : NULL;
        unsigned long long samples;
        double blocks, bytes, variance;
        if (!at)
            continue;
        CHECK(sscanf(at + 3, "%llu %lf %lf %lf", &samples, &blocks, &bytes, &variance) == 4, "a site: %s", line);
        all.samples += samples;
        all.blocks += blocks;
        all.bytes += bytes;
        all.variance += variance;
    }
    return all;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * (fabs(a) + fabs(b)) + 1e-2;
}

/* ---- the model ---- */

#define LIVE 4000

struct model {
    uint32_t number[LIVE];
    double bytes[LIVE];
    uint32_t epoch[LIVE], generation[LIVE];
    unsigned live;
    double allocated, peak, most;
    uint32_t now, forks;
};

static double live_bytes(const struct model *m)
{
    double sum = 0;

    for (unsigned i = 0; i < m->live; i++)
        sum += m->bytes[i];
    return sum;
}

static void add(struct model *m)
{
    uint64_t words[8];
    size_t count = 1 + random_below(8), size = 16 + 16 * random_below(200);
    double weight = culet_profile_weight(size);

    for (size_t i = 0; i < count; i++)
        words[i] = 1000 + random_below(4);
    api->set_label((uint32_t)random_below(3));
    uint32_t number = api->add(CULET_PROFILE_MALLOC, size, weight, (uint32_t)random_below(2), words, count);
    CHECK(number, "a sample was lost");
    m->number[m->live] = number;
    m->bytes[m->live] = weight * (double)size;
    m->epoch[m->live] = m->now;
    m->generation[m->live] = m->forks;
    m->allocated += m->bytes[m->live++];
    double now = live_bytes(m);
    /* The tables compare whole bytes. */
    if (floor(now) > floor(m->most)) {
        m->most = now;
        m->peak = now;
    }
}

static void drop(struct model *m, unsigned i)
{
    api->remove(m->number[i]);
    m->live--;
    m->number[i] = m->number[m->live];
    m->bytes[i] = m->bytes[m->live];
    m->epoch[i] = m->epoch[m->live];
    m->generation[i] = m->generation[m->live];
}

static void compare(struct model *m)
{
    double growth = 0, inherited = 0;

    for (unsigned i = 0; i < m->live; i++) {
        growth += m->now - m->epoch[i] >= CULET_PROFILE_SURVIVALS ? m->bytes[i] : 0;
        inherited += m->generation[i] != m->forks ? m->bytes[i] : 0;
    }
    const struct {
        char view;
        double bytes;
    } expected[] = {{'a', m->allocated}, {'l', live_bytes(m)}, {'p', m->peak}, {'g', growth}, {'i', inherited}};
    for (unsigned i = 0; i < 5; i++) {
        stream();
        double found = total(expected[i].view).bytes;
        CHECK(near(found, expected[i].bytes), "view %c has %f bytes, not %f", expected[i].view, found,
              expected[i].bytes);
    }
    stream();
    CHECK_EQUAL(total('l').samples, m->live);
}

static struct model m;

static void random_steps(unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        unsigned what = (unsigned)random_below(100);
        if (what < 55 && m.live < LIVE)
            add(&m);
        else if (what < 98 && m.live)
            drop(&m, (unsigned)random_below(m.live));
        else if (what >= 98) {
            api->next_epoch();
            m.now++;
        }
    }
}

TEST(random_samples_agree_with_the_model)
{
    culet_profile_set_mean(4096);
    CHECK(api->start(4096), "no memory");
    for (unsigned round = 0; round < 8; round++) {
        random_steps(500);
        compare(&m);
    }
    /* In a child everything that is live was inherited; both go on. */
    for (unsigned round = 0; round < 3; round++) {
        culet_profile_prepare();
        pid_t child = fork();
        if (child == 0) {
            culet_profile_child();
            m.forks++;
            compare(&m);
            random_steps(500);
            compare(&m);
            _exit(0);
        }
        culet_profile_parent();
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0, "the child failed: %x", status);
        random_steps(200);
        compare(&m);
    }
}

TEST(samples_of_a_former_profile_are_forgotten)
{
    const uint64_t word = 1;
    uint32_t old[100];

    CHECK(api->start(1), "no memory");
    for (unsigned i = 0; i < 100; i++)
        old[i] = api->add(CULET_PROFILE_MALLOC, 100, 1, 0, &word, 1);
    api->stop();
    CHECK(!api->running(), "it runs still");
    CHECK(api->start(1) && api->running(), "no memory");
    uint32_t fresh = api->add(CULET_PROFILE_MALLOC, 50, 1, 0, &word, 1);
    for (unsigned i = 0; i < 100; i++) {
        CHECK(old[i] != fresh, "a number was given out again");
        api->remove(old[i]);
    }
    stream();
    CHECK(near(total('l').bytes, 50), "something else is live");
    api->remove(fresh);
    api->remove(fresh);
    api->remove(0);
    api->remove(UINT32_MAX);
    stream();
    CHECK_EQUAL(total('l').samples, 0);
}

TEST(without_a_start_there_is_no_profile)
{
    const uint64_t word = 1;
    uint64_t lines = 0;

    CHECK_EQUAL(api->add(CULET_PROFILE_MALLOC, 100, 1, 0, &word, 1), 0);
    api->remove(1);
    CHECK(!api->write(collect, NULL, &lines), "something was written");
    CHECK_EQUAL(length, 0);
}

/* As many stacks as there is room for, then one that stands for the others. */
TEST(a_full_table_of_stacks_loses_stacks_but_no_samples)
{
    uint64_t words[256];

    CHECK(api->start(1), "no memory");
    for (uint64_t i = 0; i < 2000; i++) {
        for (unsigned w = 0; w < 256; w++)
            words[w] = i << 20 | w;
        CHECK(api->add(CULET_PROFILE_MALLOC, 1, 1, 0, words, 256), "a sample was lost");
    }
    struct culet_samples copy;
    CHECK(culet_profile_copy(&copy), "no memory");
    CHECK_EQUAL(copy.stacks.count, CULET_STACK_NODES);
    CHECK_EQUAL(copy.lost, 0);
    CHECK_EQUAL(copy.stacks.node[copy.site[copy.sites - 1].stack].word, culet_word_mark(CULET_MARK_FULL));
    culet_profile_release(&copy);
}

TEST(samples_without_room_are_counted)
{
    const uint64_t word = 1;

    CHECK(api->start(1), "no memory");
    for (unsigned i = 1; i < CULET_SAMPLES; i++)
        CHECK_EQUAL(api->add(CULET_PROFILE_OBJECT, 1, 1, 0, &word, 1), i);
    CHECK_EQUAL(api->add(CULET_PROFILE_OBJECT, 1, 1, 0, &word, 1), 0);
    stream();
    CHECK(strstr(text, " 0 0 1\nR "), "the lost sample is not told: %.200s", text);
    api->remove(7);
    CHECK_EQUAL(api->add(CULET_PROFILE_OBJECT, 1, 1, 0, &word, 1), 7);
}

TEST(lines_are_counted_and_an_output_that_fails_ends_it)
{
    const uint64_t word = 0xabc;

    CHECK(api->start(1), "no memory");
    api->add(CULET_PROFILE_OBJECT, 10, 2, 3, &word, 1);
    uint64_t lines = stream(), found = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        found++;
    CHECK_EQUAL(lines, found);
    CHECK(strstr(text, " 0 abc\n") && strstr(text, "\nS o "), "no stack or no site");
    CHECK(strstr(text, "\nM ") && strstr(text, "samples"), "the program's own mapping is missing");
}

/* ---- threads ---- */

static void *add_and_remove(void *data)
{
    uint64_t words[CULET_PROFILE_FRAMES];

    for (unsigned i = 0; i < 2000; i++) {
        size_t count = api->capture(words, CULET_PROFILE_FRAMES);
        CHECK(count > 1, "no stack");
        uint32_t number = api->add(CULET_PROFILE_MALLOC, 64, 2, 0, words, count);
        if (i % 4)
            api->remove(number);
    }
    return data;
}

TEST(threads_share_the_tables)
{
    pthread_t thread[4];

    CHECK(api->start(1), "no memory");
    for (unsigned i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, add_and_remove, NULL) == 0, "no thread");
    for (unsigned i = 0; i < 20; i++)
        stream();
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    stream();
    CHECK_EQUAL(total('l').samples, 4 * 500);
    stream();
    CHECK_EQUAL(total('a').samples, 4 * 2000);
}

CHECK_MAIN
