#include "cfi.h"

#include <string.h>

#if defined(__x86_64__)
enum { FP = 6, SP = 7, RETURN = 16 };
#elif defined(__aarch64__)
enum { FP = 29, SP = 31, RETURN = 30 };
#else
enum { FP = -1, SP = -2, RETURN = -3 };
#endif

/* ---- reading within bounds ---- */

/* A position in a module's tables. A read beyond the end fails and yields 0. */
struct reader {
    uintptr_t at, end;
    bool failed;
};

static uint64_t read_bytes(struct reader *r, unsigned bytes)
{
    uint64_t value = 0;

    if (r->failed || r->end - r->at < bytes || r->at > r->end) {
        r->failed = true;
        return 0;
    }
    memcpy(&value, (const void *)r->at, bytes); /* little-endian */
    r->at += bytes;
    return value;
}

static int64_t read_signed(struct reader *r, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;

    return (int64_t)(read_bytes(r, bytes) << shift) >> shift;
}

static uint64_t read_uleb(struct reader *r)
{
    uint64_t value = 0, byte;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        byte = read_bytes(r, 1);
        value |= (byte & 127) << shift;
        if (!(byte & 128))
            return value;
    }
    r->failed = true;
    return 0;
}

static int64_t read_sleb(struct reader *r)
{
    uint64_t value = 0, byte;

    for (unsigned shift = 0; shift < 64;) {
        byte = read_bytes(r, 1);
        value |= (byte & 127) << shift;
        shift += 7;
        if (byte & 128)
            continue;
        return byte & 64 && shift < 64 ? (int64_t)(value | ~UINT64_C(0) << shift) : (int64_t)value;
    }
    r->failed = true;
    return 0;
}

/* Encodings of pointers: the low four bits are the format, the next three what the value is relative to. */
enum { ABSOLUTE = 0x00, RELATIVE = 0x10, TO_TABLE = 0x30, OMITTED = 0xff };

static int64_t read_format(struct reader *r, uint8_t encoding)
{
    switch (encoding & 15) {
    case 0x0:
    case 0x4:
    case 0xc:
        return (int64_t)read_bytes(r, 8);
    case 0x2:
        return (int64_t)read_bytes(r, 2);
    case 0x3:
        return (int64_t)read_bytes(r, 4);
    case 0xa:
        return read_signed(r, 2);
    case 0xb:
        return read_signed(r, 4);
    default:
        r->failed = true;
        return 0;
    }
}

static uintptr_t read_pointer(struct reader *r, uint8_t encoding, uintptr_t table)
{
    uintptr_t here = r->at;
    int64_t value = read_format(r, encoding);

    switch (encoding & 0xf0) {
    case ABSOLUTE:
        return (uintptr_t)value;
    case RELATIVE:
        return here + (uintptr_t)value;
    case TO_TABLE:
        return table + (uintptr_t)value;
    default:
        r->failed = true;
        return 0;
    }
}

/* ---- descriptions ---- */

/* A common description (CIE) and one of a function (FDE). */
struct description {
    uint64_t code_alignment;
    int64_t data_alignment;
    uint64_t return_register;
    uint8_t encoding; /* of addresses in the FDE */
    bool augmented, signal;
    struct reader common, own; /* instructions */
    struct culet_function function;
};

/* A reader of the entry at an address, behind its length. Entries of 64-bit length do not occur. */
static struct reader entry_at(const struct culet_module *module, uintptr_t address)
{
    struct reader r = {address, module->end, address < module->start || address >= module->end};
    uint64_t length = read_bytes(&r, 4);

    if (r.failed || length == 0 || length >= 0xfffffff0 || length > r.end - r.at)
        r.failed = true;
    else
        r.end = r.at + length;
    return r;
}

/* The data of the augmentation "z...". */
static void read_augmentation(struct reader *r, const char *letters, uintptr_t table, struct description *d)
{
    uint64_t length = read_uleb(r);
    uintptr_t end = r->at + length;

    if (r->failed || length > r->end - r->at) {
        r->failed = true;
        return;
    }
    for (; *letters; letters++) {
        if (*letters == 'R')
            d->encoding = (uint8_t)read_bytes(r, 1);
        else if (*letters == 'S')
            d->signal = true;
        else if (*letters == 'L')
            read_bytes(r, 1);
        else if (*letters == 'P')
            read_pointer(r, (uint8_t)read_bytes(r, 1) & 0x7f, table);
        else
            break; /* 'B', a signed return address, has no data; others are behind the known ones */
    }
    r->at = end;
}

