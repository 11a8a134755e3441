#include "output/stream.h"

#include "base/message.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* There is one stream, to stdout. */
static uint32_t crc;
static uint32_t crc_table[256];
static unsigned char pending[65536];
static size_t pending_bytes;

/* The table of the reflected polynomial 0xedb88320, as for zlib's crc32 (RFC 1952, section 8). */
static void make_crc_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? 0xedb88320u ^ (value >> 1) : value >> 1;
        crc_table[i] = value;
    }
}

static void flush(void)
{
    size_t done = 0;

    while (done < pending_bytes) {
        ssize_t wrote = write(STDOUT_FILENO, pending + done, pending_bytes - done);
        if (wrote < 0 && errno != EINTR)
            culet_fail("cannot write the result (%s); make room, or write elsewhere", strerror(errno));
        if (wrote > 0)
            done += (size_t)wrote;
    }
    pending_bytes = 0;
}

static void put(const void *from, size_t length)
{
    const unsigned char *bytes = from;

    for (size_t i = 0; i < length; i++)
        crc = crc_table[(crc ^ bytes[i]) & 255] ^ (crc >> 8);
    while (length) {
        size_t part = sizeof pending - pending_bytes;
        if (part > length)
            part = length;
        memcpy(pending + pending_bytes, bytes, part);
        pending_bytes += part;
        bytes += part;
        length -= part;
        if (pending_bytes == sizeof pending)
            flush();
    }
}

void culet_stream_open(void)
{
    crc = UINT32_MAX;
    make_crc_table();
    put(CULET_STREAM_MAGIC, CULET_STREAM_MAGIC_BYTES);
}

void culet_stream_record(enum culet_record_type type, const void *bytes, size_t length)
{
    unsigned char head[16];
    size_t at = 0;

    head[at++] = (unsigned char)type;
    uint64_t rest = length;
    for (; rest > 127; rest >>= 7)
        head[at++] = (unsigned char)(rest | 128);
    head[at++] = (unsigned char)rest;
    put(head, at);
    put(bytes, length);
}

void culet_stream_close(void)
{
    uint32_t sum = ~crc;
    unsigned char bytes[4];

    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(sum >> (8 * i));
    culet_stream_record(CULET_RECORD_END, bytes, sizeof bytes);
    flush();
}
