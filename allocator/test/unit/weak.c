/* weak.c - a model of the bias on weakly ordered processors, explored exhaustively.
 *
 * Entering and leaving the heap, changing its biased thread, freeing and claiming blocks (bias.c, api.c, bin.c) and
 * waking the scavenger (wakeup.c) are written below as programs of a small machine, with the memory orders of the code
 * (memory_orders.h). The explorer tries every interleaving, and every value that the memory model lets a load return:
 *
 *   - A location is the list of all values stored to it. A load returns any value that is not older than what the thread
 *     has seen of the location. This covers store buffers, and loads and stores out of order, on processors weaker than
 *     aarch64.
 *   - A release store carries what its thread has seen; an acquire load of that value has seen it too. An atomic change
 *     reads the last value, and carries on what that carried.
 *   - A seq_cst load returns nothing older than the last seq_cst store, and is no fence: as aarch64's LDAR and STLR.
 *   - membarrier is a fence in each thread, wherever the thread is in its program.
 * This is C11's model in its operational form (O. Lahav, V. Vafeiadis, J. Kang, C. Hur, D. Dreyer, "Repairing
 * Sequential Consistency in C/C++11", 2017), where loads are not delayed beyond later stores of their thread. In the
 * code a load that decides about a store is an acquire, which forbids that; the exception, the biased thread's own
 * `live` words, no other thread touches then.
 *
 * Errors are: a block given out twice, a lost free, two unordered accesses to a bin or to a block's content, a thread
 * with exclusive access that reads old words, a lost wake-up, and a deadlock.
 *
 * Then each order is weakened, and each fence and wait left out: the explorer must find an error. Where it finds none
 * the code is stricter than necessary; that is stated too, so that a change shows. */
#include "memory_orders.h"
#include "check.h"

#include <stddef.h>

enum { THREADS = 3, MESSAGES = 14, CODE = 200, REGISTERS = 4, STEPS = 250 };

/* Locations. LIST, CONTENT: plain memory, whose accesses must be ordered. Each thread has its own `busy`. */
enum {
    BIASED,
    BIAS_LOCK,
    BIN_LOCK,
    UNCACHED,
    BUSY,
    LIVE = BUSY + THREADS,
    LIST,
    CONTENT,
    COUNT = CONTENT + 2,
    WAKEUP,
    LOCATIONS
};
enum { CHANGING = 7, ALL = 3, ASLEEP = 1, AWAKE = 2 };

/* ---- what is weakened ---- */

enum choice {
    ENTER_BUSY,
    ENTER_BIASED,
    LEAVE_BUSY,
    SLOW_BUSY,
    SLOW_UNCACHED,
    SLOW_BIASED,
    LEAVE_UNCACHED,
    BEGIN_EXCLUSIVE,
    WAIT,
    END_EXCLUSIVE,
    FREE,
    CLAIM,
    READ_LIVE,
    LOCK,
    UNLOCK,
    ORDERS,
    BARRIER = ORDERS,
    ENTER_FENCE,
    WAIT_BIASED,
    WAIT_ALL,
    WAIT_UNCACHED,
    BIN_LOCKED,
    WAKEUP_BARRIER,
    WAKEUP_FENCE,
    CHOICES
};

