/* arena.h - which thread holds which arena.
 *
 * An arena is held by at most one thread, its holder, which uses it without locks and atomics. A thread is *inside* its
 * arena between culet_arena_enter and culet_arena_leave. A thread that needs an arena takes over one whose holder is not
 * inside: that costs a system call, some 0.3 us while no other thread of the process runs, and 4 us beside a busy one.
 * Under Ruby's GVL at most one thread is inside at any time, so all threads use arena 0 in turn, and a thread that waits
 * holds no memory. A thread that finds others inside its arena repeatedly runs in parallel to them; it moves to an
 * arena without a holder, or to a new one.
 *
 * To enter, a thread stores CULET_INSIDE to its `busy`, then loads its `arena`, without a fence in between. To take an
 * arena over, under the arena's lock: store &culet_arena_none to the holder's `arena`, call membarrier(2), load the
 * holder's `busy`. Not inside: the holder will see that it lost the arena before it uses it again; it has seen it already
 * if it is CULET_ACQUIRING. Inside: it gets the arena back, unless it has taken another one meanwhile. A thread's arena
 * is taken over by one thread at a time, under the thread's lock `revocation`. The barrier on the rare side replaces the
 * fence on the frequent one. (Asymmetric Dekker locking; cf. D. Dice, M. Moir, W. Scherer, "Quickly Reacquirable Locks",
 * 2003.)
 *
 * Where the kernel has no membarrier, every thread releases its arena when it leaves. So does a thread that ends.
 *
 *     arena->holder == t    =>  t->arena is the arena, or, during an attempt to take it over, &culet_arena_none
 *     t->arena == arena     =>  arena->holder == t
 *
 * So inside an arena a thread does not read its own `arena` again: it may be &culet_arena_none for a moment. */
#pragma once

#include "memory_orders.h"
#include "types.h"

/* The calling thread. */
extern _Thread_local struct culet_thread culet_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A unit without a free block. */
extern struct culet_unit culet_no_unit;

/* Stands for the arena of a thread that holds none: no class has a current unit, no slab has its number. */
extern struct culet_arena culet_arena_none;

/* Once, before any other use. `thread_ended` is called by each thread that ends, when it holds no arena any more. */
void culet_arena_setup(void (*thread_ended)(void));

/* Stores CULET_INSIDE to `busy` and returns the thread's arena, which may be &culet_arena_none. To be followed by
 * culet_arena_leave_held, or by a slow path that enters again. */
static inline struct culet_arena *culet_arena_enter_held(struct culet_thread *thread)
{
    atomic_store_explicit(&thread->busy, CULET_INSIDE, CULET_ORDER_ENTER_BUSY);
    atomic_signal_fence(memory_order_seq_cst);
    return atomic_load_explicit(&thread->arena, CULET_ORDER_ENTER_ARENA);
}

/* By a thread that keeps its arena. */
static inline void culet_arena_leave_held(struct culet_thread *thread)
{
    atomic_store_explicit(&thread->busy, CULET_OUTSIDE, CULET_ORDER_LEAVE_BUSY);
}

/* Enters, and acquires an arena first if the thread holds none. Also where the thread is already inside. */
struct culet_arena *culet_arena_enter(void);

/* Leaves the arena that the thread has entered. A thread that may not keep it releases it. */
void culet_arena_leave(struct culet_arena *arena);

/* The arena of that number; NULL if there is none. */
struct culet_arena *culet_arena(unsigned number);

/* Arenas in use are the numbers below this. */
unsigned culet_arena_count(void);

/* By a thread that is inside another arena: keeps every thread out of this one until culet_arena_unlock. False: a thread
 * is inside, or it is locked. Its holder loses it. */
bool culet_arena_try_lock(struct culet_arena *arena);
void culet_arena_unlock(struct culet_arena *arena);

/* For purges: enters that arena, whoever held it. Other threads wait meanwhile: the caller must be brief and make no
 * system call. False: its holder is inside, and was for some time. The calling thread gives up the arena that it holds.
 * Ends by culet_arena_leave_after_purge, which leaves the arena without a holder. */
bool culet_arena_enter_for_purge(struct culet_arena *arena);
void culet_arena_leave_after_purge(struct culet_arena *arena);

/* Threads that have allocated and have not ended. */
size_t culet_arena_threads(void);

/* Whether the calling thread is inside an arena, or about to enter or to leave one. */
bool culet_arena_inside(void);

/* Around fork: keeps every other thread out of all arenas. Reset: in the child, where no other thread holds one; whether
 * there were other threads that may have been in the middle of a remote free, which they do outside of their arenas. */
void culet_arena_freeze(void);
void culet_arena_unfreeze(void);
bool culet_arena_reset(void);
