#include "cfi.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
enum { FP = 6, SP = 7, RETURN = 16 };
#elif defined(__aarch64__)
enum { FP = 29, SP = 31, RETURN = 30 };
#else
enum { FP = -1, SP = -2, RETURN = -3 };
#endif

/* ---- reading within bounds ---- */

/* A position in a module's tables. A read beyond the end or from a gap fails and yields 0. */
struct reader {
    uintptr_t at, end;
    struct culet_readable *readable;
    bool failed;
};

static struct reader reader_at(const struct culet_module *module, uintptr_t address, struct culet_readable *readable)
{
    return (struct reader){address, module->end, readable, address < module->start || address >= module->end};
}

static uint64_t read_bytes(struct reader *r, unsigned bytes)
{
    uint64_t value = 0;

    /* Little-endian. */
    if (r->failed || r->end - r->at < bytes || !culet_readable_copy(r->readable, &value, r->at, bytes)) {
        r->failed = true;
        return 0;
    }
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

/* The largest functions need some ten KiB. */
#define ENTRY_LIMIT (1u << 20)

/* A reader of the entry at an address, behind its length. Entries of 64-bit length do not occur. */
static struct reader entry_at(const struct culet_module *module, uintptr_t address, struct culet_readable *readable)
{
    struct reader r = reader_at(module, address, readable);
    uint64_t length = read_bytes(&r, 4);

    if (r.failed || length == 0 || length > ENTRY_LIMIT || length > r.end - r.at)
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
        else if (*letters != 'B' && *letters != 'G') /* AArch64: signed return addresses, tagged stacks; no data */
            break;
    }
    r->at = end;
}

static bool read_common(const struct culet_module *module, uintptr_t address, struct description *d,
                        struct culet_readable *readable)
{
    struct reader r = entry_at(module, address, readable);
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

static bool read_description(const struct culet_module *module, uintptr_t address, struct description *d,
                             struct culet_readable *readable)
{
    struct reader r = entry_at(module, address, readable);
    uintptr_t here = r.at;
    uint64_t distance = read_bytes(&r, 4);

    *d = (struct description){0};
    if (r.failed || !distance || distance > here - module->start || !read_common(module, here - distance, d, readable))
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

enum { SAVED_AT_OFFSET, SAVED_AT_FP, SAME, NOT_KNOWN, UNDEFINED };

struct saved {
    uint8_t how;
    int64_t offset; /* from the frame address, in bytes */
};

struct state {
    bool cfa_known, cfa_stored;
    uint64_t cfa_register, cfa_added;
    int64_t cfa_offset;
    struct saved fp, back; /* the frame pointer and the return address */
};

#define REMEMBERED 8

struct program {
    const struct description *d;
    struct state now, initial, remembered[REMEMBERED];
    unsigned depth;
    uintptr_t address, until;
};

/* The values come from the tables, so the product may be anything. */
static int64_t scaled(uint64_t value, int64_t factor)
{
    return (int64_t)(value * (uint64_t)factor);
}

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
    p->now.cfa_stored = false;
    p->now.cfa_register = number;
    p->now.cfa_offset = offset;
}

/* ---- expressions ---- */

enum {
    OP_DEREF = 0x06,
    OP_AND = 0x1a,
    OP_PLUS = 0x22,
    OP_PLUS_CONSTANT = 0x23,
    OP_SHL = 0x24,
    OP_GE = 0x2a,
    OP_LIT0 = 0x30,
    OP_REGISTER0 = 0x70, /* a register and an offset */
};

/* A reader of an expression, which `r` skips. */
static struct reader read_block(struct reader *r)
{
    uint64_t length = read_uleb(r);
    struct reader block = *r;