/* The order in the code, and the weakest that suffices: anything weaker is an error. */
static const struct {
    const char *name;
    memory_order order, enough;
} choices[CHOICES] = {
    {"ENTER_BUSY", CULET_ORDER_ENTER_BUSY, memory_order_relaxed},
    {"ENTER_BIASED", CULET_ORDER_ENTER_BIASED, memory_order_acquire},
    {"LEAVE_BUSY", CULET_ORDER_LEAVE_BUSY, memory_order_release},
    {"SLOW_BUSY", CULET_ORDER_SLOW_BUSY, memory_order_relaxed},
    {"SLOW_UNCACHED", CULET_ORDER_SLOW_UNCACHED, memory_order_relaxed},
    {"SLOW_BIASED", CULET_ORDER_SLOW_BIASED, memory_order_acquire},
    {"LEAVE_UNCACHED", CULET_ORDER_LEAVE_UNCACHED, memory_order_release},
    {"BEGIN_EXCLUSIVE", CULET_ORDER_BEGIN_EXCLUSIVE, memory_order_relaxed},
    {"WAIT", CULET_ORDER_WAIT, memory_order_acquire},
    {"END_EXCLUSIVE", CULET_ORDER_END_EXCLUSIVE, memory_order_release},
    {"FREE", CULET_ORDER_FREE, memory_order_release},
    {"CLAIM", CULET_ORDER_CLAIM, memory_order_acquire},
    {"READ_LIVE", CULET_ORDER_READ_LIVE, memory_order_acquire},
    {"LOCK", CULET_ORDER_LOCK, memory_order_acquire},
    {"UNLOCK", CULET_ORDER_UNLOCK, memory_order_release},
    [BARRIER] = {.name = "membarrier"},
    [ENTER_FENCE] = {.name = "the compiler's fence on entering"},
    [WAIT_BIASED] = {.name = "the wait for the biased thread"},
    [WAIT_ALL] = {.name = "the wait for all threads"},
    [WAIT_UNCACHED] = {.name = "the wait for threads without a cache"},
    [BIN_LOCKED] = {.name = "the bin's lock"},
    [WAKEUP_BARRIER] = {.name = "the wake-up's membarrier"},
    [WAKEUP_FENCE] = {.name = "the compiler's fence of the wake-up"},
};

static memory_order order[ORDERS];
static bool left_out[CHOICES];

/* ---- programs ---- */

enum operation {
    LOAD,
    STORE,
    STORE_REGISTER,
    AND_NOT,
    OR,
    ADD,
    EXCHANGE,
    COMPARE_EXCHANGE,
    TAKE_LOCK,
    GIVE_LOCK,
    WAIT_ZERO,
    TOUCH,
    EXACT,
    FENCE_ALL,
    JUMP,
    JUMP_IF,
    JUMP_UNLESS,
    MAY_JUMP,
    CLEAR_BITS,
    DROP,
    GET,
    END
};

struct instruction {
    uint8_t operation, location, value, target, with; /* `with`: a register */
    memory_order order;
};

static struct instruction code[THREADS][CODE];
static uint8_t length[THREADS], writing; /* the thread whose program is being written */
static bool uncached[THREADS];

static uint8_t emit(struct instruction instruction)
{
    CHECK(length[writing] < CODE, "a program is too long");
    code[writing][length[writing]] = instruction;
    return length[writing]++;
}
#define EMIT(what, ...) emit((struct instruction){.operation = (what), ##__VA_ARGS__})

/* Sets the target of an earlier jump to the next instruction. */
static void land(uint8_t jump)
{
    code[writing][jump].target = length[writing];
}

/* culet_lock and culet_unlock. */
static void write_lock(uint8_t location)
{
    EMIT(TAKE_LOCK, location, .order = order[LOCK]);
}

static void write_unlock(uint8_t location)
{
    EMIT(GIVE_LOCK, location, .order = order[UNLOCK]);
}

/* begin_exclusive; the former biased thread in register 1. */
static void write_begin_exclusive(void)
{
    uint8_t done[THREADS];

    EMIT(EXCHANGE, BIASED, CHANGING, .with = 1, .order = order[BEGIN_EXCLUSIVE]);
    if (!left_out[BARRIER])
        EMIT(FENCE_ALL);
    uint8_t shared = EMIT(JUMP_UNLESS, .with = 1, .value = 0);
    /* Register 1 is zero: wait for all threads. */
    for (uint8_t t = 0; t < THREADS; t++)
        if (!uncached[t] && !left_out[WAIT_ALL])
            EMIT(WAIT_ZERO, BUSY + t, .order = order[WAIT]);
    if (!left_out[WAIT_UNCACHED])
        EMIT(WAIT_ZERO, UNCACHED, .order = order[WAIT]);
    uint8_t all = EMIT(JUMP);
    land(shared);
    for (uint8_t t = 0; t < THREADS; t++) {
        uint8_t other = EMIT(JUMP_UNLESS, .with = 1, .value = t + 1);
        if (!left_out[WAIT_BIASED])
            EMIT(WAIT_ZERO, BUSY + t, .order = order[WAIT]);
        done[t] = EMIT(JUMP);
        land(other);
    }
    for (uint8_t t = 0; t < THREADS; t++)
        land(done[t]);
    land(all);
}

