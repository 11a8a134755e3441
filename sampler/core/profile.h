/* profile.h - a sampling profile of memory: which stack allocated what is in use. Knows neither the allocator nor Ruby.
 *
 *   a request --(distance reached)--> capture: words of the stack --> add: a sample --> site: stack, label, type
 *   a free of a sampled block ------------------------------------> remove
 *
 * Who samples: the allocator (allocator/src/sampling.h), the sampler for other allocators (sampler/preload), and the extension for Ruby's
 * objects. A process has one profile: the table `culet_profile_api` of the library that came first. The extension finds
 * it by dlsym, and uses a copy of its own where there is none.
 *
 * Sampling is a Poisson process over the bytes of all allocations, with a mean distance of `sample_bytes` between two
 * samples. An allocation of s bytes is sampled with probability p = 1 - exp(-s / sample_bytes), and a sample of it stands
 * for 1 / p allocations: its weight.
 *
 * A site is a stack, a label, a type and a kind. For each view it has four sums over its samples (struct
 * culet_profile_sums):
 *
 *     samples   number of samples
 *     blocks    sum of weight                   estimated number of blocks
 *     bytes     sum of weight * size            estimated bytes
 *     variance  sum of weight * (weight - 1) * size^2   estimated variance of `bytes`
 *
 * Views: allocated (by this process, since the start), live (in use now), peak (live at the highest resident size of this
 * process so far), growth (allocated after the base, live, and older than CULET_PROFILE_SURVIVALS epochs), inherited (live,
 * and allocated before the fork that made this process). The base is the start, the fork, or the end of the boot
 * (`booted`), whichever was last. An epoch is a major collection of Ruby; a program without Ruby has one every ten
 * seconds.
 *
 * Of a live block of CULET_PROFILE_LARGE_BYTES or more, the views live, growth and inherited count the resident bytes in
 * place of the size, where /proc/self/pagemap can be read.
 *
 * Memory comes from mmap alone. Functions may be called in any thread, and inside malloc; none of them allocates by
 * malloc. One lock guards all tables; a fork takes it.
 *
 * The stream that `write` produces is text. Lines of fields separated by one space; the last field of M, F, L and T may
 * contain spaces, and has control characters, backslashes and bytes that are not UTF-8 as \xNN. Numbers are decimal unless
 * marked hex. Unknown line types are skipped by a reader.
 *
 *   culet-profile 1
 *   P pid sample_bytes started_ns taken_ns epoch generation lost       times of CLOCK_REALTIME; generation: forks since start;
 *                                                                      lost: samples that found no room
 *   A added freed no_site no_sample inside forking no_memory          samples since the start: added; of these, freed; lost
 *                                                                      for want of a site or a sample; due, but not taken:
 *                                                                      inside the profile, in a thread that forks, without
 *                                                                      memory for the block. added = live + freed
 *   R rss_bytes peak_rss_bytes                                         resident, as sampled
 *   G base_ns span_ns base_rss_bytes taken_rss_bytes                   when the base of growth was taken; how long after it
 *                                                                      what survives CULET_PROFILE_SURVIVALS epochs was
 *                                                                      added at the latest, 0: nothing could yet; resident
 *                                                                      at the base and when written, 0: unknown
 *   U large_bytes resident_bytes                                       of live blocks of CULET_PROFILE_LARGE_BYTES or
 *                                                                      more: their estimated bytes, and what is resident of
 *                                                                      them; no line: that is not known
 *   O allocated estimated buffers               Ruby's objects since the start, and as their samples estimate them: the sums
 *                                               of kind o are multiplied by allocated / estimated; buffers: 1 if they have
 *                                               their objects' buffers in the transient heap, so that copies of these, of
 *                                               kind m and with CULET_MARK_DEFERRED, do not count
 *   M start end offset build_id path            executable mapping; start, end, offset in hex; build_id: hex or -
 *   F id line path TAB label                    a Ruby frame: path of its file, line where its method starts, its name
 *   L id name=value TAB name=value ...          a label set; id 0 is the empty set and is not written
 *   T id name                                   a type: class of an object; id 0: none
 *   K id parent word                            a stack: the frame `word` (hex), called by stack `parent` (0: none).
 *                                               Parents come first
 *   S kind stack label type view sums...        a site: kind m (malloc) or o (object); for each view with samples, its letter
 *                                               (a, l, p, g, i), samples, blocks, bytes, variance; blocks and what follows
 *                                               are floating-point
 *   W site period sums...                      of the site of the Nth line S (N: 1, 2, ...), the view growth by when its samples
 *                                               were added: for each period with samples, its number, samples, blocks,
 *                                               bytes, variance. Twelve periods of one length, 0 to 11, are the span of G
 *   D site sign sums...                         the site's growth since the base: + what was added and is live, survivors
 *                                               or not, - what was live at the base and is gone; each with samples,
 *                                               blocks, bytes, variance
 *   I site id inherited weight size              a live sample of the site of the Nth line S (N: 1, 2, ...) that other processes
 *                                               may have too: all of a process that has forked, and those that a forked one
 *                                               has inherited (inherited: 1). A sample has the same id in all processes
 *   E lines                                     the end: the number of all lines before this one
 *
 * Words of a stack are below. K's `word` is one of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CULET_PROFILE_VERSION 4
#define CULET_PROFILE_DEFAULT_BYTES (512u << 10)
#define CULET_PROFILE_FRAMES 256 /* words of a stack, at most; the outermost are left out */
#define CULET_PROFILE_SURVIVALS 3
#define CULET_PROFILE_LARGE_BYTES (128u << 10) /* of these blocks a part may not be resident */

