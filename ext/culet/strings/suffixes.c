/* CRuby lets a string share the buffer of another that ends with it. The string's own buffer is then saved, or the part
 * of its slot beyond the smallest. Strings that fit into the smallest slot save nothing, nor do interned ones, for
 * which Ruby allocates buffers of their own, nor those that share a buffer already. */
#include "strings/suffixes.h"

#include <string.h>

#include "common/pages.h"

typedef struct culet_string_entry entry;

/* The contents of a run of entries with the same last word; an entry's key is where its content ends. */
struct contents {
    unsigned char *bytes;
    size_t capacity;
};

static size_t content_bytes(const entry *one)
{
    return (size_t)one->length * (one->flags & STRING_HASHED ? STRINGS_LINK_BYTES : 1);
}

static uint64_t last_word(const unsigned char *end)
{
    uint64_t word = 0;

    /* The last byte is compared first. */
    for (int i = 1; i <= STRINGS_KEY_BYTES; i++)
        word = word << 8 | end[-i];
    return word;
}

static int by_last_word(const entry *one, const entry *other, void *unused)
{
    return (one->key > other->key) - (one->key < other->key);
}

/* Length of the common suffix. */
static size_t common(const unsigned char *one, const unsigned char *other, size_t length)
{
    size_t same = 0;

    while (length - same >= STRINGS_KEY_BYTES &&
           memcmp(one - same - STRINGS_KEY_BYTES, other - same - STRINGS_KEY_BYTES, STRINGS_KEY_BYTES) == 0)
        same += STRINGS_KEY_BYTES;
    while (same < length && one[-(ptrdiff_t)same - 1] == other[-(ptrdiff_t)same - 1])
        same++;
    return same;
}

/* Order of reversed contents; a suffix comes before the longer string. */
static int by_content_backwards(const entry *one, const entry *other, void *data)
{
    const struct contents *contents = data;
    const unsigned char *end = contents->bytes + one->key, *other_end = contents->bytes + other->key;
    size_t length = content_bytes(one), other_length = content_bytes(other);
    size_t least = length < other_length ? length : other_length, same = common(end, other_end, least);

    if (same < least)
        return end[-(ptrdiff_t)same - 1] < other_end[-(ptrdiff_t)same - 1] ? -1 : 1;
    if (length != other_length)
        return length < other_length ? -1 : 1;
    return (one->offset > other->offset) - (one->offset < other->offset);
}

/* Whether the first is a suffix of the second, or equal to it. */
static int ends_with(const struct contents *contents, const entry *end_of, const entry *whole)
{
    size_t length = content_bytes(end_of);

    return length <= content_bytes(whole) &&
           common(contents->bytes + end_of->key, contents->bytes + whole->key, length) == length;
}

/* Bytes saved if the string shared another's buffer. */
static uint64_t gain_of(const struct culet_strings_analysis *analysis, const entry *one)
{
    uint64_t held = culet_string_held(one);

    if (one->flags & (STRING_INTERNED | STRING_ROOT | STRING_SHARED | STRING_NOFREE))
        return 0;
    return held > analysis->smallest_slot ? held - analysis->smallest_slot : 0;
}

/* Sharing an unfrozen string's buffer requires a root: one more slot. */
static uint64_t cost_of_root(const struct culet_strings_analysis *analysis, const entry *whole)
{
    return whole->flags & (STRING_FROZEN | STRING_ROOT | STRING_SHARED) ? 0 : analysis->smallest_slot;
}