static void write_change(uint8_t biased)
{
    write_begin_exclusive();
    EMIT(STORE, BIASED, biased, .order = order[END_EXCLUSIVE]);
}

/* end */
static void write_end(void)
{
    EMIT(LOAD, BIASED, .with = 1, .order = memory_order_seq_cst);
    uint8_t none = EMIT(JUMP_IF, .with = 1, .value = 0);
    write_change(0);
    land(none);
}

static void write_leave(void)
{
    if (uncached[writing])
        EMIT(ADD, UNCACHED, (uint8_t)-1, .order = order[LEAVE_UNCACHED]);
    else
        EMIT(STORE, BUSY + writing, 0, .order = order[LEAVE_BUSY]);
}

/* culet_bias_enter_slow */
static void write_enter_slow(void)
{
    uint8_t again = length[writing];

    if (uncached[writing])
        EMIT(ADD, UNCACHED, 1, .order = order[SLOW_UNCACHED]);
    else
        EMIT(STORE, BUSY + writing, 1, .order = order[SLOW_BUSY]);
    EMIT(LOAD, BIASED, .with = 0, .order = order[SLOW_BIASED]);
    uint8_t in = EMIT(JUMP_IF, .with = 0, .value = 0);
    write_leave();
    write_lock(BIAS_LOCK);
    write_end();
    write_unlock(BIAS_LOCK);
    EMIT(JUMP, .target = again);
    land(in);
}

/* culet_bias_enter. The biased thread goes on with the next instruction; the returned jump is for the others. */
static uint8_t write_enter(void)
{
    uint8_t in = 0, biased = 0;

    if (!uncached[writing]) {
        if (!left_out[ENTER_FENCE])
            EMIT(STORE, BUSY + writing, 1, .order = order[ENTER_BUSY]);
        EMIT(LOAD, BIASED, .with = 0, .order = order[ENTER_BIASED]);
        if (left_out[ENTER_FENCE])
            EMIT(STORE, BUSY + writing, 1, .order = order[ENTER_BUSY]);
        biased = EMIT(JUMP_IF, .with = 0, .value = writing + 1);
        EMIT(LOAD, BIASED, .with = 0, .order = order[ENTER_BIASED]);
        in = EMIT(JUMP_IF, .with = 0, .value = 0);
    }
    write_enter_slow();
    if (!uncached[writing])
        land(in);
    uint8_t shared = EMIT(JUMP);
    if (!uncached[writing])
        land(biased);
    return shared;
}

/* culet_bin_unit_changed, which is not needed after each free: the bin's list, and a slab without a live block goes
 * back to the page heap, or its pages to the kernel. */
static void write_note(bool biased)
{
    uint8_t spared = EMIT(MAY_JUMP);
    bool locked = !biased && !left_out[BIN_LOCKED];

    if (locked)
        write_lock(BIN_LOCK);
    EMIT(TOUCH, LIST);
    EMIT(LOAD, LIVE, .with = 3, .order = order[READ_LIVE]);
    uint8_t used = EMIT(JUMP_UNLESS, .with = 3, .value = 0);
    EMIT(TOUCH, CONTENT);
    EMIT(TOUCH, CONTENT + 1);
    land(used);
    if (locked)
        write_unlock(BIN_LOCK);
    land(spared);
}

/* free of the block `number`, to which the thread has written. */
static void write_free(uint8_t number)
{
    uint8_t bit = (uint8_t)(1 << number);

    EMIT(TOUCH, CONTENT + number);
    EMIT(DROP, .value = bit);
    uint8_t shared = write_enter();
    EMIT(LOAD, LIVE, .with = 2, .order = memory_order_relaxed);
    EMIT(CLEAR_BITS, .with = 2, .value = bit);
    EMIT(STORE_REGISTER, LIVE, .with = 2, .order = memory_order_relaxed);
    write_note(true);
    write_leave();
    uint8_t done = EMIT(JUMP);
    land(shared);
    EMIT(AND_NOT, LIVE, bit, .with = 2, .order = order[FREE]);
    write_note(false);
    write_leave();
    land(done);
}

