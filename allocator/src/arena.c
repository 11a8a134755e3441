#define _GNU_SOURCE
#include "arena.h"

#include "abandoned.h"
#include "lock.h"
#include "meta.h"
#include "os.h"
#include "pagemap.h"
#include "pages.h"
#include "selfmap_export.h"
#include "size_class.h"

#include <pthread.h>

/* Requests for the preferred arena that found another thread inside, after which a thread prefers another one; and
 * acquisitions after which these are forgotten, and arena 0 is preferred again. */
#define OVERLAPS 8
#define ACQUISITIONS 64
/* Arenas for each processor, at most. */
#define ARENAS_PER_PROCESSOR 4
/* Attempts to enter an arena: spinning, then yielding; then the thread that is inside does not run, or purges. */
#define SPINS 256
#define YIELDS 32
/* Times that an adoption looks at the holder's `busy`, before and after the barrier. A holder that runs leaves between
 * two looks; for one that does not, waiting costs more than a new slab. */
#define LOOKS 8

struct culet_unit culet_no_unit;
struct culet_arena culet_arena_none = {
    .number = CULET_ARENAS,
    .tag = CULET_ENTRY_NO_TAG,
    .deferred_tag = CULET_ENTRY_NO_TAG,
    .current[0 ... CULET_CLASSES - 1] = {.unit = &culet_no_unit},
};

_Thread_local struct culet_thread culet_thread = {.arena = &culet_arena_none};

static struct culet_arena first;
static _Atomic(struct culet_arena *) arenas[CULET_ARENAS];
static _Atomic unsigned count;
static struct culet_lock growth_lock; /* guards additions to `arenas` */
static unsigned most = 1;
static _Atomic size_t threads;
static _Atomic bool stealable; /* the kernel has membarrier */
static pthread_key_t key;
static bool key_created;
static void (*call_thread_ended)(void);
static _Atomic bool taken_changes; /* `taken_for_purge` of an arena is about to change; its lock may be held */

CULET_SELFMAP_EXPORT(threads, culet_selfmap_threads);

static void set_up(struct culet_arena *arena, unsigned number)
{
    arena->number = (uint8_t)number;
    arena->tag = CULET_ENTRY_TAG(number);
    arena->deferred_tag = CULET_ENTRY_NO_TAG;
    for (unsigned klass = 0; klass < CULET_CLASSES; klass++)
        arena->current[klass] = (struct culet_current){.unit = &culet_no_unit, .size = culet_classes[klass].size};
    atomic_store(&arenas[number], arena);
    atomic_store(&count, number + 1);
}

static void release_any(struct culet_thread *self);

/* Destructors of other keys may still allocate after this one; then the thread acquires an arena for each call. */
static void thread_ends(void *unused)
{
    (void)unused;
    culet_thread.life = CULET_THREAD_ENDING;
    atomic_fetch_sub(&threads, 1);
    if (!culet_abandoned()) {
        release_any(&culet_thread);
        call_thread_ended();
    }
}

void culet_arena_setup(void (*thread_ended)(void))
{
    unsigned processors = culet_os_processors();

    most = processors * ARENAS_PER_PROCESSOR < CULET_ARENAS ? processors * ARENAS_PER_PROCESSOR : CULET_ARENAS;
    call_thread_ended = thread_ended;
    key_created = pthread_key_create(&key, thread_ends) == 0;
    atomic_store(&stealable, culet_os_barrier_setup());
    set_up(&first, 0);
}

struct culet_arena *culet_arena(unsigned number)
{
    return atomic_load_explicit(&arenas[number], memory_order_acquire);
}

unsigned culet_arena_count(void)
{
    return atomic_load_explicit(&count, memory_order_acquire);
}

size_t culet_arena_threads(void)
{
    return atomic_load_explicit(&threads, memory_order_relaxed);
}

/* ---- holding [arena's lock] ---- */

static struct culet_thread *holder_of(struct culet_arena *arena)
{
    return atomic_load_explicit(&arena->holder, memory_order_relaxed);
}

/* The thread's `busy`. One that is inside, and runs, will leave within some instructions. */
static uint32_t busy_of(const struct culet_thread *thread, unsigned looks, memory_order order)
{
    uint32_t busy;

    while ((busy = atomic_load_explicit(&thread->busy, order)) == CULET_INSIDE && --looks)
        culet_lock_relax();
    return busy;
}

