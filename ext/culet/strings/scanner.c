#include "strings/scanner.h"

#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/io.h"
#include "strings/digest.h"
#include "strings/dump_line.h"
#include "strings/record.h"
#include "strings/tables.h"

#define MAX_CONTENT ((size_t)1 << 30) /* longer strings are stored as digests */
#define SMALLEST_SLOT 40
#define SITE_NAME_BYTES 1024
#define LINE_DIGITS 24               /* for the line number and separators of a site's name */
#define FULL_BYTES ((size_t)1 << 20) /* of records, then they are written */
#define MAX_LINE ((size_t)64 << 20)  /* longer lines are skipped: a compressed dump of 3 MB can hold a line of 3 GB */

struct scanner {
    struct culet_strings_secret secret;
    struct culet_string_sites named; /* sites that have a record with their name */
    struct culet_buffer records;     /* not yet written */
    struct culet_buffer pending;     /* an incomplete line */
    int skipping;                    /* the incomplete line is too long and is skipped */
    uint64_t lines, strings;
};

static void scanner_free(void *data)
{
    struct scanner *scanner = data;

    culet_string_sites_free(&scanner->named);
    culet_buffer_free(&scanner->records);
    culet_buffer_free(&scanner->pending);
    xfree(scanner);
}

static size_t scanner_bytes(const void *data)
{
    const struct scanner *scanner = data;

    return sizeof(*scanner) + scanner->named.capacity * sizeof(*scanner->named.places) + scanner->records.capacity +
           scanner->pending.capacity;
}