/* The top byte of a word says what it is. */
#define CULET_WORD_SHIFT 56
enum culet_word {
    CULET_WORD_NATIVE = 0, /* a return address, or of the innermost frame an address in it */
    CULET_WORD_RUBY = 1,   /* bits 24-55 the frame's id (line F), bits 0-23 the line, 0 if unknown */
    CULET_WORD_MARK = 2,   /* a remark (enum culet_mark) in place of frames */
};
enum culet_mark {
    CULET_MARK_TRUNCATED = 1, /* the stack goes on */
    CULET_MARK_GC = 2,        /* during a collection: no Ruby frames */
    CULET_MARK_NO_GVL = 3, /* a thread unknown to Ruby; without the GVL, one that starts or during GC: no Ruby frames */
    CULET_MARK_BOOT = 4,   /* before Ruby could be asked */
    CULET_MARK_FULL = 5,   /* the table of stacks is full: the stack is not known */
    CULET_MARK_SIGNAL = 6, /* inside a signal handler */
    CULET_MARK_DEFERRED = 7, /* deferred work of Ruby, which the code that runs has not asked for */
};

static inline uint64_t culet_word_ruby(uint32_t frame, uint32_t line)
{
    return (uint64_t)CULET_WORD_RUBY << CULET_WORD_SHIFT | (uint64_t)frame << 24 | (line & 0xffffff);
}

static inline uint64_t culet_word_mark(enum culet_mark mark)
{
    return (uint64_t)CULET_WORD_MARK << CULET_WORD_SHIFT | (uint64_t)mark;
}

enum culet_profile_kind { CULET_PROFILE_MALLOC, CULET_PROFILE_OBJECT };

struct culet_profile_sums {
    uint64_t samples;
    double blocks, bytes, variance;
};

/* Turns a native stack into the words of the sample, adding the frames of an interpreter. `pcs`: `count` addresses,
 * innermost first. Returns the number of words, at most `max`. Called inside malloc, with no lock held; must not call
 * malloc in a way that needs the result. Its allocations are not sampled. */
typedef size_t culet_profile_frames(const uintptr_t *pcs, size_t count, uint64_t *words, size_t max);