/* Whether the holder is not inside; it has lost the arena then. [holder's revocation] */
static bool revoke_from(struct culet_thread *holder, struct culet_arena *arena, unsigned looks)
{
    atomic_store_explicit(&holder->arena, &culet_arena_none, CULET_ORDER_REVOKE);
    /* Where a sandbox has forbidden the barrier, wait much longer than any processor delays a store. */
    if (CULET_UNLIKELY(!culet_os_barrier())) {
        atomic_store(&stealable, false);
        culet_os_pause(10000);
    }
    uint32_t busy = busy_of(holder, looks, CULET_ORDER_REVOKED_BUSY);
    /* It has tried to enter since: it runs in parallel. */
    culet_thread.collided = busy == CULET_ACQUIRING;
    if (busy != CULET_INSIDE)
        return true;
    /* It is inside, unless it has found its arena gone and taken another one. */
    struct culet_arena *none = &culet_arena_none;
    return !atomic_compare_exchange_strong_explicit(&holder->arena, &none, arena, CULET_ORDER_RESTORE,
                                                    CULET_ORDER_RESTORE);
}

/* Whether no thread is inside the arena; its holder, if there is one, has lost it then. `looks`: at the holder's
 * `busy`; more than one: to adopt a slab. One revocation of a thread at a time: meanwhile it may take another arena,
 * and a second thread that revokes that one could not tell it from the first arena, restored. */
static bool revoke(struct culet_arena *arena, unsigned looks)
{
    struct culet_thread *holder = holder_of(arena);

    if (!holder || holder == &culet_thread)
        return true;
    if (busy_of(holder, looks, memory_order_relaxed) == CULET_INSIDE || !culet_lock_try(&holder->revocation))
        return false;
    bool done = revoke_from(holder, arena, looks);
    if (done && looks > 1)
        atomic_store_explicit(&holder->adopted_from, arena, memory_order_relaxed);
    culet_unlock(&holder->revocation);
    return done;
}

/* False: the thread has got its previous arena back meanwhile. */
static bool hold(struct culet_arena *arena, struct culet_thread *self)
{
    struct culet_arena *none = &culet_arena_none;

    if (holder_of(arena) != self) {
        if (!atomic_compare_exchange_strong_explicit(&self->arena, &none, arena, CULET_ORDER_HOLD,
                                                     memory_order_relaxed))
            return false;
        atomic_store_explicit(&arena->holder, self, memory_order_relaxed);
    }
    /* Before the arena is unlocked: a thread that takes it over next must not read that this one is still acquiring. */
    atomic_store_explicit(&self->busy, CULET_INSIDE, CULET_ORDER_ENTER_BUSY);
    return true;
}

/* Takes the arena, from its holder if that is not inside. The caller is then inside, so no thread takes it back. */
static bool take(struct culet_arena *arena, struct culet_thread *self)
{
    if (!culet_lock_try(&arena->lock))
        return false;
    bool done = !atomic_load_explicit(&arena->taken_for_purge, memory_order_relaxed) && revoke(arena, 1);
    if (done && !hold(arena, self)) {
        atomic_store_explicit(&arena->holder, NULL, memory_order_relaxed);
        done = false;
    }
    culet_unlock(&arena->lock);
    return done;
}

/* The arena that the thread holds once no other thread tries to take it over. */
static struct culet_arena *settled(struct culet_thread *self)
{
    culet_lock(&self->revocation);
    struct culet_arena *arena = atomic_load_explicit(&self->arena, memory_order_relaxed);
    culet_unlock(&self->revocation);
    return arena;
}

/* Gives the arena up if the thread holds it, and one that it got back meanwhile. No other thread refers to the thread
 * then. Not inside: a fork waits for threads that are inside, and holds the lock. */
static void release(struct culet_arena *arena, struct culet_thread *self)
{
    for (; arena != &culet_arena_none; arena = settled(self)) {
        culet_lock(&arena->lock);
        if (holder_of(arena) == self) {
            atomic_store_explicit(&arena->holder, NULL, memory_order_relaxed);
            atomic_store_explicit(&self->arena, &culet_arena_none, memory_order_relaxed);
        }
        culet_unlock(&arena->lock);
    }
}

static void release_any(struct culet_thread *self)
{
    release(settled(self), self);
}

bool culet_arena_try_lock(struct culet_arena *arena)
{
    if (!culet_lock_try(&arena->lock))
        return false;
    if (atomic_load_explicit(&arena->taken_for_purge, memory_order_relaxed) || !revoke(arena, LOOKS)) {
        culet_unlock(&arena->lock);
        return false;
    }
    atomic_store_explicit(&arena->holder, NULL, memory_order_relaxed);
    return true;
}

