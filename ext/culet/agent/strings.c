#include "agent/strings.h"

#include <ruby/encoding.h>

#include <string.h>

#include "common/buffer.h"
#include "common/heap_walk.h"
#include "common/io.h"
#include "common/object_bytes.h"
#include "retain/retain.h"
#include "strings/digest.h"
#include "strings/record.h"

#define FULL_BYTES ((size_t)1 << 20)      /* of records, then they are written */
#define LARGEST_CONTENT ((size_t)1 << 20) /* of one string; longer ones are reported as digests */
#define CHAINED_FROM 16                   /* shorter strings fit into any slot, so sharing them gains nothing */
#define SITE_SLOTS 4096                   /* allocation sites named last, by hash */
#define WALK_BYTES ((uint64_t)4 << 30)    /* most memory of the walk */

/* 0 where Ruby's headers do not define it: no string counts as interned. */
#ifdef HAVE_CONST_RSTRING_FSTR
#define INTERNED ((VALUE)RSTRING_FSTR)
#else
#define INTERNED ((VALUE)0)
#endif

struct writer {
    struct culet_buffer buffer; /* records that are not written yet */
    struct culet_strings_secret secret;
    int output, content;
    VALUE sites; /* ObjectSpace if it reports allocation sites, else Qnil */
    ID file, line;
    uint64_t named[SITE_SLOTS];
    uint64_t strings, bytes, most_bytes;
    const char *problem;
};

static void flush(struct writer *writer)
{
    writer->bytes += writer->buffer.length;
    if (writer->bytes > writer->most_bytes)
        writer->problem = "its strings have more text than fits into its memory: many share large buffers";
    else if (writer->buffer.failed || culet_write_all(writer->output, writer->buffer.bytes, writer->buffer.length) != 0)
        writer->problem = "no room is left for the answer";
    writer->buffer.length = 0;
}

/* ---- allocation sites ---- */

/* Adds the site's name, unless it is one of those that were named last. */
static void name_site(struct writer *writer, uint64_t site, const char *name, size_t length)
{
    struct culet_string_record record = {.flags = STRING_SITE, .site = site, .content_bytes = (uint32_t)length};
    static const char zeros[8];

    if (writer->named[site % SITE_SLOTS] == site)
        return;
    writer->named[site % SITE_SLOTS] = site;
    record.bytes = (uint32_t)culet_string_record_bytes(length);
    culet_buffer_add(&writer->buffer, &record, sizeof(record));
    culet_buffer_add(&writer->buffer, name, length);
    culet_buffer_add(&writer->buffer, zeros, record.bytes - sizeof(record) - length);
}

/* objspace allocates a String for each answer. The walk is over by then, so they are not reported. No collection frees
 * their text in the copy. */
static uint64_t site_of(struct writer *writer, VALUE string)
{
    char name[1024];
    uint64_t digest[2];
    VALUE file = rb_funcall(writer->sites, writer->file, 1, string), line;
    size_t length;

    if (!RB_TYPE_P(file, T_STRING))
        return 0;
    line = rb_funcall(writer->sites, writer->line, 1, string);
    length = (size_t)snprintf(name, sizeof(name), "%.*s:%ld", (int)RSTRING_LEN(file), RSTRING_PTR(file),
                              RB_INTEGER_TYPE_P(line) ? NUM2LONG(line) : 0L);
    if (length >= sizeof(name))
        length = sizeof(name) - 1;
    if (!OBJ_FROZEN(file))
        rb_str_resize(file, 0);
    culet_strings_digest(&writer->secret, name, length, digest);
    if (digest[0] == 0)
        digest[0] = 1;
    name_site(writer, digest[0], name, length);
    return digest[0];
}

/* ---- one string ---- */

/* The content, its chain of digests, or a digest and a sample. */
static void add_content(struct writer *writer, const struct culet_string_record *record, const unsigned char *bytes)
{
    size_t size = record->bytes - sizeof(*record), used = record->content_bytes;
    static const char zeros[8];

    if (record->flags & STRING_DIGEST) {
        uint64_t digest[2];
        culet_strings_digest(&writer->secret, bytes, (size_t)record->length, digest);
        culet_buffer_add(&writer->buffer, digest, sizeof(digest));
        culet_buffer_add(&writer->buffer, bytes, used - sizeof(digest));
    } else if (record->flags & STRING_HASHED) {
        /* A chain cannot be computed in pieces, so it is written in place. */
        unsigned char *chain = culet_buffer_reserve(&writer->buffer, used);
        if (chain != NULL)
            culet_strings_chain(&writer->secret, bytes, (size_t)record->length, chain);
    } else {
        culet_buffer_add(&writer->buffer, bytes, used);
    }
    culet_buffer_add(&writer->buffer, zeros, size - used);
}