static bool read_common(const struct culet_module *module, uintptr_t address, struct description *d)
{
    struct reader r = entry_at(module, address);
    char letters[8] = "";

    if (read_bytes(&r, 4) != 0 || r.failed)
        return false;
    uint64_t version = read_bytes(&r, 1);
    for (unsigned i = 0; i < sizeof letters && (letters[i] = (char)read_bytes(&r, 1)); i++)
        if (i + 1 == sizeof letters)
            return false;
    d->code_alignment = read_uleb(&r);
    d->data_alignment = read_sleb(&r);
    d->return_register = version == 1 ? read_bytes(&r, 1) : read_uleb(&r);
    d->encoding = ABSOLUTE;
    d->augmented = letters[0] == 'z';
    if (d->augmented)
        read_augmentation(&r, letters + 1, module->table, d);
    d->common = r;
    return !r.failed && (version == 1 || version == 3) && (d->augmented || !letters[0]);
}

static bool read_description(const struct culet_module *module, uintptr_t address, struct description *d)
{
    struct reader r = entry_at(module, address);
    uintptr_t here = r.at;
    uint64_t distance = read_bytes(&r, 4);

    *d = (struct description){0};
    if (r.failed || !distance || distance > here - module->start || !read_common(module, here - distance, d))
        return false;
    d->function.start = read_pointer(&r, d->encoding, module->table);
    d->function.end = d->function.start + (uintptr_t)read_format(&r, d->encoding & 15);
    if (d->augmented) {
        uint64_t length = read_uleb(&r);
        if (length > r.end - r.at)
            return false;
        r.at += length;
    }
    d->own = r;
    return !r.failed;
}

/* ---- instructions ---- */

enum { SAVED_AT_OFFSET, SAME, NOT_KNOWN, UNDEFINED };

struct saved {
    uint8_t how;
    int64_t offset; /* from the frame address, in bytes */
};

struct state {
    bool cfa_known;
    uint64_t cfa_register;
    int64_t cfa_offset;
    struct saved fp, back; /* the frame pointer and the return address */
};

#define REMEMBERED 8

struct program {
    const struct description *d;
    struct state now, initial, remembered[REMEMBERED];
    unsigned depth;
    uintptr_t address;
};

static void save(struct program *p, uint64_t number, uint8_t how, int64_t offset)
{
    if (number == (uint64_t)FP)
        p->now.fp = (struct saved){how, offset};
    if (number == p->d->return_register)
        p->now.back = (struct saved){how, offset};
}

static void restore(struct program *p, uint64_t number)
{
    if (number == (uint64_t)FP)
        p->now.fp = p->initial.fp;
    if (number == p->d->return_register)
        p->now.back = p->initial.back;
}

static void define(struct program *p, uint64_t number, int64_t offset)
{
    p->now.cfa_known = true;
    p->now.cfa_register = number;
    p->now.cfa_offset = offset;
}

static void skip_block(struct reader *r)
{
    uint64_t length = read_uleb(r);

    if (length > r->end - r->at)
        r->failed = true;
    else
        r->at += length;
}

/* An instruction with its opcode in the low six bits. False: it is not known. */
static bool run_extended(struct program *p, struct reader *r, unsigned opcode)
{
    uint64_t number;

    switch (opcode) {
    case 0x00: /* nop */
    case 0x2d: /* AArch64: the return address is signed from here on; the bits are stripped anyway */
        return true;
    case 0x01: /* set_loc */
        p->address = read_pointer(r, p->d->encoding, 0);
        return true;
    case 0x02: /* advance_loc1, 2, 4 */
    case 0x03:
    case 0x04:
        p->address += read_bytes(r, 1u << (opcode - 2)) * p->d->code_alignment;
        return true;
    case 0x05: /* offset_extended */
        number = read_uleb(r);
        save(p, number, SAVED_AT_OFFSET, (int64_t)read_uleb(r) * p->d->data_alignment);
        return true;
    case 0x06: /* restore_extended */
        restore(p, read_uleb(r));
        return true;
    case 0x07: /* undefined */
        save(p, read_uleb(r), UNDEFINED, 0);
        return true;
    case 0x08: /* same_value */
        save(p, read_uleb(r), SAME, 0);
        return true;
    case 0x09: /* register */
        save(p, read_uleb(r), NOT_KNOWN, 0);
        read_uleb(r);
        return true;
    case 0x0a: /* remember_state */
        if (p->depth == REMEMBERED)
            return false;
        p->remembered[p->depth++] = p->now;
        return true;
    case 0x0b: /* restore_state */
        if (!p->depth)
            return false;
        p->now = p->remembered[--p->depth];
        return true;
    case 0x0c: /* def_cfa */
        number = read_uleb(r);
        define(p, number, (int64_t)read_uleb(r));
        return true;
    case 0x0d: /* def_cfa_register */
        p->now.cfa_register = read_uleb(r);
        return true;
    case 0x0e: /* def_cfa_offset */
        p->now.cfa_offset = (int64_t)read_uleb(r);
        return true;
    case 0x0f: /* def_cfa_expression */
        skip_block(r);
        p->now.cfa_known = false;
        return true;
    case 0x10: /* expression */
    case 0x16: /* val_expression */
        save(p, read_uleb(r), NOT_KNOWN, 0);
        skip_block(r);
        return true;
    case 0x11: /* offset_extended_sf */
        number = read_uleb(r);
        save(p, number, SAVED_AT_OFFSET, read_sleb(r) * p->d->data_alignment);
        return true;
    case 0x12: /* def_cfa_sf */
        number = read_uleb(r);
        define(p, number, read_sleb(r) * p->d->data_alignment);
        return true;
    case 0x13: /* def_cfa_offset_sf */
        p->now.cfa_offset = read_sleb(r) * p->d->data_alignment;
        return true;
    case 0x14: /* val_offset, val_offset_sf */
    case 0x15:
        save(p, read_uleb(r), NOT_KNOWN, 0);
        read_uleb(r);
        return true;
    case 0x2e: /* GNU_args_size */
        read_uleb(r);
        return true;
    default:
        return false;
    }
}