/* culet_bin_claim: takes the free blocks and writes to them. */
static void write_claim(void)
{
    uint8_t shared = write_enter();

    EMIT(TOUCH, LIST);
    EMIT(LOAD, LIVE, .with = 2, .order = memory_order_relaxed);
    EMIT(STORE, LIVE, ALL, .order = memory_order_relaxed);
    write_leave();
    uint8_t done = EMIT(JUMP);
    land(shared);
    if (!left_out[BIN_LOCKED])
        write_lock(BIN_LOCK);
    EMIT(TOUCH, LIST);
    EMIT(OR, LIVE, ALL, .with = 2, .order = order[CLAIM]);
    if (!left_out[BIN_LOCKED])
        write_unlock(BIN_LOCK);
    write_leave();
    land(done);
    EMIT(GET, .with = 2);
}

/* culet_bias_count_visit, when the streak is long enough. */
static void write_visit(void)
{
    write_lock(BIAS_LOCK);
    EMIT(LOAD, BIASED, .with = 1, .order = memory_order_seq_cst);
    uint8_t taken = EMIT(JUMP_UNLESS, .with = 1, .value = 0);
    write_change(writing + 1);
    land(taken);
    write_unlock(BIAS_LOCK);
}

static void write_forget(void)
{
    write_lock(BIAS_LOCK);
    EMIT(LOAD, BIASED, .with = 1, .order = memory_order_seq_cst);
    uint8_t others = EMIT(JUMP_UNLESS, .with = 1, .value = writing + 1);
    write_change(0);
    land(others);
    write_unlock(BIAS_LOCK);
}

/* culet_bias_run_exclusive: reads and changes everything. */
static void write_exclusive(void)
{
    write_lock(BIAS_LOCK);
    write_begin_exclusive();
    EMIT(EXACT, LIVE);
    EMIT(TOUCH, LIST);
    EMIT(STORE_REGISTER, BIASED, .with = 1, .order = order[END_EXCLUSIVE]);
    write_unlock(BIAS_LOCK);
}

/* culet_wakeup_notify, after a count has changed. */
static void write_notify(void)
{
    if (left_out[WAKEUP_FENCE])
        EMIT(LOAD, WAKEUP, .with = 0, .order = memory_order_relaxed);
    EMIT(STORE, COUNT, 1, .order = memory_order_relaxed);
    if (!left_out[WAKEUP_FENCE])
        EMIT(LOAD, WAKEUP, .with = 0, .order = memory_order_relaxed);
    uint8_t awake = EMIT(JUMP_UNLESS, .with = 0, .value = ASLEEP);
    EMIT(COMPARE_EXCHANGE, WAKEUP, ASLEEP, .order = memory_order_seq_cst);
    land(awake);
}

/* culet_wakeup_wait, up to its sleep. */
static void write_sleep(void)
{
    EMIT(STORE, WAKEUP, ASLEEP, .order = memory_order_seq_cst);
    if (!left_out[WAKEUP_BARRIER])
        EMIT(FENCE_ALL);
    EMIT(LOAD, COUNT, .with = 0, .order = memory_order_relaxed);
    uint8_t nothing = EMIT(JUMP_IF, .with = 0, .value = 0);
    EMIT(COMPARE_EXCHANGE, WAKEUP, ASLEEP, .order = memory_order_seq_cst);
    land(nothing);
}

/* ---- the machine ---- */

struct message {
    uint8_t value;
    uint8_t view[LOCATIONS]; /* what a thread has seen: the number of a message, by location */
};

struct thread {
    uint8_t at, registers[REGISTERS], view[LOCATIONS];
};

struct state {
    uint8_t count[LOCATIONS], fenced[LOCATIONS], strict[LOCATIONS]; /* seen by all fences; the last seq_cst store */
    uint8_t held;                                                   /* blocks given out */
    struct thread thread[THREADS];
    struct message message[LOCATIONS][MESSAGES];
    uint16_t steps; /* taken so far; not part of the state */
    struct {
        uint8_t thread, at, number;
    } trail[STEPS];
};

static const char *wrong; /* the error, if one was found */

static void join(uint8_t *view, const uint8_t *other)
{
    for (unsigned p = 0; p < LOCATIONS; p++)
        if (view[p] < other[p])
            view[p] = other[p];
}

static bool acquires(memory_order o)
{
    return o == memory_order_acquire || o == memory_order_acq_rel || o == memory_order_seq_cst;
}

