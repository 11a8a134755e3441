/*
 * strings/digest.h - digests of strings' contents. The secret stays in the process that makes them: nobody outside can try
 * contents against a digest.
 */
#ifndef CULET_STRINGS_DIGEST_H
#define CULET_STRINGS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define STRINGS_DIGEST_BYTES 16

/* Bytes of a chain for each byte of the string. */
#define STRINGS_LINK_BYTES 4

struct culet_strings_secret {
  uint64_t words[4];
};

/* Fills it with random words of the kernel's. Returns 0, or an error's number. */
int culet_strings_secret_make(struct culet_strings_secret *secret);

/* The digest of bytes, the same for the same bytes under one secret. Collisions: as of random numbers of 128 bits. */
void culet_strings_digest(const struct culet_strings_secret *secret, const void *bytes, size_t length, uint64_t digest[2]);

/*
 * A chain from the end of a string to its start: one link for each byte, made of that byte and all behind it. Two strings
 * end alike by n bytes exactly if their chains end alike by n links (but for one pair in four thousand million).
 *
 * chain: receives STRINGS_LINK_BYTES for each byte, in the order of the bytes
 */
void culet_strings_chain(const struct culet_strings_secret *secret, const unsigned char *bytes, size_t length, unsigned char *chain);

#endif