    if (r->failed || length > r->end - r->at) {
        block.failed = r->failed = true;
        return block;
    }
    block.end = r->at += length;
    return block;
}

static bool next_is(struct reader *r, unsigned opcode)
{
    return read_bytes(r, 1) == opcode && !r->failed;
}

/* The entries of the procedure linkage table push one word at a certain instruction of 16 bytes:
 * sp + offset + ((pc & 15) >= that << 3). */
static bool read_linkage(struct program *p, struct reader r, int64_t offset)
{
    if (!next_is(&r, OP_REGISTER0 + RETURN) || read_sleb(&r) != 0 || !next_is(&r, OP_LIT0 + 15) || !next_is(&r, OP_AND))
        return false;
    uint64_t pushed = read_bytes(&r, 1) - OP_LIT0;
    if (pushed > 15 || !next_is(&r, OP_GE) || !next_is(&r, OP_LIT0 + 3) || !next_is(&r, OP_SHL) ||
        !next_is(&r, OP_PLUS) || r.at != r.end)
        return false;
    define(p, SP, (int64_t)((uint64_t)offset + ((p->until & 15) >= pushed ? 8 : 0)));
    return true;
}

/* A register and an offset; or the value stored there, and what is added to that. */
static void define_by_expression(struct program *p, struct reader r)
{
    unsigned opcode = (unsigned)read_bytes(&r, 1);
    int64_t offset = read_sleb(&r);

    p->now.cfa_known = false;
    if (r.failed || (opcode != OP_REGISTER0 + FP && opcode != OP_REGISTER0 + SP))
        return;
    if (opcode == OP_REGISTER0 + SP && read_linkage(p, r, offset))
        return;
    bool stored = r.at < r.end && next_is(&r, OP_DEREF);
    uint64_t added = stored && r.at < r.end && next_is(&r, OP_PLUS_CONSTANT) ? read_uleb(&r) : 0;
    if (r.failed || r.at != r.end)
        return;
    define(p, opcode - OP_REGISTER0, offset);
    p->now.cfa_stored = stored;
    p->now.cfa_added = added;
}

/* Where a register is saved: relative to the frame pointer, as in functions that realign the stack. */
static void save_by_expression(struct program *p, uint64_t number, struct reader r)
{
    bool from_fp = next_is(&r, OP_REGISTER0 + FP);
    int64_t offset = read_sleb(&r);

    save(p, number, from_fp && !r.failed && r.at == r.end ? SAVED_AT_FP : NOT_KNOWN, offset);
}

/* ---- one instruction ---- */

/* An instruction with its opcode in the low six bits. False: it is not known. */
static bool run_extended(struct program *p, struct reader *r, unsigned opcode)
{
    uint64_t number;

    switch (opcode) {
    case 0x00: /* nop */
    case 0x2c: /* AArch64: the return address is signed from here on; the bits are stripped anyway */
    case 0x2d:
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
        save(p, number, SAVED_AT_OFFSET, scaled(read_uleb(r), p->d->data_alignment));
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
        define_by_expression(p, read_block(r));
        return true;
    case 0x10: /* expression */
        number = read_uleb(r);
        save_by_expression(p, number, read_block(r));
        return true;
    case 0x16: /* val_expression */
        save(p, read_uleb(r), NOT_KNOWN, 0);
        read_block(r);
        return true;
    case 0x11: /* offset_extended_sf */
        number = read_uleb(r);
        save(p, number, SAVED_AT_OFFSET, scaled((uint64_t)read_sleb(r), p->d->data_alignment));
        return true;
    case 0x12: /* def_cfa_sf */
        number = read_uleb(r);
        define(p, number, scaled((uint64_t)read_sleb(r), p->d->data_alignment));
        return true;
    case 0x13: /* def_cfa_offset_sf */
        p->now.cfa_offset = scaled((uint64_t)read_sleb(r), p->d->data_alignment);
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
            save(p, low, SAVED_AT_OFFSET, scaled(read_uleb(&r), p->d->data_alignment));
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

/* In words of 8 bytes, for a field of some bits. False: there are none, or too many. */
static bool words(int64_t *offset, unsigned bits)
{
    bool fits =
        *offset % 8 == 0 && *offset / 8 >= -((int64_t)1 << (bits - 1)) && *offset / 8 < (int64_t)1 << (bits - 1);

    *offset /= 8;
    return fits;
}

static struct culet_rule rule_of(const struct program *p)
{
    const struct state *s = &p->now;
    bool back_saved = s->back.how == SAVED_AT_OFFSET, fp_saved = s->fp.how == SAVED_AT_OFFSET, fp_at_fp = false;
    int64_t cfa = s->cfa_offset, back = back_saved ? s->back.offset : 0, fp = s->fp.offset;
    uint64_t added = s->cfa_stored ? s->cfa_added : 0;

    if (p->d->signal)
        return (struct culet_rule){.kind = CULET_RULE_SIGNAL};
    if (s->back.how == UNDEFINED)
        return (struct culet_rule){.kind = CULET_RULE_OUTER};
    if (!s->cfa_known || (s->cfa_register != (uint64_t)SP && s->cfa_register != (uint64_t)FP) || !words(&cfa, 21) ||
        !words(&back, 21) || (added != 0 && added != 8) || (s->back.how != SAME && back == 0))
        return (struct culet_rule){.kind = CULET_RULE_UNKNOWN};
    if (s->fp.how == SAVED_AT_FP)
        fp_saved = fp_at_fp = words(&fp, 14);
    else if (fp_saved)
        fp_saved = words(&fp, 21) && fp - back >= -(1 << 13) && fp - back < 1 << 13;
    bool fp_same = s->fp.how == SAME || s->fp.how == UNDEFINED;
    return (struct culet_rule){
        .kind = s->cfa_stored || fp_at_fp || !back || !(fp_saved || fp_same) ? CULET_RULE_SPECIAL : CULET_RULE_FRAME,
        .from_fp = s->cfa_register == (uint64_t)FP,
        .stored = s->cfa_stored,
        .added = added != 0,
        .fp_saved = fp_saved,
        .fp_at_fp = fp_at_fp,
        .cfa_offset = cfa,
        .return_offset = back,
        .fp_offset = !fp_saved  ? !fp_same
                     : fp_at_fp ? fp
                                : fp - back,
    };
}

/* ---- the search table ---- */

/* .eh_frame_hdr: pairs of a function's first address and the address of its description, both relative to the table and
 * sorted. */
struct table {
    uintptr_t at, pairs;
    uint64_t count;
    struct culet_readable *readable;
};

struct pair {
    uintptr_t function, description;
};

static bool read_table(const struct culet_module *module, struct table *table, struct culet_readable *readable)
{
    struct reader r = reader_at(module, module->table, readable);
    uint64_t head = read_bytes(&r, 4);
    uint8_t frame = (uint8_t)(head >> 8), count_format = (uint8_t)(head >> 16), format = (uint8_t)(head >> 24);

    /* Version 1; a table of pairs of signed 32-bit values relative to the header. */
    if (r.failed || (head & 255) != 1 || format != 0x3b || count_format == OMITTED)
        return false;
    if (frame != OMITTED)
        read_pointer(&r, frame, module->table);
    uint64_t count = (uint64_t)read_format(&r, count_format);
    *table = (struct table){module->table, r.at, count, readable};
    return !r.failed && count <= (r.end - r.at) / 8;
}

static bool read_pair(const struct table *table, uint64_t index, struct pair *pair)
{
    int32_t offset[2];

    if (!culet_readable_copy(table->readable, offset, table->pairs + 8 * index, sizeof offset))
        return false;
    *pair = (struct pair){table->at + (uintptr_t)(intptr_t)offset[0], table->at + (uintptr_t)(intptr_t)offset[1]};
    return true;
}

/* The description of the last function that starts at or before the address; 0 if there is none. */
static uintptr_t search(const struct culet_module *module, uintptr_t address, struct culet_readable *readable)
{
    struct table table;
    struct pair pair;

    if (!read_table(module, &table, readable))
        return 0;
    uintptr_t description = 0;
    for (uint64_t low = 0, high = table.count; low < high;) {
        uint64_t middle = (low + high) / 2;
        if (!read_pair(&table, middle, &pair))
            return 0;
        if (pair.function <= address) {
            description = pair.description;
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return description;
}

bool culet_cfi_find(const struct culet_module *module, uintptr_t address, struct culet_rule *rule,
                    struct culet_function *function, struct culet_readable *readable)
{
    uintptr_t entry = module->table ? search(module, address, readable) : 0;
    struct description d;

    if (!entry || !read_description(module, entry, &d, readable) || address < d.function.start ||
        address >= d.function.end)
        return false;
    struct program p = {.d = &d, .until = address};
    p.now.fp.how = p.now.back.how = SAME;
    bool known = run(&p, d.common, UINTPTR_MAX);
    p.initial = p.now;
    p.address = d.function.start;
    known = known && run(&p, d.own, address);
    *rule = known ? rule_of(&p) : (struct culet_rule){.kind = d.signal ? CULET_RULE_SIGNAL : CULET_RULE_UNKNOWN};
    *function = d.function;
    return true;
}

/* ---- identities of modules ---- */

#define IDENTITY_BYTES 32 /* of a build id, at most */
#define PLACES 64         /* a power of two */

/* Where the build ids of modules are: the offset from the start, and the length in the low byte. A key is combined with its
 * place, since a thread may read an entry while another one writes it. The bytes there are read each time: if another
 * module with the same bounds has come, they are not the former module's id. */
static struct {
    _Atomic uint64_t key, place;
} places[PLACES];

static uint64_t mix(uint64_t sum, uint64_t fact)
{
    sum = (sum ^ fact) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
}

/* 0: the module has no build id. */
static uint64_t find_place(const struct culet_module *module, uint64_t bounds, struct culet_readable *readable)
{
    size_t at = bounds & (PLACES - 1);
    uint64_t place = atomic_load_explicit(&places[at].place, memory_order_relaxed);
    uintptr_t id;

    if (atomic_load_explicit(&places[at].key, memory_order_relaxed) == (bounds ^ place))
        return place;
    size_t length = culet_module_build_id(module, &id, readable);
    if (!length)
        return 0;
    place = (uint64_t)(id - module->start) << 8 | (length < IDENTITY_BYTES ? length : IDENTITY_BYTES);
    atomic_store_explicit(&places[at].place, place, memory_order_relaxed);
    atomic_store_explicit(&places[at].key, bounds ^ place, memory_order_relaxed);
    return place;
}

static bool read_build_id(const struct culet_module *module, uint64_t bounds, uint64_t *facts,
                          struct culet_readable *readable)
{
    uint64_t place = find_place(module, bounds, readable);

    return place && (place >> 8) + (place & 255) <= module->end - module->start &&
           culet_readable_copy(readable, facts, module->start + (place >> 8), place & 255);
}

/* Without a build id: two libraries with as many functions, the last of which is at the same place, are taken for one. */
uint64_t culet_cfi_identity(const struct culet_module *module, struct culet_readable *readable)
{
    uint64_t facts[IDENTITY_BYTES / 8] = {0}, identity = mix(mix(mix(0, module->start), module->end), module->table);
    struct pair last = {0, 0};
    struct table table = {0};

    if (!read_build_id(module, identity, facts, readable) && module->table && read_table(module, &table, readable) &&
        table.count && read_pair(&table, table.count - 1, &last)) {
        facts[0] = table.count;
        facts[1] = last.function;
        facts[2] = last.description;
    }
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        identity = mix(identity, facts[i]);
    return identity;
}