static bool releases(memory_order o)
{
    return o == memory_order_release || o == memory_order_acq_rel || o == memory_order_seq_cst;
}

static uint8_t last(const struct state *s, unsigned location)
{
    return (uint8_t)(s->count[location] - 1);
}

static uint8_t see(struct state *s, struct thread *thread, unsigned location, uint8_t number, memory_order o)
{
    const struct message *m = &s->message[location][number];

    thread->view[location] = number;
    if (acquires(o))
        join(thread->view, m->view);
    return m->value;
}

/* `carried`: the view of the message that an atomic change replaces. */
static void put(struct state *s, struct thread *thread, unsigned location, uint8_t value, memory_order o,
                const uint8_t *carried)
{
    CHECK(s->count[location] < MESSAGES, "location %u has too many values", location);
    uint8_t number = s->count[location]++;
    struct message *m = &s->message[location][number];

    m->value = value;
    if (carried)
        memcpy(m->view, carried, LOCATIONS);
    thread->view[location] = number;
    m->view[location] = number;
    if (releases(o))
        join(m->view, thread->view);
    if (o == memory_order_seq_cst)
        s->strict[location] = number;
}

static uint8_t change(struct state *s, struct thread *thread, unsigned location, memory_order o, unsigned operation,
                      uint8_t value)
{
    uint8_t number = last(s, location), old = see(s, thread, location, number, o);
    uint8_t new = operation == AND_NOT ? old &(uint8_t)~value
                  : operation == OR    ? old | value
                  : operation == ADD   ? (uint8_t)(old + value)
                                       : value;

    put(s, thread, location, new, o, s->message[location][number].view);
    return old;
}

static void fence(struct state *s, struct thread *thread)
{
    join(thread->view, s->fenced);
    memcpy(s->fenced, thread->view, LOCATIONS);
}

/* Plain memory: the thread must have seen every earlier access. */
static void touch(struct state *s, struct thread *thread, unsigned location, const char *what)
{
    if (thread->view[location] != last(s, location))
        wrong = what;
    else
        put(s, thread, location, 0, memory_order_relaxed, NULL);
}

static void get(struct state *s, struct thread *thread, uint8_t before)
{
    for (unsigned n = 0; n < 2; n++) {
        if (before >> n & 1)
            continue;
        if (s->held >> n & 1)
            wrong = "a block is given out twice";
        else
            touch(s, thread, CONTENT + n, "a block is written by two threads");
        s->held |= (uint8_t)(1 << n);
    }
}

/* Executes one instruction; `number`: the message that a load takes, or whether a choice is made. */
static void step(struct state *s, unsigned t, uint8_t number)
{
    struct thread *thread = &s->thread[t];
    struct instruction i = code[t][thread->at++];
    uint8_t *with = &thread->registers[i.with];

    switch (i.operation) {
    case LOAD:
        *with = see(s, thread, i.location, number, i.order);
        break;
    case WAIT_ZERO:
        see(s, thread, i.location, number, i.order);
        break;
    case STORE:
        put(s, thread, i.location, i.value, i.order, NULL);
        break;
    case STORE_REGISTER:
        put(s, thread, i.location, *with, i.order, NULL);
        break;
    case AND_NOT:
    case OR:
    case ADD:
    case EXCHANGE:
        *with = change(s, thread, i.location, i.order, i.operation, i.value);
        break;
    case COMPARE_EXCHANGE: /* the wake-up's */
        if (s->message[i.location][last(s, i.location)].value == i.value)
            change(s, thread, i.location, i.order, EXCHANGE, AWAKE);
        break;
    case TAKE_LOCK:
        change(s, thread, i.location, i.order, EXCHANGE, 1);
        break;
    case GIVE_LOCK:
        change(s, thread, i.location, i.order, EXCHANGE, 0);
        break;
    case TOUCH:
        touch(s, thread, i.location,
              i.location == LIST ? "a bin is used by two threads" : "a block is written by two threads");
        break;
    case EXACT:
        if (thread->view[i.location] != last(s, i.location))
            wrong = "a thread that is alone sees old words";
        break;
    case FENCE_ALL:
        fence(s, thread);
        for (unsigned other = 0; other < THREADS; other++)
            fence(s, &s->thread[other]);
        fence(s, thread);
        break;
    case JUMP:
        thread->at = i.target;
        break;
    case JUMP_IF:
        thread->at = *with == i.value ? i.target : thread->at;
        break;
    case JUMP_UNLESS:
        thread->at = *with != i.value ? i.target : thread->at;
        break;
    case MAY_JUMP:
        thread->at = number ? i.target : thread->at;
        break;
    case CLEAR_BITS:
        *with &= (uint8_t)~i.value;
        break;
    case DROP:
        s->held &= (uint8_t)~i.value;
        break;
    case GET:
        get(s, thread, *with);
        break;
    }
}

