#include "output/stream.h"

#include "base/buffer.h"
#include "base/message.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* There is one stream, to stdout. */
static uint32_t crc;
static uint32_t crc_table[256];

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

static void check(bool written)
{
    if (!written)
        culet_fail("cannot write the result (%s); make room, or name another folder in TMPDIR", strerror(errno));
}

static void put(const void *from, size_t length)
{
    const unsigned char *bytes = from;

    for (size_t i = 0; i < length; i++)
        crc = crc_table[(crc ^ bytes[i]) & 255] ^ (crc >> 8);
    check(fwrite(bytes, 1, length, stdout) == length);
}

void culet_stream_open(void)
{
    static char buffer[65536];

    crc = UINT32_MAX;
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    make_crc_table();
    put(CULET_STREAM_MAGIC, CULET_STREAM_MAGIC_BYTES);
}

void culet_stream_record(enum culet_record_type type, const void *bytes, size_t length)
{
    struct culet_buffer head = {0};

    culet_buffer_byte(&head, (unsigned char)type);
    culet_buffer_varint(&head, length);
    put(head.bytes, head.length);
    culet_buffer_free(&head);
    put(bytes, length);
}

void culet_stream_close(void)
{
    uint32_t sum = ~crc;
    unsigned char bytes[4];

    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(sum >> (8 * i));
    culet_stream_record(CULET_RECORD_END, bytes, sizeof bytes);
    check(fflush(stdout) == 0);
}