void culet_arena_unlock(struct culet_arena *arena)
{
    culet_unlock(&arena->lock);
}

/* ---- choice ---- */

static struct culet_arena *add(void)
{
    struct culet_arena *arena = NULL;

    /* Does not wait: beside another thread that adds an arena, or forks, the next arena does. */
    if (!culet_lock_try(&growth_lock))
        return NULL;
    unsigned number = atomic_load(&count);
    if (number < most && (arena = culet_meta_get(CULET_META_ARENA)))
        set_up(arena, number);
    culet_unlock(&growth_lock);
    return arena;
}

/* Another arena than `arena`: one without a holder, else a new one, else the next. */
static struct culet_arena *other(const struct culet_arena *arena)
{
    unsigned all = culet_arena_count();

    for (unsigned i = 0; i < all; i++)
        if (culet_arena(i) != arena && !holder_of(culet_arena(i)))
            return culet_arena(i);
    struct culet_arena *added = add();
    return added ? added : culet_arena((arena->number + 1u) % all);
}

/* Once per thread, outside of all arenas: pthread_setspecific may allocate. */
static void register_thread(struct culet_thread *self)
{
    self->life = key_created ? CULET_THREAD_REGISTERED : CULET_THREAD_ENDING;
    if (!key_created)
        return;
    if (atomic_fetch_add(&threads, 1))
        culet_abandoned_watch();
    if (pthread_setspecific(key, self) != 0)
        thread_ends(self);
}

/* Between two attempts. */
static void pause_before(unsigned attempt)
{
    if (attempt < SPINS)
        culet_lock_relax();
    else
        culet_os_pause(attempt < SPINS + YIELDS ? 0 : 100);
}

/* Whether the thread has overlapped others often enough to prefer another arena. */
static bool overlaps(struct culet_thread *self)
{
    if (++self->overlaps < OVERLAPS)
        return false;
    self->overlaps = 0;
    return true;
}

/* Acquires an arena for a thread that holds none, and enters it. Under the GVL the first attempt succeeds. */
static struct culet_arena *acquire(struct culet_thread *self)
{
    struct culet_arena *arena = atomic_load_explicit(&self->adopted_from, memory_order_relaxed), *adopted_from = arena;
    if (adopted_from) {
        atomic_store_explicit(&self->adopted_from, NULL, memory_order_relaxed);
    } else {
        if (++self->acquisitions == ACQUISITIONS) {
            self->acquisitions = self->overlaps = 0;
            self->preferred = NULL;
        }
        arena = self->preferred ? self->preferred : culet_arena(0);
    }
    self->collided = false;
    atomic_store_explicit(&self->busy, CULET_ACQUIRING, CULET_ORDER_LEAVE_BUSY);
    for (unsigned attempt = 0; !take(arena, self); attempt++) {
        /* Restored after another thread tried to take it. */
        if (atomic_load_explicit(&self->arena, memory_order_relaxed) != &culet_arena_none) {
            struct culet_arena *held = culet_arena_enter_held(self);
            if (held != &culet_arena_none)
                return held;
            atomic_store_explicit(&self->busy, CULET_ACQUIRING, CULET_ORDER_LEAVE_BUSY);
        }
        bool purging = atomic_load_explicit(&arena->taken_for_purge, memory_order_relaxed) ||
                       atomic_load_explicit(&taken_changes, memory_order_relaxed);
        if (attempt == 0 && !purging && !adopted_from && overlaps(self))
            self->preferred = arena = other(arena);
        else if ((attempt == SPINS && adopted_from) || attempt >= SPINS + YIELDS)
            arena = other(arena);
        pause_before(attempt);
    }
    /* The thread that had the arena needs one at this moment. */
    if (self->collided && !adopted_from && overlaps(self))
        self->preferred = other(arena);
    return arena;
}

struct culet_arena *culet_arena_enter(void)
{
    struct culet_thread *self = &culet_thread;

    if (CULET_UNLIKELY(self->life == CULET_THREAD_NEW)) {
        culet_arena_leave_held(self);
        register_thread(self);
    }
    struct culet_arena *arena = culet_arena_enter_held(self);
    return CULET_LIKELY(arena != &culet_arena_none) ? arena : acquire(self);
}