/* Values that nobody can see any more are forgotten, and what a thread knew that has ended, but for later fences: so
 * that states which differ in nothing else are one. */
static void forget_old(struct state *s)
{
    uint8_t oldest[LOCATIONS];

    for (unsigned t = 0; t < THREADS; t++)
        if (code[t][s->thread[t].at].operation == END) {
            join(s->fenced, s->thread[t].view);
            memset(s->thread[t].view, 0, LOCATIONS);
            memset(s->thread[t].registers, 0, REGISTERS);
        }
    for (unsigned p = 0; p < LOCATIONS; p++) {
        oldest[p] = last(s, p);
        for (unsigned t = 0; t < THREADS; t++)
            if (code[t][s->thread[t].at].operation != END && s->thread[t].view[p] < oldest[p])
                oldest[p] = s->thread[t].view[p];
    }
#define LOWER(view, p) ((view)[p] = (view)[p] > oldest[p] ? (uint8_t)((view)[p] - oldest[p]) : 0)
    for (unsigned p = 0; p < LOCATIONS; p++) {
        if (oldest[p]) {
            s->count[p] -= oldest[p];
            memmove(s->message[p], s->message[p] + oldest[p], s->count[p] * sizeof(struct message));
            memset(s->message[p] + s->count[p], 0, oldest[p] * sizeof(struct message));
        }
        LOWER(s->fenced, p);
        LOWER(s->strict, p);
        for (unsigned t = 0; t < THREADS; t++)
            LOWER(s->thread[t].view, p);
    }
    for (unsigned p = 0; p < LOCATIONS; p++)
        for (unsigned m = 0; m < s->count[p]; m++)
            for (unsigned q = 0; q < LOCATIONS; q++)
                LOWER(s->message[p][m].view, q);
#undef LOWER
}

/* ---- the explorer ---- */

/* With WEAK_VERBOSE in the environment: prints the trace to the error. */
static void show(const struct state *s)
{
    static const char *const operations[] = {
        "load",        "store",    "store",      "and",   "or",      "add",        "exchange", "compare and exchange",
        "lock",        "unlock",   "wait for 0", "touch", "look at", "membarrier", "jump",     "jump if",
        "jump unless", "may jump", "clear bits", "drop",  "get",     "end"};
    static const char *const locations[] = {"biased", "bias lock", "bin lock", "uncached", "busy 0", "busy 1", "busy 2",
                                            "live",   "list",      "block 0",  "block 1",  "count",  "wake-up"};

    if (!getenv("WEAK_VERBOSE"))
        return;
    printf("# %s:\n", wrong);
    for (unsigned n = 0; n < s->steps; n++) {
        struct instruction i = code[s->trail[n].thread][s->trail[n].at];
        printf("#   thread %u, %u: %s %s (%u, r%u, order %d), choice %u\n", s->trail[n].thread, s->trail[n].at,
               operations[i.operation], locations[i.location], i.value, i.with, (int)i.order, s->trail[n].number);
    }
    fflush(stdout);
}

/* The states seen, by 128 bits of hash each. */
#define SEEN_MOST ((size_t)1 << 22)
static struct seen {
    uint64_t hash[2];
} * seen;
static size_t seen_count;

static struct state *stack;
static size_t stack_count, stack_room;

