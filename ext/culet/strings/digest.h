/* strings/digest.h - keyed digests of strings' contents. The secret does not leave the process, so nobody else can test
 * a guessed content against a digest. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define STRINGS_DIGEST_BYTES 16

/* Bytes of a chain per byte of the string. */
#define STRINGS_LINK_BYTES 4

struct culet_strings_secret {
    uint64_t words[4];
};

/* Fills the secret with random words of the kernel. Returns 0 or an errno. */
int culet_strings_secret_make(struct culet_strings_secret *secret);

/* A 128-bit digest. */
void culet_strings_digest(const struct culet_strings_secret *secret, const void *bytes, size_t length,
                          uint64_t digest[2]);

/* A chain of links from the end of a string to its start, each made of a byte and all bytes after it. Two strings have
 * equal suffixes of n bytes exactly if their chains have equal suffixes of n links, except for one pair in 2^32.
 *
 * chain: receives STRINGS_LINK_BYTES per byte, in the order of the bytes */
void culet_strings_chain(const struct culet_strings_secret *secret, const unsigned char *bytes, size_t length,
                         unsigned char *chain);
