/* Both digests multiply 64-bit words to 128 bits and fold the halves, with secret words added to both factors, as the
 * hash functions of the wyhash family do (Wang Yi 2019). */
#include "strings/digest.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define BLOCK 8

static uint64_t fold(uint64_t one, uint64_t other)
{
    unsigned __int128 product = (unsigned __int128)one * other;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

int culet_strings_secret_make(struct culet_strings_secret *secret)
{
    ssize_t got;

    do
        got = getrandom(secret, sizeof(*secret), 0);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(*secret))
        return got < 0 ? errno : EIO;
    /* odd, hence not zero */
    for (size_t i = 0; i < 4; i++)
        secret->words[i] |= 1;
    return 0;
}

void culet_strings_digest(const struct culet_strings_secret *secret, const void *bytes, size_t length,
                          uint64_t digest[2])
{
    const unsigned char *at = bytes;
    uint64_t one = secret->words[0] ^ length, other = secret->words[1] + length;

    for (size_t left = length; left > 0;) {
        size_t part = left < BLOCK ? left : BLOCK;
        uint64_t word = 0;
        memcpy(&word, at, part);
        one = fold(one ^ word, secret->words[2]) + secret->words[3];
        other = fold(other + word, secret->words[3]) ^ word;
        at += part;
        left -= part;
    }
    digest[0] = fold(one ^ secret->words[1], other | 1);
    digest[1] = fold(other ^ secret->words[0], one | 1);
}

void culet_strings_chain(const struct culet_strings_secret *secret, const unsigned char *bytes, size_t length,
                         unsigned char *chain)
{
    uint64_t state = secret->words[0];

    while (length-- > 0) {
        state = fold(state ^ ((uint64_t)bytes[length] + 1) * secret->words[1], secret->words[2]) + secret->words[3];
        uint32_t link = (uint32_t)(fold(state, secret->words[3]) >> 32);
        memcpy(chain + length * STRINGS_LINK_BYTES, &link, sizeof(link));
    }
}
