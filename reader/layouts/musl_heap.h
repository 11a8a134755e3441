/* musl_heap.h - musl's heap (mallocng; musl 1.2.1 and later), for readers of another process's memory.
 *
 *   context   one, in the C library's data: a secret number, and the list of areas
 *   area      4096 bytes: the secret, the next area, a count, and that many metas
 *   meta      describes one group; free if it has no group
 *   group     a pointer to its meta, one byte of state, then slots of one length. It is a mapping of its own, lies in a
 *             slot of another group, or in what the loader found unused in a library's last page.
 *   slot      a block, or a group. Its last four bytes belong to the next one's header. */
#pragma once

#include <stdint.h>

/* Offsets and lengths in bytes. */
#define MUSL_CONTEXT_SECRET 0u
#define MUSL_CONTEXT_INITIALIZED 8u /* 32 bits: 1 */
#define MUSL_CONTEXT_FIRST_AREA 56u
#define MUSL_CONTEXT_LAST_AREA 64u
#define MUSL_CONTEXT_SLOTS 464u /* slots of each class, 8 bytes each */
#define MUSL_CONTEXT_BYTES 928u
/* Where the page size is no constant, it comes after the secret and shifts the rest. */
#define MUSL_CONTEXT_SHIFT 8u

#define MUSL_AREA_SECRET 0u
#define MUSL_AREA_NEXT 8u
#define MUSL_AREA_COUNT 16u /* 32 bits */
#define MUSL_AREA_METAS 24u
#define MUSL_AREA_BYTES 4096u

#define MUSL_META_GROUP 16u
#define MUSL_META_AVAILABLE 24u /* 32 bits: slots that were never used, or may be used again */
#define MUSL_META_FREED 28u     /* 32 bits: slots that were freed, or are not in use yet */
#define MUSL_META_NUMBERS 32u   /* the bit fields below */
#define MUSL_META_BYTES 40u
#define MUSL_AREA_META_COUNT ((MUSL_AREA_BYTES - MUSL_AREA_METAS) / MUSL_META_BYTES)

#define MUSL_META_LAST_SLOT(numbers) ((unsigned)((numbers)&31))
#define MUSL_META_FREEABLE(numbers) ((numbers) >> 5 & 1) /* 0: what the loader found unused */
#define MUSL_META_CLASS(numbers) ((unsigned)((numbers) >> 6 & 63))
#define MUSL_META_MAPPED_PAGES(numbers) ((numbers) >> 12) /* of 4096 bytes; 0: the group has no mapping of its own */

#define MUSL_GROUP_HEADER_BYTES 16u
#define MUSL_CLASSES 48u
#define MUSL_CLASS_NONE 63u /* of a block with a mapping of its own */

/* Slot lengths of the classes in units of 16 bytes. */
static const uint16_t musl_class_units[MUSL_CLASSES] = {
    1,   2,   3,   4,    5,    6,    7,    8,    9,    10,   12,   15,   18,   20,   25,   31,
    36,  42,  50,  63,   72,   84,   102,  127,  146,  170,  204,  255,  292,  340,  409,  511,
    584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191};
