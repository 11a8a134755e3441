#include "strings/scanner.h"

#include <ruby/util.h>
#include <string.h>

#include "common/buffer.h"
#include "common/dump_line.h"
#include "common/io.h"
#include "strings/digest.h"
#include "strings/record.h"
#include "strings/tables.h"

#define SMALLEST_SLOT 40
#define SITE_NAME_BYTES 1024
#define LINE_DIGITS 24               /* for the line number and separators of a site's name */
#define FULL_BYTES ((size_t)1 << 20) /* of records, then they are written */
#define MAX_LINE ((size_t)64 << 20)  /* longer lines are skipped: a compressed dump of 3 MB can hold a line of 3 GB */

struct scanner {
    struct culet_strings_secret secret;
    struct culet_string_table named; /* sites that have a record with their name */
    struct culet_buffer records;     /* not yet written */
    struct culet_buffer pending;     /* an incomplete line */
    struct culet_buffer plain;       /* texts of the line without their escapes */
    int skipping;                    /* the incomplete line is too long and is skipped */
    uint64_t lines, strings;
};

static void scanner_free(void *data)
{
    struct scanner *scanner = data;

    culet_string_table_free(&scanner->named);
    culet_buffer_free(&scanner->records);
    culet_buffer_free(&scanner->pending);
    culet_buffer_free(&scanner->plain);
    xfree(scanner);
}

static size_t scanner_bytes(const void *data)
{
    const struct scanner *scanner = data;

    return sizeof(*scanner) + scanner->named.capacity * sizeof(*scanner->named.places) + scanner->records.capacity +
           scanner->pending.capacity + scanner->plain.capacity;
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
    struct culet_string_counts *place;
    size_t length;

    if (line->file.bytes == NULL)
        return 0;
    length = line->file.length < SITE_NAME_BYTES - LINE_DIGITS ? line->file.length : SITE_NAME_BYTES - LINE_DIGITS;
    length = (size_t)snprintf(name, sizeof(name), "%.*s:%llu", (int)length, line->file.bytes,
                              (unsigned long long)line->line);
    culet_strings_digest(&scanner->secret, name, length, digest);
    if (digest[0] == 0)
        digest[0] = 1;
    place = culet_string_table_at(&scanner->named, digest[0]);
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
static uint32_t slot_of(const struct culet_dump_line *line)
{
    bool whole = line->embedded || line->memsize < SMALLEST_SLOT;
    uint64_t slot = line->slot_size > 0 ? line->slot_size : whole ? line->memsize : SMALLEST_SLOT;

    return slot < UINT32_MAX ? (uint32_t)slot : UINT32_MAX;
}

static uint32_t flags_of(const struct culet_dump_line *line, uint32_t slot)
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

/* The first reference of a shared string is its root; other references are instance variables. */
static uint64_t root_of(const struct culet_dump_line *line)
{
    struct culet_dump_line rest = *line;
    uint64_t address = 0;

    return line->shared && culet_dump_line_reference(&rest, &address) > 0 ? address : 0;
}

static void add_record(struct scanner *scanner, const struct culet_dump_line *line)
{
    uint32_t slot = slot_of(line);
    struct culet_string_record record = {.flags = flags_of(line, slot),
                                         .address = line->address,
                                         .root = root_of(line),
                                         .kind = kind_of(scanner, line),
                                         .length = line->bytesize,
                                         .held = line->memsize > slot ? line->memsize : slot,
                                         .slot = slot};

    if (line->value.bytes != NULL) { /* the dump may state another length */
        record.length = line->value.length;
        record.flags &= ~(uint32_t)STRING_LENGTH_UNKNOWN;
    }
    record.site = site_of(scanner, line);
    scanner->strings++;
    record.content_bytes = (uint32_t)line->value.length;
    record.bytes = (uint32_t)culet_string_record_bytes(line->value.length);
    append(scanner, &record, line->value.bytes != NULL ? line->value.bytes : "", line->value.length);
}

/* ---- escapes ---- */

static bool read_unit(const char *at, const char *past, unsigned long *unit)
{
    size_t digits = 0;

    if (past - at >= 6 && at[0] == '\\' && at[1] == 'u')
        *unit = ruby_scan_hex(at + 2, 4, &digits);
    return digits == 4;
}

/* The character of an escape "\uXXXX", or of a pair; half of a pair becomes "?". Returns the length; 0: no digits. */
static size_t read_character(const char *at, const char *past, unsigned long *character)
{
    unsigned long low;

    if (!read_unit(at, past, character))
        return 0;
    if (*character < 0xd800 || *character > 0xdfff)
        return 6;
    if (*character < 0xdc00 && read_unit(at + 6, past, &low) && low >= 0xdc00 && low <= 0xdfff) {
        *character = 0x10000 + ((*character - 0xd800) << 10) + (low - 0xdc00);
        return 12;
    }
    *character = '?';
    return 6;
}

/* Writes one escape to `to`. Returns its length; 0: JSON has no such escape. */
static size_t read_escape(const char *at, const char *past, char **to)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter = past - at > 1 ? memchr(letters, at[1], sizeof(letters) - 1) : NULL;
    unsigned long character;
    size_t length;

    if (letter != NULL) {
        *(*to)++ = meanings[letter - letters];
        return 2;
    }
    if ((length = read_character(at, past, &character)) > 0)
        *to += rb_uv_to_utf8(*to, character);
    return length;
}