static const rb_data_type_t scanner_type = {
    .wrap_struct_name = "culet/strings scanner",
    .function = {.dfree = scanner_free, .dsize = scanner_bytes},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static struct scanner *scanner_of(VALUE self)
{
    struct scanner *scanner;

    TypedData_Get_Struct(self, struct scanner, &scanner_type, scanner);
    return scanner;
}

static VALUE scanner_allocate(VALUE class)
{
    struct scanner *scanner;
    VALUE self = TypedData_Make_Struct(class, struct scanner, &scanner_type, scanner);

    if (culet_strings_secret_make(&scanner->secret) != 0)
        rb_raise(rb_eRuntimeError, "the kernel provides no random numbers");
    return self;
}

/* ---- a record ---- */

static void buffer_add(struct culet_buffer *buffer, const void *bytes, size_t length)
{
    culet_buffer_add(buffer, bytes, length);
    if (buffer->failed)
        rb_memerror();
}

static void append(struct scanner *scanner, const struct culet_string_record *record, const void *content,
                   size_t length)
{
    static const char zeros[8];

    buffer_add(&scanner->records, record, sizeof(*record));
    buffer_add(&scanner->records, content, length);
    buffer_add(&scanner->records, zeros, record->bytes - sizeof(*record) - length);
}

static uint64_t site_of(struct scanner *scanner, const struct culet_dump_line *line)
{
    char name[SITE_NAME_BYTES];
    uint64_t digest[2];
    struct culet_string_site *place;
    size_t length;

    if (line->file.bytes == NULL)
        return 0;
    length = line->file.length < SITE_NAME_BYTES - LINE_DIGITS ? line->file.length : SITE_NAME_BYTES - LINE_DIGITS;
    length = (size_t)snprintf(name, sizeof(name), "%.*s:%llu", (int)length, line->file.bytes,
                              (unsigned long long)line->line);
    culet_strings_digest(&scanner->secret, name, length, digest);
    if (digest[0] == 0)
        digest[0] = 1;
    place = culet_string_sites_at(&scanner->named, digest[0]);
    if (place == NULL)
        rb_memerror();
    if (place->strings++ == 0) {
        struct culet_string_record record = {
            .flags = STRING_SITE, .site = digest[0], .content_bytes = (uint32_t)length};
        record.bytes = (uint32_t)culet_string_record_bytes(length);
        append(scanner, &record, name, length);
    }
    return digest[0];
}

static uint64_t kind_of(const struct scanner *scanner, const struct culet_dump_line *line)
{
    uint64_t digest[2];

    culet_strings_digest(&scanner->secret, line->encoding.bytes, line->encoding.length, digest);
    return digest[0] ^ line->class_address;
}

/* From Ruby 3.2 on slot sizes differ; a string that is not embedded is in the smallest, unless the dump says
 * otherwise. */
static uint64_t slot_of(const struct culet_dump_line *line)
{
    if (line->slot_size > 0)
        return line->slot_size;
    return line->embedded || line->memsize < SMALLEST_SLOT ? line->memsize : SMALLEST_SLOT;
}

static uint32_t flags_of(const struct culet_dump_line *line, uint64_t slot)
{
    uint32_t flags = 0;

    if (line->embedded)
        flags |= STRING_EMBEDDED;
    else if (line->shared)
        flags |= STRING_SHARED;
    else if (line->memsize <= slot)
        flags |= STRING_NOFREE;
    if (line->interned)
        flags |= STRING_INTERNED;
    if (line->frozen)
        flags |= STRING_FROZEN;
    if (!line->has_bytesize)
        flags |= STRING_LENGTH_UNKNOWN;
    /* The dump of an empty string has no value. */
    if (line->value.bytes != NULL || (line->has_bytesize && line->bytesize == 0))
        flags |= STRING_HAS_CONTENT;
    return flags;
}

static uint64_t at_most(uint64_t number, uint64_t most)
{
    return number < most ? number : most;
}

static void add_record(struct scanner *scanner, const struct culet_dump_line *line)
{
    uint64_t slot = at_most(slot_of(line), UINT32_MAX), memsize = at_most(line->memsize, STRING_MAX_BYTES), digest[2];
    struct culet_string_record record = {.flags = flags_of(line, slot),
                                         .address = line->address,
                                         .root = line->root,
                                         .kind = kind_of(scanner, line),
                                         .length = at_most(line->bytesize, STRING_MAX_BYTES),
                                         .held = memsize > slot ? memsize : slot,
                                         .slot = (uint32_t)slot};

    if (line->value.bytes != NULL) { /* the dump may state another length */
        record.length = line->value.length;
        record.flags &= ~(uint32_t)STRING_LENGTH_UNKNOWN;
    }

    record.site = site_of(scanner, line);
    scanner->strings++;
    if (line->value.length > MAX_CONTENT) {
        culet_strings_digest(&scanner->secret, line->value.bytes, line->value.length, digest);
        char with_content[STRINGS_DIGEST_BYTES + STRING_SAMPLE_BYTES];
        memcpy(with_content, digest, sizeof(digest));
        memcpy(with_content + sizeof(digest), line->value.bytes, STRING_SAMPLE_BYTES);
        record.flags |= STRING_DIGEST;
        record.content_bytes = sizeof(with_content);
        record.bytes = (uint32_t)culet_string_record_bytes(sizeof(with_content));
        append(scanner, &record, with_content, sizeof(with_content));
        return;
    }
    record.content_bytes = (uint32_t)line->value.length;
    record.bytes = (uint32_t)culet_string_record_bytes(line->value.length);
    append(scanner, &record, line->value.bytes != NULL ? line->value.bytes : "", line->value.length);
}

/* ---- methods ---- */

static void take_line(struct scanner *scanner, const char *bytes, size_t length, VALUE unknown)
{
    struct culet_dump_line line;

    scanner->lines++;
    switch (culet_dump_line_read(bytes, length, &line)) {
    case LINE_STRING:
        add_record(scanner, &line);
        break;
    case LINE_UNKNOWN:
        rb_ary_push(unknown, rb_assoc_new(ULL2NUM(scanner->lines), rb_str_new(bytes, (long)length)));
        break;
    case LINE_OTHER:
        break;
    }
}

/* Keeps the start or the continuation of an incomplete line. */
static void keep(struct scanner *scanner, const char *at, size_t length, VALUE unknown)
{
    if (scanner->skipping)
        return;
    if (length <= MAX_LINE - scanner->pending.length) {
        buffer_add(&scanner->pending, at, length);
        return;
    }
    scanner->skipping = 1;
    culet_buffer_free(&scanner->pending);
    rb_ary_push(unknown, rb_assoc_new(ULL2NUM(scanner->lines + 1), Qnil));
}

/* Handles the lines that end in a block, and keeps the rest. */
static void take_lines(struct scanner *scanner, const char *at, const char *past, VALUE unknown)
{
    const char *end;

    for (; at < past && (end = memchr(at, '\n', (size_t)(past - at))) != NULL; at = end + 1) {
        if (scanner->pending.length == 0 && !scanner->skipping) {
            take_line(scanner, at, (size_t)(end - at), unknown);
            continue;
        }
        keep(scanner, at, (size_t)(end - at), unknown);
        if (scanner->skipping)
            scanner->lines++;
        else
            take_line(scanner, scanner->pending.bytes, scanner->pending.length, unknown);
        scanner->skipping = 0;
        scanner->pending.length = 0;
    }
    keep(scanner, at, (size_t)(past - at), unknown);
}

/* scan(block): scans a block of a dump, which may start and end within lines. Returns the lines for a JSON parser: an
 * Array of [line number, line, or nil if it is too long]. */
static VALUE scanner_scan(VALUE self, VALUE block)
{
    VALUE unknown = rb_ary_new();

    StringValue(block);
    take_lines(scanner_of(self), RSTRING_PTR(block), RSTRING_END(block), unknown);
    RB_GC_GUARD(block);
    return unknown;
}

/* rest: the text after the last line end. */
static VALUE scanner_rest(VALUE self)
{
    struct scanner *scanner = scanner_of(self);

    return rb_str_new(scanner->pending.bytes, (long)scanner->pending.length);
}

/* write(descriptor, all): writes the records if there are many, or if `all`. */
static VALUE scanner_write(VALUE self, VALUE fd, VALUE all)
{
    struct scanner *scanner = scanner_of(self);
    int error;

    if (!RTEST(all) && scanner->records.length < FULL_BYTES)
        return Qnil;
    if ((error = culet_write_all(NUM2INT(fd), scanner->records.bytes, scanner->records.length)) != 0)
        rb_syserr_fail(error, NULL);
    scanner->records.length = 0;
    return Qnil;
}

static VALUE member(VALUE fields, const char *name)
{
    return rb_hash_lookup(fields, rb_str_new_cstr(name));
}

static uint64_t number_member(VALUE fields, const char *name, int *has)
{
    VALUE value = member(fields, name);
    int there = FIXNUM_P(value) && FIX2LONG(value) >= 0 && (uint64_t)FIX2LONG(value) <= CULET_DUMP_LINE_MAX;

    if (has != NULL)
        *has = there;
    return there ? (uint64_t)FIX2LONG(value) : 0;
}

static void text_member(VALUE fields, const char *name, struct culet_dump_text *text)
{
    VALUE value = member(fields, name);

    if (RB_TYPE_P(value, T_STRING))
        *text = (struct culet_dump_text){RSTRING_PTR(value), (size_t)RSTRING_LEN(value)};
}

static uint64_t address_of(VALUE text)
{
    uint64_t address = 0;

    if (RB_TYPE_P(text, T_STRING))
        culet_dump_line_address(RSTRING_PTR(text), (size_t)RSTRING_LEN(text), &address);
    return address;
}

/* add(fields): adds a parsed line, a Hash. Invalid numbers and addresses count as missing. The texts are used until the
 * method returns. */
static VALUE scanner_add(VALUE self, VALUE fields)
{
    struct culet_dump_line line = {0};
    VALUE references;

    Check_Type(fields, T_HASH);
    references = member(fields, "references");
    line.address = address_of(member(fields, "address"));
    line.class_address = address_of(member(fields, "class"));
    line.bytesize = number_member(fields, "bytesize", &line.has_bytesize);
    line.memsize = number_member(fields, "memsize", &line.has_memsize);
    line.slot_size = number_member(fields, "slot_size", NULL);
    line.line = number_member(fields, "line", NULL);
    line.embedded = RTEST(member(fields, "embedded"));
    line.shared = RTEST(member(fields, "shared"));
    line.interned = RTEST(member(fields, "fstring"));
    line.frozen = RTEST(member(fields, "frozen"));
    if (line.shared && RB_TYPE_P(references, T_ARRAY))
        line.root = address_of(rb_ary_entry(references, 0));
    text_member(fields, "value", &line.value);
    text_member(fields, "encoding", &line.encoding);
    text_member(fields, "file", &line.file);
    add_record(scanner_of(self), &line);
    RB_GC_GUARD(fields);
    return Qnil;
}

static VALUE scanner_lines(VALUE self)
{
    return ULL2NUM(scanner_of(self)->lines);
}

static VALUE scanner_strings(VALUE self)
{
    return ULL2NUM(scanner_of(self)->strings);
}

void culet_init_scanner(VALUE strings)
{
    VALUE scanner = rb_define_class_under(strings, "Scanner", rb_cObject);

    rb_define_alloc_func(scanner, scanner_allocate);
    rb_define_method(scanner, "scan", scanner_scan, 1);
    rb_define_method(scanner, "rest", scanner_rest, 0);
    rb_define_method(scanner, "write", scanner_write, 2);
    rb_define_method(scanner, "add", scanner_add, 1);
    rb_define_method(scanner, "lines", scanner_lines, 0);
    rb_define_method(scanner, "strings", scanner_strings, 0);
}
