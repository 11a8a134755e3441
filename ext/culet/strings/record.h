/*
 * strings/record.h - one String, as the agent tells it and as it lies in the file that is analysed. Both are of this
 * machine's byte order: neither leaves it, nor outlives the report.
 *
 * A file is a sequence of records, each of `bytes` bytes: the header, then `content_bytes` of content, then zeros up to a
 * multiple of eight. A record with STRING_SITE is the name of an allocation site, told once or more: `site` and content
 * "FILE:LINE" alone count.
 */
#ifndef CULET_STRINGS_RECORD_H
#define CULET_STRINGS_RECORD_H

#include <stddef.h>
#include <stdint.h>

enum {
  STRING_EMBEDDED = 1 << 0, /* its bytes lie in its slot */
  STRING_SHARED = 1 << 1,   /* they lie in the buffer of `root` */
  STRING_INTERNED = 1 << 2, /* it is the one of its content in Ruby's table (fstring) */
  STRING_NOFREE = 1 << 3,   /* they lie in a library or elsewhere, and are nobody's to free */
  STRING_FROZEN = 1 << 4,
  STRING_HAS_CONTENT = 1 << 5,     /* there is content */
  STRING_DIGEST = 1 << 6,   /* the content is a digest of 16 bytes, and then what may be shown of the string */
  STRING_HASHED = 1 << 7,   /* the content is not to be shown: a digest, or a chain of digests (strings/digest.h) */
  STRING_LENGTH_UNKNOWN = 1 << 8,
  STRING_SITE = 1 << 9,
  STRING_ROOT = 1 << 10 /* others are shared with it; found by the analysis */
};

struct culet_string_record {
  uint32_t bytes;
  uint32_t flags;
  uint64_t address;
  uint64_t root;     /* of a shared one: the address of the string that owns the buffer; else 0 */
  uint64_t kind;     /* equal for strings of one class and encoding */
  uint64_t length;   /* bytes of text: what the program asked for */
  uint64_t held;     /* bytes of slot and buffer */
  uint64_t site;     /* 0: not known */
  uint32_t slot;     /* bytes of its slot */
  uint32_t content_bytes;
};

#define STRING_FLAGS_READ (STRING_ROOT - 1) /* all that a record may bear */

/* More bytes than any process can map: no string is longer, or holds more. */
#define STRING_MAX_BYTES ((uint64_t)1 << 48)

/* What of a long string may be shown when only a digest of it is told. */
#define STRING_SAMPLE_BYTES 64

/* The size of a record with so much content. */
static inline size_t
culet_string_record_bytes(size_t content_bytes)
{
  return (sizeof(struct culet_string_record) + content_bytes + 7) & ~(size_t)7;
}

#endif