/* Receives a part of the stream; false ends it. */
typedef bool culet_profile_output(void *data, const char *text, size_t length);

/* The sites with most live bytes, the largest first, and the nodes of their stacks, callers first. The caller sets the
 * arrays and their room; `top` the numbers of what it filled. A site whose stack has no room ends the list. */
struct culet_profile_top_site {
    uint32_t kind, stack, label, type;
    struct culet_profile_sums live;
};
struct culet_profile_top_node {
    uint32_t number, parent;
    uint64_t word;
};
struct culet_profile_top {
    struct culet_profile_top_site *sites;
    struct culet_profile_top_node *nodes;
    size_t site_count, node_count;
    double malloc_bytes, object_bytes; /* live, of all sites */
    uint64_t sample_bytes, started_ns, lost, resident, peak_resident;
    uint32_t epoch, generation;
};

/* Live samples that were added since the base of growth, whether they have survived or not. The caller sets the list and its
 * room; `count` the number of what it filled. Of more than have room, each nth is taken. */
struct culet_profile_sample {
    uint32_t kind, stack, label, type; /* of its site */
    uint32_t number;
    const void *block; /* NULL: not known */
    double bytes;      /* that it stands for */
};
struct culet_profile_samples {
    struct culet_profile_sample *list;
    size_t count;
    uint64_t started_ns;
    uint32_t generation;
};

/* What a process's profile offers to the extension. Exported by libculet.so and by the sampler. */
struct culet_profile_api {
    uint32_t version;    /* CULET_PROFILE_VERSION */
    bool samples_malloc; /* the library samples malloc; otherwise objects alone are sampled */

    /* Starts to sample, mean distance in bytes (at least 1). Forgets what a former profile has found, unless sampling is on
     * already; then only the distance changes. False: no memory. */
    bool (*start)(uint64_t sample_bytes);
    /* Ends sampling. Live samples are followed on, so that the views stay true. */
    void (*stop)(void);
    bool (*running)(void);
    uint64_t (*sample_bytes)(void);

    void (*set_frames)(culet_profile_frames *frames); /* NULL: native frames alone */
    /* The calling thread's label set for its next samples; 0: none. */
    void (*set_label)(uint32_t label);
    void (*next_epoch)(void);
    /* The program has booted: growth is what is allocated from now on. */
    void (*booted)(void);

    /* The words of the calling thread's stack, from the caller on. */
    size_t (*capture)(uint64_t *words, size_t max);
    /* Start and end of the function that contains an address; false: not known. */
    bool (*function)(uintptr_t pc, uintptr_t *start, uintptr_t *end);

    /* A sample of `size` bytes at `block` (NULL: the address is not known, and all of it counts as resident) that stands
     * for `weight` allocations. Returns its number, or 0 if there is no room (it is counted as lost). The label is the
     * thread's. */
    uint32_t (*add)(enum culet_profile_kind kind, const void *block, size_t size, double weight, uint32_t type,
                    const uint64_t *words, size_t count);
    void (*remove)(uint32_t sample);

    /* Writes the lines P, A, R, G, U, M, K, S, W, D and I, without the first line and E. Stops the calling thread only: the tables are
     * copied under the lock, and written from the copy. False: no memory, or `output` returned false. `lines` is increased
     * by the number of lines. */
    bool (*write)(culet_profile_output *output, void *data, uint64_t *lines);

    /* Fills `top`, under the lock, without memory of its own. False: there was no profile yet. */
    bool (*top)(struct culet_profile_top *top);
    /* Fills `samples`, under the lock, without memory of its own. False: there was no profile yet. */
    bool (*samples)(struct culet_profile_samples *samples);
    /* Calls `reached` once, when the estimated live bytes exceed `bytes`; replaces the former request. NULL: none. It is
     * called inside malloc, in any thread, with no lock held. */
    void (*notify)(double bytes, void (*reached)(void));
};
