#include "strings/strings.h"

#include "common/values.h"
#include "strings/analysis.h"
#include "strings/digest.h"
#include "strings/scanner.h"

#include <inttypes.h>
#include <stdio.h>

#define SAMPLE_BYTES 200

struct analysis_call {
    struct culet_strings_analysis analysis;
    const char *path;
    size_t top;
    int samples; /* whether contents may be shown */
};

static VALUE sum_hash(const struct culet_string_sum *sum)
{
    VALUE hash = rb_hash_new();

    culet_hash_set_number(hash, "count", sum->count);
    culet_hash_set_number(hash, "asked_bytes", sum->text_bytes);
    culet_hash_set_number(hash, "slot_bytes", sum->slots);
    culet_hash_set_number(hash, "buffer_bytes", sum->buffers);
    culet_hash_set_number(hash, "slot_slack_bytes", sum->slot_slack);
    culet_hash_set_number(hash, "capacity_slack_bytes", sum->capacity_slack);
    return hash;
}

/* The first bytes of a string, or nil if they must not be shown. */
static VALUE sample(const struct analysis_call *call, const struct culet_string_record *record)
{
    const unsigned char *content = culet_strings_content(record);
    size_t length = record->content_bytes;

    if (!call->samples || !(record->flags & STRING_HAS_CONTENT) || (record->flags & STRING_HASHED))
        return Qnil;
    if (record->flags & STRING_DIGEST) {
        content += STRINGS_DIGEST_BYTES;
        length -= STRINGS_DIGEST_BYTES;
    }
    return rb_str_new((const char *)content, (long)(length < SAMPLE_BYTES ? length : SAMPLE_BYTES));
}

/* Identifies content that is not shown: eight hexadecimal digits of its digest. */
static VALUE mark(const struct analysis_call *call, const struct culet_string_record *record)
{
    uint64_t digest[2];
    char text[9];

    if (!(record->flags & STRING_HAS_CONTENT))
        return Qnil;
    culet_strings_digest(&call->analysis.secret, culet_strings_content(record), record->content_bytes, digest);
    snprintf(text, sizeof(text), "%08" PRIx32, (uint32_t)digest[0]);
    return rb_usascii_str_new_cstr(text);
}

static void fail(const char *why)
{
    rb_raise(rb_const_get(rb_path2class("Culet"), rb_intern("Error")), "%s", why);
}

static VALUE string_hash(struct analysis_call *call, uint64_t offset)
{
    const struct culet_string_record *record = culet_record_file_record(&call->analysis.file, offset);
    VALUE hash = rb_hash_new();

    if (record == NULL)
        fail(STRINGS_DAMAGED);
    culet_hash_set_number(hash, "address", record->address);
    culet_hash_set_number(hash, "bytes", record->length);
    culet_hash_set_number(hash, "held_bytes", record->held);
    culet_hash_set_number(hash, "site", record->site);
    culet_hash_set_number(hash, "flags", record->flags);
    culet_hash_set(hash, "sample", sample(call, record));
    culet_hash_set(hash, "mark", mark(call, record));
    return hash;
}

static VALUE group_hash(struct analysis_call *call, const struct culet_string_group *group)
{
    VALUE hash = rb_hash_new(), sites = rb_ary_new(), parts = rb_ary_new();

    for (size_t i = 0; i < STRINGS_GROUP_SITES && group->sites[i] != 0; i++)
        rb_ary_push(sites, rb_assoc_new(ULL2NUM(group->sites[i]), ULL2NUM(group->site_counts[i])));
    for (uint32_t i = 0; i < group->part_count; i++)
        rb_ary_push(parts, string_hash(call, group->parts[i]));
    culet_hash_set_number(hash, "count", group->count);
    culet_hash_set_number(hash, "held_bytes", group->held);
    culet_hash_set_number(hash, "gain_bytes", group->gain);
    culet_hash_set_number(hash, "flags", group->flags);
    culet_hash_set_number(hash, "frozen", group->frozen);
    culet_hash_set_number(hash, "interned", group->interned);
    culet_hash_set(hash, "kept", string_hash(call, group->offset));
    culet_hash_set(hash, "sites", sites);
    culet_hash_set(hash, "parts", parts);
    return hash;
}

static VALUE groups_hash(struct analysis_call *call, const struct culet_top_groups *top, uint64_t groups,
                         uint64_t strings, uint64_t gain)
{
    VALUE hash = rb_hash_new(), list = rb_ary_new();

    for (size_t i = 0; i < top->count; i++)
        rb_ary_push(list, group_hash(call, &top->groups[i]));
    culet_hash_set_number(hash, "groups", groups);
    culet_hash_set_number(hash, "strings", strings);
    culet_hash_set_number(hash, "gain_bytes", gain);
    culet_hash_set(hash, "largest", list);
    return hash;
}