static uint64_t hash_of(const struct state *s, uint64_t h)
{
    const unsigned char *at = (const unsigned char *)s;
    uint64_t word;

    for (size_t i = 0; i + 8 <= offsetof(struct state, message); i += 8) {
        memcpy(&word, at + i, 8);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    for (size_t i = offsetof(struct state, message) & ~(size_t)7; i < offsetof(struct state, message); i++)
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    for (unsigned p = 0; p < LOCATIONS; p++)
        for (unsigned m = 0; m < s->count[p]; m++) {
            const unsigned char *bytes = (const unsigned char *)&s->message[p][m];
            for (size_t i = 0; i < sizeof(struct message); i++)
                h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
            h ^= h >> 31;
        }
    return h ? h : 1;
}

static bool is_new(const struct state *s)
{
    struct seen key = {{hash_of(s, 1), hash_of(s, UINT64_C(0xbf58476d1ce4e5b9))}};

    for (size_t i = key.hash[0] % SEEN_MOST;; i = (i + 1) % SEEN_MOST) {
        if (!seen[i].hash[0]) {
            CHECK(++seen_count < SEEN_MOST / 4 * 3, "there are too many states");
            seen[i] = key;
            return true;
        }
        if (memcmp(&seen[i], &key, sizeof key) == 0)
            return false;
    }
}

static void push(const struct state *s)
{
    if (stack_count == stack_room) {
        stack_room = stack_room ? 2 * stack_room : 1024;
        stack = realloc(stack, stack_room * sizeof *stack);
        CHECK(stack, "no memory");
    }
    stack[stack_count++] = *s;
}

static void follow(const struct state *s, unsigned t, uint8_t number)
{
    struct state next = *s;

    CHECK(next.steps < STEPS, "a run is too long");
    next.trail[next.steps].thread = (uint8_t)t;
    next.trail[next.steps].at = s->thread[t].at;
    next.trail[next.steps++].number = number;
    step(&next, t, number);
    if (wrong) {
        show(&next);
        return;
    }
    forget_old(&next);
    if (is_new(&next))
        push(&next);
}

/* Follows everything that a thread may do; false if it cannot go on. */
static bool advance(const struct state *s, unsigned t)
{
    struct instruction i = code[t][s->thread[t].at];
    uint8_t from = s->thread[t].view[i.location];
    bool any = false;

    switch (i.operation) {
    case END:
        return false;
    case LOAD:
    case WAIT_ZERO:
        if (i.order == memory_order_seq_cst && from < s->strict[i.location])
            from = s->strict[i.location];
        for (uint8_t number = from; number < s->count[i.location] && !wrong; number++)
            if (i.operation == LOAD || s->message[i.location][number].value == 0) {
                follow(s, t, number);
                any = true;
            }
        return any;
    case TAKE_LOCK:
        if (s->message[i.location][last(s, i.location)].value != 0)
            return false;
        break;
    case MAY_JUMP:
        follow(s, t, 1);
        break;
    }
    if (!wrong)
        follow(s, t, 0);
    return true;
}

static void check_end(const struct state *s)
{
    for (unsigned t = 0; t < THREADS; t++)
        if (code[t][s->thread[t].at].operation != END) {
            wrong = "threads wait for each other";
            return;
        }
    if (s->message[LIVE][last(s, LIVE)].value != s->held)
        wrong = "a free is lost";
    if (s->message[WAKEUP][last(s, WAKEUP)].value == ASLEEP && s->message[COUNT][last(s, COUNT)].value)
        wrong = "a wake-up is lost";
}

static void explore(uint8_t biased)
{
    struct state start = {.held = ALL};

    for (unsigned t = 0; t < THREADS; t++) {
        writing = (uint8_t)t;
        EMIT(END);
    }
    for (unsigned p = 0; p < LOCATIONS; p++)
        start.count[p] = 1;
    start.message[BIASED][0].value = biased;
    start.message[LIVE][0].value = ALL;
    memset(seen, 0, SEEN_MOST * sizeof *seen);
    seen_count = stack_count = 0;
    push(&start);
    while (stack_count && !wrong) {
        struct state s = stack[--stack_count];
        bool any = false;
        for (unsigned t = 0; t < THREADS && !wrong; t++)
            any |= advance(&s, t);
        if (any || wrong)
            continue;
        check_end(&s);
        if (wrong)
            show(&s);
    }
}

/* ---- what the threads do ---- */

static void begin(unsigned t, bool is_uncached)
{
    writing = (uint8_t)t;
    uncached[t] = is_uncached;
}

static uint8_t biased_and_one_more(void)
{
    begin(0, false);
    write_free(0);
    write_claim();
    begin(1, false);
    write_free(1);
    write_claim();
    return 1;
}

static uint8_t a_thread_becomes_biased(void)
{
    begin(0, false);
    write_free(0);
    write_visit();
    write_claim();
    write_forget();
    begin(1, false);
    write_free(1);
    return 0;
}

static uint8_t a_thread_becomes_biased_beside_an_uncached_one(void)
{
    uncached[1] = true;
    begin(0, false);
    write_visit();
    write_claim();
    begin(1, true);
    write_free(1);
    write_claim();
    return 0;
}

static uint8_t biased_and_one_exclusive(void)
{
    begin(0, false);
    write_free(0);
    write_claim();
    begin(1, false);
    write_exclusive();
    return 1;
}

static uint8_t shared_and_one_exclusive(void)
{
    uncached[1] = true;
    begin(0, false);
    write_free(0);
    begin(1, true);
    write_free(1);
    begin(2, false);
    write_exclusive();
    return 0;
}

/* With WEAK_ALL in the environment one of them claims too: 1.7 million states. */
static uint8_t biased_and_two_more(void)
{
    uncached[2] = true;
    begin(0, false);
    write_free(0);
    begin(1, false);
    write_visit();
    if (getenv("WEAK_ALL"))
        write_claim();
    begin(2, true);
    write_free(1);
    return 1;
}

static uint8_t notify_and_wait(void)
{
    begin(0, false);
    write_notify();
    begin(1, false);
    write_sleep();
    return 0;
}

static uint8_t (*const scenes[])(void) = {notify_and_wait,          biased_and_one_more,
                                          a_thread_becomes_biased,  a_thread_becomes_biased_beside_an_uncached_one,
                                          biased_and_one_exclusive, shared_and_one_exclusive,
                                          biased_and_two_more};
static size_t states; /* of all scenes */

/* Explores all scenes; returns the error, or NULL. */
static const char *explore_all(void)
{
    wrong = NULL;
    states = 0;
    if (!seen) {
        seen = mmap(NULL, SEEN_MOST * sizeof *seen, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(seen != MAP_FAILED, "no memory");
    }
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes && !wrong; i++) {
        memset(length, 0, sizeof length);
        memset(uncached, 0, sizeof uncached);
        explore(scenes[i]());
        if (getenv("WEAK_VERBOSE"))
            printf("# scene %zu: %zu states\n", i, seen_count);
        states += seen_count;
    }
    return wrong;
}

static void as_in_the_code(void)
{
    for (unsigned c = 0; c < ORDERS; c++)
        order[c] = choices[c].order;
    memset(left_out, 0, sizeof left_out);
}

TEST(the_orders_of_the_code_suffice)
{
    as_in_the_code();
    const char *found = explore_all();
    CHECK(!found, "%s", found);
    CHECK(states > 10000, "only %zu states", states);
}

/* All at their weakest at once. */
TEST(the_weakest_orders_suffice)
{
    as_in_the_code();
    for (unsigned c = 0; c < ORDERS; c++) {
        order[c] = choices[c].enough;
        CHECK(!acquires(order[c]) || acquires(choices[c].order), "%s does not acquire", choices[c].name);
        CHECK(!releases(order[c]) || releases(choices[c].order), "%s does not release", choices[c].name);
    }
    const char *found = explore_all();
    CHECK(!found, "%s", found);
}

TEST(a_weaker_order_is_found)
{
    for (unsigned c = 0; c < ORDERS; c++) {
        memory_order other = acquires(choices[c].enough) ? memory_order_release : memory_order_acquire;
        if (choices[c].enough == memory_order_relaxed)
            continue;
        as_in_the_code();
        order[c] = memory_order_relaxed;
        CHECK(explore_all(), "%s may be relaxed", choices[c].name);
        order[c] = other;
        CHECK(explore_all(), "%s may be of order %d", choices[c].name, (int)other);
    }
}

TEST(a_step_that_is_left_out_is_found)
{
    for (unsigned c = ORDERS; c < CHOICES; c++) {
        as_in_the_code();
        left_out[c] = true;
        CHECK(explore_all(), "nothing goes wrong without %s", choices[c].name);
    }
}

CHECK_MAIN