/* Adds a chain in which each string is a suffix of the next. Returns 0 without memory. */
static int add_chain(struct culet_strings_analysis *analysis, const entry *first, const entry *last)
{
    struct culet_string_group group = {
        .offset = last->offset, .flags = (uint32_t)last->flags, .held = culet_string_held(last)};
    uint64_t gain = 0, cost = cost_of_root(analysis, last);

    for (const entry *one = last; one-- > first;) {
        if (gain_of(analysis, one) == 0)
            continue;
        gain += gain_of(analysis, one);
        if (group.part_count < STRINGS_GROUP_PARTS)
            group.parts[group.part_count++] = one->offset;
        group.held += culet_string_held(one);
        group.count++;
    }
    if (gain <= cost)
        return 1;
    group.gain = gain - cost;
    for (const entry *one = last; one-- > first;) {
        uint64_t part = gain_of(analysis, one), paid = cost < part ? cost : part; /* the longest pays for the root */
        cost -= paid;
        if (part > 0 && !culet_string_table_gain(&analysis->sites, one->site, part - paid))
            return 0;
    }
    group.frozen = (last->flags & STRING_FROZEN) != 0;
    analysis->suffix_groups++;
    analysis->suffix_strings += group.count;
    analysis->suffix_gain += group.gain;
    culet_top_groups_add(&analysis->suffixes, &group);
    return 1;
}

static int by_offset(const entry *one, const entry *other, void *unused)
{
    return (one->offset > other->offset) - (one->offset < other->offset);
}

/* Reads the contents of a run. Returns NULL or an error message. */
static const char *load(const struct culet_strings_analysis *analysis, struct contents *contents, entry *run,
                        size_t count)
{
    size_t bytes = 0;
    void *grown;

    for (size_t i = 0; i < count; i++)
        bytes += content_bytes(&run[i]);
    /* With the entries this is less than the strings hold: each holds a slot larger than an entry besides its text. */
    if ((grown = culet_pages_reserve(contents->bytes, &contents->capacity, bytes)) == NULL)
        return STRINGS_NO_MEMORY;
    contents->bytes = grown;
    culet_strings_sort(run, count, by_offset, NULL);
    bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (!culet_record_file_copy(&analysis->file, run[i].offset, content_bytes(&run[i]), contents->bytes + bytes))
            return STRINGS_DAMAGED;
        bytes += content_bytes(&run[i]);
        run[i].key = bytes;
    }
    return NULL;
}

/* Finds the suffixes among entries with the same last word. Returns NULL or an error message. */
static const char *find_in_run(struct culet_strings_analysis *analysis, struct contents *contents, entry *run,
                               size_t count)
{
    const char *failure = load(analysis, contents, run, count);

    if (failure != NULL)
        return failure;
    culet_strings_sort(run, count, by_content_backwards, contents);
    for (size_t first = 0, last; first < count; first = last + 1) {
        for (last = first; last + 1 < count && ends_with(contents, &run[last], &run[last + 1]); last++)
            continue;
        if (last > first && !add_chain(analysis, &run[first], &run[last]))
            return STRINGS_NO_MEMORY;
    }
    return NULL;
}

/* Sets each entry's key to its last word. Returns 0 if the file has changed. */
static int read_last_words(struct culet_strings_analysis *analysis)
{
    for (entry *one = analysis->entries; one < analysis->entries + analysis->lasting; one++) {
        const struct culet_string_record *record = culet_record_file_record(&analysis->file, one->offset);
        if (record == NULL)
            return 0;
        one->key = last_word(culet_strings_content(record) + record->content_bytes);
        culet_record_file_passed(&analysis->file, record);
    }
    return 1;
}

const char *culet_strings_group_suffixes(struct culet_strings_analysis *analysis)
{
    struct contents contents = {NULL, 0};
    const char *failure = NULL;
    size_t count = analysis->lasting;

    /* In the order of the file, to read it once. */
    culet_strings_sort(analysis->entries, count, by_offset, NULL);
    if (!read_last_words(analysis))
        return STRINGS_DAMAGED;
    culet_strings_sort(analysis->entries, count, by_last_word, NULL);
    for (size_t first = 0, past; failure == NULL && first < count; first = past) {
        uint64_t key = analysis->entries[first].key;
        for (past = first + 1; past < count && analysis->entries[past].key == key; past++)
            continue;
        if (past > first + 1)
            failure = find_in_run(analysis, &contents, &analysis->entries[first], past - first);
    }
    if (contents.bytes != NULL)
        munmap(contents.bytes, contents.capacity);
    return failure;
}
