/* strings/record.h - a String, as reported by the agent and as stored in the file that is analysed; in this machine's
 * byte order, because neither leaves the machine.
 *
 * A file is a sequence of records of `bytes` bytes: header, `content_bytes` of content, zeros up to a multiple of
 * eight. A record with STRING_SITE names an allocation site, possibly repeatedly: only `site` and the content
 * "FILE:LINE" count. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    STRING_EMBEDDED = 1 << 0, /* the bytes are in the slot */
    STRING_SHARED = 1 << 1,   /* the bytes are in the buffer of `root` */
    STRING_INTERNED = 1 << 2, /* in Ruby's table of interned strings (fstring) */
    STRING_NOFREE = 1 << 3,   /* the bytes are static, for example in a library */
    STRING_FROZEN = 1 << 4,
    STRING_HAS_CONTENT = 1 << 5, /* the record has content */
    STRING_DIGEST = 1 << 6,      /* the content is a digest of 16 bytes and a sample */
    STRING_HASHED = 1 << 7,      /* the content is secret: a digest or a chain (strings/digest.h) */
    STRING_LENGTH_UNKNOWN = 1 << 8,
    STRING_SITE = 1 << 9,
    STRING_ROOT = 1 << 10 /* other strings share its buffer; set by the analysis */
};

struct culet_string_record {
    uint32_t bytes;
    uint32_t flags;
    uint64_t address;
    uint64_t root;   /* of a shared string: address of the string that owns the buffer; else 0 */
    uint64_t kind;   /* equal for strings of the same class and encoding */
    uint64_t length; /* bytes of text */
    uint64_t held;   /* bytes of slot and buffer */
    uint64_t site;   /* 0: not known */
    uint32_t slot;   /* slot size in bytes */
    uint32_t content_bytes;
};

#define STRING_FLAGS_READ (STRING_ROOT - 1) /* all flags that a record may have */

/* more than any process can map */
#define STRING_MAX_BYTES ((uint64_t)1 << 48)

/* Bytes of a long string that follow its digest. */
#define STRING_SAMPLE_BYTES 64

/* The size of a record with some content. */
static inline size_t culet_string_record_bytes(size_t content_bytes)
{
    return (sizeof(struct culet_string_record) + content_bytes + 7) & ~(size_t)7;
}