static VALUE sites_hash(const struct culet_string_table *sites)
{
    VALUE hash = rb_hash_new();

    for (size_t i = 0; i < sites->capacity; i++) {
        const struct culet_string_counts *one = &sites->places[i];
        if (one->key == 0)
            continue;
        VALUE figures = rb_ary_new_from_args(4, ULL2NUM(one->strings), ULL2NUM(one->held), ULL2NUM(one->copies),
                                             ULL2NUM(one->gain));
        rb_hash_aset(hash, ULL2NUM(one->key), figures);
    }
    return hash;
}

/* [number of strings that share a buffer, the root or nil], largest first. */
static VALUE roots_list(struct analysis_call *call)
{
    const struct culet_string_table *roots = &call->analysis.roots;
    struct culet_top_groups top;
    VALUE list = rb_ary_new();

    if (!culet_top_groups_prepare(&top, call->top))
        rb_memerror();
    for (size_t i = 0; i < roots->capacity; i++)
        if (roots->places[i].key != 0)
            culet_top_groups_add(&top, &(struct culet_string_group){.gain = roots->places[i].strings,
                                                                    .offset = roots->places[i].record});
    culet_top_groups_sort(&top);
    for (size_t i = 0; i < top.count; i++) {
        uint64_t record = top.groups[i].offset;
        rb_ary_push(list,
                    rb_assoc_new(ULL2NUM(top.groups[i].gain), record == 0 ? Qnil : string_hash(call, record - 1)));
    }
    free(top.groups);
    return list;
}

static VALUE places_hash(const struct culet_strings_analysis *analysis)
{
    VALUE hash = rb_hash_new();

    culet_hash_set(hash, "embedded", sum_hash(&analysis->places[PLACE_EMBEDDED]));
    culet_hash_set(hash, "own", sum_hash(&analysis->places[PLACE_OWN]));
    culet_hash_set(hash, "shared", sum_hash(&analysis->places[PLACE_SHARED]));
    culet_hash_set(hash, "nofree", sum_hash(&analysis->places[PLACE_NOFREE]));
    return hash;
}

static VALUE analyse_protected(VALUE data)
{
    struct analysis_call *call = (struct analysis_call *)data;
    struct culet_strings_analysis *analysis = &call->analysis;
    const char *why = culet_strings_analyse(analysis, call->path, call->top);
    VALUE hash = rb_hash_new();

    if (why != NULL)
        fail(why);
    culet_hash_set(hash, "places", places_hash(analysis));
    culet_hash_set(hash, "interned", sum_hash(&analysis->interned));
    culet_hash_set(hash, "frozen", sum_hash(&analysis->frozen));
    culet_hash_set(hash, "untold", sum_hash(&analysis->without_content));
    culet_hash_set(hash, "roots", sum_hash(&analysis->roots_sum));
    culet_hash_set(hash, "shared_with", roots_list(call));
    culet_hash_set(hash, "duplicates",
                   groups_hash(call, &analysis->duplicates, analysis->duplicate_groups, analysis->duplicate_copies,
                               analysis->duplicate_gain));
    culet_hash_set(hash, "suffixes",
                   groups_hash(call, &analysis->suffixes, analysis->suffix_groups, analysis->suffix_strings,
                               analysis->suffix_gain));
    culet_hash_set(hash, "sites", sites_hash(&analysis->sites));
    return hash;
}

/* Culet::Strings.analyse(path, top, samples): the data for lib/culet's report on strings. path: a file of records
 * (strings/record.h); top: number of groups; samples: whether contents may be shown. Raises Culet::Error. */
static VALUE analyse(VALUE self, VALUE path, VALUE top, VALUE samples)
{
    struct analysis_call call = {.path = StringValueCStr(path), .top = NUM2SIZET(top), .samples = RTEST(samples)};
    int failure = 0;
    VALUE result = rb_protect(analyse_protected, (VALUE)&call, &failure);

    culet_strings_analysis_free(&call.analysis);
    RB_GC_GUARD(path);
    if (failure)
        rb_jump_tag(failure);
    return result;
}

/* Culet::Strings.site_names(path): a Hash with the name "FILE:LINE" of each allocation site in a file of records. */
static VALUE site_names(VALUE self, VALUE path)
{
    struct culet_record_file file;
    const struct culet_string_record *record;
    VALUE names = rb_hash_new();

    if (culet_record_file_open(&file, StringValueCStr(path)) != 0)
        return names;
    for (uint64_t offset = 0; (record = culet_record_file_record(&file, offset)) != NULL; offset += record->bytes) {
        if (record->flags & STRING_SITE)
            rb_hash_aset(names, ULL2NUM(record->site),
                         rb_utf8_str_new((const char *)culet_strings_content(record), record->content_bytes));
        culet_record_file_passed(&file, record);
    }
    culet_record_file_close(&file);
    return names;
}

void culet_init_strings(VALUE culet)
{
    VALUE strings = rb_define_module_under(culet, "Strings");

    rb_define_singleton_method(strings, "analyse", analyse, 3);
    rb_define_singleton_method(strings, "site_names", site_names, 1);
    culet_init_scanner(strings);
}