/* Replaces a text by one without escapes, which is not longer. Returns false for an escape that JSON does not have. */
static bool make_plain(struct scanner *scanner, struct culet_dump_text *text)
{
    const char *at = text->bytes, *past;
    char *plain, *to;
    size_t length;

    if (at == NULL || memchr(at, '\\', text->length) == NULL)
        return true;
    past = at + text->length;
    scanner->plain.length = 0;
    plain = to = culet_buffer_reserve(&scanner->plain, text->length);
    if (plain == NULL)
        rb_memerror();
    for (; at < past; at += length) {
        length = *at == '\\' ? read_escape(at, past, &to) : 1;
        if (length == 0)
            return false;
        if (*at != '\\')
            *to++ = *at;
    }
    *text = (struct culet_dump_text){plain, (size_t)(to - plain)};
    return true;
}

/* ---- methods ---- */

/* Adds the record of a String. Returns whether it is a line of a dump. */
static bool take_line(struct scanner *scanner, const char *bytes, size_t length)
{
    struct culet_dump_line line;

    scanner->lines++;
    if (!culet_dump_line_read(bytes, length, "STRING", &line))
        return false;
    if (!culet_dump_text_is(&line.type, "STRING") || !line.has_memsize)
        return true;
    if (line.address == 0 || line.slot_size > UINT32_MAX || !make_plain(scanner, &line.value))
        return false;
    add_record(scanner, &line);
    return true;
}

/* Keeps the start or the continuation of an incomplete line. */
static void keep(struct scanner *scanner, const char *at, size_t length, VALUE broken)
{
    if (scanner->skipping)
        return;
    if (length <= MAX_LINE - scanner->pending.length) {
        buffer_add(&scanner->pending, at, length);
        return;
    }
    scanner->skipping = 1;
    culet_buffer_free(&scanner->pending);
    rb_ary_push(broken, ULL2NUM(scanner->lines + 1));
}

/* Ends a line, of which `at` is the whole or the last part. */
static void end_line(struct scanner *scanner, const char *at, size_t length, VALUE broken)
{
    bool whole = scanner->pending.length == 0 && !scanner->skipping;

    if (!whole)
        keep(scanner, at, length, broken);
    if (scanner->skipping)
        scanner->lines++;
    else if (!take_line(scanner, whole ? at : scanner->pending.bytes, whole ? length : scanner->pending.length))
        rb_ary_push(broken, ULL2NUM(scanner->lines));
    scanner->skipping = 0;
    scanner->pending.length = 0;
}

/* scan(block): scans a block of a dump, which may start and end within lines. Returns the numbers of the lines that are
 * damaged or too long. */
static VALUE scanner_scan(VALUE self, VALUE block)
{
    struct scanner *scanner = scanner_of(self);
    VALUE broken = rb_ary_new();
    const char *at, *past, *end;

    StringValue(block);
    at = RSTRING_PTR(block);
    past = RSTRING_END(block);
    for (; at < past && (end = memchr(at, '\n', (size_t)(past - at))) != NULL; at = end + 1)
        end_line(scanner, at, (size_t)(end - at), broken);
    keep(scanner, at, (size_t)(past - at), broken);
    RB_GC_GUARD(block);
    return broken;
}

/* rest: the text after the last line end. */
static VALUE scanner_rest(VALUE self)
{
    const struct scanner *scanner = scanner_of(self);

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
    rb_define_method(scanner, "lines", scanner_lines, 0);
    rb_define_method(scanner, "strings", scanner_strings, 0);
}