/* Whether the thread keeps its arena when it leaves. */
static bool keeps(const struct culet_thread *self)
{
    return CULET_LIKELY(self->life == CULET_THREAD_REGISTERED &&
                        atomic_load_explicit(&stealable, memory_order_relaxed)) ||
           culet_lock_forking();
}

void culet_arena_leave(struct culet_arena *arena)
{
    struct culet_thread *self = &culet_thread;

    culet_arena_leave_held(self);
    if (CULET_UNLIKELY(!keeps(self)))
        release(arena, self);
}

/* ---- purges ---- */

bool culet_arena_enter_for_purge(struct culet_arena *arena)
{
    struct culet_thread *self = &culet_thread;

    /* A thread that forks could take no arena again. */
    if (culet_lock_forking())
        return false;
    release_any(self);
    atomic_store_explicit(&self->busy, CULET_INSIDE, memory_order_relaxed);
    atomic_store_explicit(&taken_changes, true, memory_order_relaxed);
    bool taken = false;
    for (unsigned attempt = 0; attempt < SPINS + YIELDS && !(taken = take(arena, self)); attempt++)
        pause_before(attempt);
    if (taken)
        atomic_store_explicit(&arena->taken_for_purge, true, memory_order_relaxed);
    else
        culet_arena_leave_held(self);
    atomic_store_explicit(&taken_changes, false, memory_order_relaxed);
    return taken;
}

void culet_arena_leave_after_purge(struct culet_arena *arena)
{
    struct culet_thread *self = &culet_thread;

    atomic_store_explicit(&taken_changes, true, memory_order_relaxed);
    culet_lock(&arena->lock);
    atomic_store_explicit(&arena->holder, NULL, memory_order_relaxed);
    atomic_store_explicit(&self->arena, &culet_arena_none, memory_order_relaxed);
    atomic_store_explicit(&arena->taken_for_purge, false, memory_order_release);
    culet_unlock(&arena->lock);
    atomic_store_explicit(&taken_changes, false, memory_order_relaxed);
    culet_arena_leave_held(self);
}

/* ---- fork ---- */

bool culet_arena_inside(void)
{
    if (atomic_load_explicit(&culet_thread.busy, memory_order_relaxed) != CULET_OUTSIDE ||
        culet_lock_mine(&growth_lock) || culet_lock_mine(&culet_thread.revocation))
        return true;
    for (unsigned i = 0; i < culet_arena_count(); i++)
        if (culet_lock_mine(&culet_arena(i)->lock))
            return true;
    return false;
}

void culet_arena_freeze(void)
{
    /* The forking thread keeps an arena: another library's handler may allocate before the fork ends. It stays inside
     * until it has all locks, so that nobody takes it over. */
    culet_arena_enter();
    culet_lock(&growth_lock);
    for (unsigned i = 0; i < culet_arena_count(); i++) {
        struct culet_arena *arena = culet_arena(i);
        culet_lock(&arena->lock);
        atomic_store_explicit(&arena->taken_for_purge, true, memory_order_relaxed);
        for (unsigned attempt = 0; !revoke(arena, 1); attempt++) {
            /* A holder that does not keep the arena needs the lock to leave. */
            culet_unlock(&arena->lock);
            pause_before(attempt);
            culet_lock(&arena->lock);
        }
        if (holder_of(arena) != &culet_thread)
            atomic_store_explicit(&arena->holder, NULL, memory_order_relaxed);
    }
    culet_arena_leave_held(&culet_thread);
}

void culet_arena_unfreeze(void)
{
    for (unsigned i = culet_arena_count(); i-- > 0;) {
        atomic_store_explicit(&culet_arena(i)->taken_for_purge, false, memory_order_release);
        culet_unlock(&culet_arena(i)->lock);
    }
    culet_unlock(&growth_lock);
    if (!keeps(&culet_thread))
        release_any(&culet_thread);
}

bool culet_arena_reset(void)
{
    size_t own = culet_thread.life == CULET_THREAD_REGISTERED;

    for (unsigned i = 0; i < culet_arena_count(); i++) {
        atomic_store_explicit(&culet_arena(i)->taken_for_purge, false, memory_order_relaxed);
        culet_lock_reset(&culet_arena(i)->lock);
    }
    culet_lock_reset(&growth_lock);
    bool others = atomic_exchange(&threads, own) != own;
    atomic_store(&stealable, culet_os_barrier_setup());
    if (!keeps(&culet_thread))
        release_any(&culet_thread);
    return others;
}
