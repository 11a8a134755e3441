#include "profile/merge.h"

struct output {
    uint64_t *words;
    size_t count, max;
};

/* The last word that fits says that the stack goes on. */
static void put(struct output *output, uint64_t word)
{
    if (output->count < output->max)
        output->words[output->count++] = word;
    else if (output->max > 0)
        output->words[output->max - 1] = culet_word_mark(CULET_MARK_TRUNCATED);
}

static bool in_interpreter(const struct culet_interpreter *interpreter, uintptr_t pc)
{
    for (size_t i = 0; i < interpreter->count; i++)
        if (culet_range_has(&interpreter->functions[i], pc))
            return true;
    return false;
}

/* Puts the frames of C functions up to the interpreter. Returns the interpreter's index. */
static size_t put_innermost(const struct culet_interpreter *interpreter, const uintptr_t *pcs, size_t count,
                            struct output *output)
{
    size_t i;

    for (i = 0; i < count && !in_interpreter(interpreter, pcs[i]); i++)
        put(output, pcs[i]);
    return i;
}

/* Whether C code that the function of deferred work has called is innermost. */
static bool is_deferred(const struct culet_interpreter *interpreter, const uintptr_t *pcs, size_t count)
{
    for (size_t i = 0; interpreter->has_deferred && i < count && !in_interpreter(interpreter, pcs[i]); i++)
        if (culet_range_has(&interpreter->deferred, pcs[i]))
            return true;
    return false;
}

size_t culet_merge_mark(const struct culet_interpreter *interpreter, const uintptr_t *pcs, size_t count,
                        enum culet_mark mark, uint64_t *words, size_t max)
{
    struct output output = {words, 0, max};

    put_innermost(interpreter, pcs, count, &output);
    put(&output, culet_word_mark(mark));
    return output.count;
}

/* A Ruby frame directly inside of a C function's: C called Ruby. */
static bool is_boundary(const bool *is_c, size_t ruby_count, size_t i)
{
    return i + 1 < ruby_count && !is_c[i] && is_c[i + 1];
}

static size_t count_runs(const struct culet_interpreter *interpreter, const uintptr_t *pcs, size_t count)
{
    size_t runs = 0;

    for (size_t i = 0; i < count; i++)
        runs += culet_range_has(&interpreter->run, pcs[i]);
    return runs;
}

/* Puts what lies between the run that ends at or after `from` and the next, less the interpreter's own code. Returns
 * the index of the next run's first frame. */
static size_t put_between(const struct culet_interpreter *interpreter, const uintptr_t *pcs, size_t count, size_t from,
                          struct output *output)
{
    while (from < count && !culet_range_has(&interpreter->run, pcs[from]))
        from++;
    for (from++; from < count && !in_interpreter(interpreter, pcs[from]); from++)
        if (!culet_range_has(&interpreter->image, pcs[from]))
            put(output, pcs[from]);
    return from;
}

size_t culet_merge(const struct culet_interpreter *interpreter, const uintptr_t *pcs, size_t count,
                   const uint64_t *ruby, const bool *is_c, size_t ruby_count, uint64_t *words, size_t max)
{
    struct output output = {words, 0, max};
    size_t at, boundaries = 0;
    bool matches;

    if (is_deferred(interpreter, pcs, count))
        return culet_merge_mark(interpreter, pcs, count, CULET_MARK_DEFERRED, words, max);
    at = put_innermost(interpreter, pcs, count, &output);
    for (size_t i = 0; i < ruby_count; i++)
        boundaries += is_boundary(is_c, ruby_count, i);
    matches = count_runs(interpreter, pcs, count) == boundaries + 1;
    for (size_t i = 0; i < ruby_count; i++) {
        put(&output, ruby[i]);
        if (matches && is_boundary(is_c, ruby_count, i))
            at = put_between(interpreter, pcs, count, at, &output);
    }
    return output.count;
}