/* Up to the address. False: an instruction is not known. */
static bool run(struct program *p, struct reader r, uintptr_t until)
{
    while (!r.failed && r.at < r.end && p->address <= until) {
        unsigned opcode = (unsigned)read_bytes(&r, 1), low = opcode & 63;
        switch (opcode >> 6) {
        case 1: /* advance_loc */
            p->address += low * p->d->code_alignment;
            break;
        case 2: /* offset */
            save(p, low, SAVED_AT_OFFSET, (int64_t)read_uleb(&r) * p->d->data_alignment);
            break;
        case 3: /* restore */
            restore(p, low);
            break;
        default:
            if (!run_extended(p, &r, low))
                return false;
        }
    }
    return !r.failed;
}

/* In words of 8 bytes; CULET_NOT_SAVED if the offset has none. */
static int16_t words(int64_t offset)
{
    return offset % 8 == 0 && offset / 8 > INT16_MIN && offset / 8 <= INT16_MAX ? (int16_t)(offset / 8)
                                                                                : CULET_NOT_SAVED;
}

static struct culet_rule rule_of(const struct program *p)
{
    const struct state *s = &p->now;
    struct culet_rule rule = {.kind = CULET_RULE_UNKNOWN};

    if (p->d->signal)
        return (struct culet_rule){.kind = CULET_RULE_SIGNAL};
    if (s->back.how == UNDEFINED)
        return (struct culet_rule){.kind = CULET_RULE_OUTER};
    if (!s->cfa_known || (s->cfa_register != (uint64_t)SP && s->cfa_register != (uint64_t)FP))
        return rule;
    rule.from_fp = s->cfa_register == (uint64_t)FP;
    rule.cfa_offset = words(s->cfa_offset);
    rule.return_offset = s->back.how == SAVED_AT_OFFSET ? words(s->back.offset) : CULET_NOT_SAVED;
    rule.fp_offset = s->fp.how == SAVED_AT_OFFSET ? words(s->fp.offset) : CULET_NOT_SAVED;
    if (rule.cfa_offset != CULET_NOT_SAVED && s->back.how != NOT_KNOWN && s->fp.how != NOT_KNOWN)
        rule.kind = CULET_RULE_FRAME;
    return rule;
}

/* ---- the search table ---- */

/* The description of the last function that starts at or before the address; 0 if there is none. */
static uintptr_t search(const struct culet_module *module, uintptr_t address)
{
    struct reader r = {module->table, module->end, module->table < module->start || module->table >= module->end};
    uint64_t head = read_bytes(&r, 4);
    uint8_t frame = (uint8_t)(head >> 8), count_format = (uint8_t)(head >> 16), format = (uint8_t)(head >> 24);

    /* Version 1; a table of pairs of signed 32-bit values relative to the header. */
    if (r.failed || (head & 255) != 1 || format != 0x3b || count_format == OMITTED)
        return 0;
    if (frame != OMITTED)
        read_pointer(&r, frame, module->table);
    uint64_t count = (uint64_t)read_format(&r, count_format), low = 0, high = count;
    if (r.failed || count > (r.end - r.at) / 8)
        return 0;
    const char *pairs = (const char *)r.at;
    int32_t pair[2];
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        memcpy(pair, pairs + 8 * middle, sizeof pair);
        if (module->table + (uintptr_t)(intptr_t)pair[0] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return 0;
    memcpy(pair, pairs + 8 * (low - 1), sizeof pair);
    return module->table + (uintptr_t)(intptr_t)pair[1];
}

bool culet_cfi_find(const struct culet_module *module, uintptr_t address, struct culet_rule *rule,
                    struct culet_function *function)
{
    uintptr_t entry = module->table ? search(module, address) : 0;
    struct description d;

    if (!entry || !read_description(module, entry, &d) || address < d.function.start || address >= d.function.end)
        return false;
    struct program p = {.d = &d, .address = 0};
    p.now.fp.how = p.now.back.how = SAME;
    bool known = run(&p, d.common, UINTPTR_MAX);
    p.initial = p.now;
    p.address = d.function.start;
    known = known && run(&p, d.own, address);
    *rule = known ? rule_of(&p) : (struct culet_rule){.kind = d.signal ? CULET_RULE_SIGNAL : CULET_RULE_UNKNOWN};
    *function = d.function;
    return true;
}