/* Sets how the content is reported. */
static void choose_content(const struct writer *writer, struct culet_string_record *record)
{
    size_t length = (size_t)record->length;

    record->flags |= STRING_HAS_CONTENT;
    if (writer->content && length <= LARGEST_CONTENT) {
        record->content_bytes = (uint32_t)length;
    } else if (writer->content) {
        record->flags |= STRING_DIGEST;
        record->content_bytes = STRINGS_DIGEST_BYTES + STRING_SAMPLE_BYTES;
    } else if (length >= CHAINED_FROM && length <= LARGEST_CONTENT) {
        record->flags |= STRING_HASHED;
        record->content_bytes = (uint32_t)(length * STRINGS_LINK_BYTES);
    } else {
        record->flags |= STRING_HASHED | STRING_DIGEST;
        record->content_bytes = STRINGS_DIGEST_BYTES;
    }
    record->bytes = (uint32_t)culet_string_record_bytes(record->content_bytes);
}

static void write_string(struct writer *writer, VALUE string, size_t slot_bytes)
{
    struct culet_string_record record = {.address = (uint64_t)string, .slot = (uint32_t)slot_bytes};
    size_t malloced = culet_object_bytes(string, slot_bytes).malloc;
    VALUE flags = RBASIC(string)->flags;
    int own = (flags & RSTRING_NOEMBED) != 0, shared = own && (flags & CULET_ELEMENTS_SHARED) != 0;

    record.length = (uint64_t)RSTRING_LEN(string);
    record.held = slot_bytes + malloced;
    record.kind = (uint64_t)RBASIC_CLASS(string) * 256 + (uint64_t)rb_enc_get_index(string);
    if (!own)
        record.flags |= STRING_EMBEDDED;
    else if (shared)
        record.flags |= STRING_SHARED;
    else if (malloced == 0)
        record.flags |= STRING_NOFREE;
    if (flags & INTERNED)
        record.flags |= STRING_INTERNED;
    if (OBJ_FROZEN(string))
        record.flags |= STRING_FROZEN;
    if (shared)
        record.root = (uint64_t)RSTRING(string)->as.heap.aux.shared;
    if (!NIL_P(writer->sites))
        record.site = site_of(writer, string);
    choose_content(writer, &record);
    culet_buffer_add(&writer->buffer, &record, sizeof(record));
    add_content(writer, &record, (const unsigned char *)RSTRING_PTR(string));
    writer->strings++;
}

static int write_object(VALUE object, size_t slot_bytes, void *data)
{
    struct writer *writer = data;

    if (RB_BUILTIN_TYPE(object) != T_STRING)
        return 1;
    write_string(writer, object, slot_bytes);
    if (writer->buffer.length >= FULL_BYTES)
        flush(writer);
    return writer->problem == NULL;
}

/* The last bytes of the answer, padded with blanks. */
static void write_end(struct writer *writer, double fork_seconds)
{
    char end[CULET_STRINGS_END_BYTES + 1];
    int length = snprintf(end, sizeof(end), "{\"kind\":\"strings\",\"strings\":%llu,\"fork_seconds\":%.6f}",
                          (unsigned long long)writer->strings, fork_seconds);

    memset(end + length, ' ', CULET_STRINGS_END_BYTES - (size_t)length);
    culet_buffer_add(&writer->buffer, end, CULET_STRINGS_END_BYTES);
    flush(writer);
}

VALUE culet_strings_sites(void)
{
    VALUE space = rb_const_get(rb_cObject, rb_intern("ObjectSpace"));

    return rb_respond_to(space, rb_intern("allocation_sourcefile")) ? space : Qnil;
}

const char *culet_strings_write(const struct culet_strings_options *options, VALUE sites, double fork_seconds,
                                int output)
{
    const struct culet_retain_options limits = {.limit_seconds = options->limit_seconds, .limit_bytes = WALK_BYTES};
    static struct writer writer; /* a copy makes one answer */
    const char *problem;

    if (culet_strings_secret_make(&writer.secret) != 0)
        return "the kernel provides no random numbers";
    writer.output = output;
    writer.content = options->content;
    writer.most_bytes = options->most_bytes;
    writer.sites = sites;
    writer.file = rb_intern("allocation_sourcefile");
    writer.line = rb_intern("allocation_sourceline");
    problem = culet_retain_each(&limits, write_object, &writer);
    if (problem == NULL && writer.problem == NULL)
        write_end(&writer, fork_seconds);
    return problem != NULL ? problem : writer.problem;
}
