#define _GNU_SOURCE
#include "writer.h"

#include <errno.h>
#include <pthread.h>

/* Looking at the clock takes some 30 ns, or 500 where the kernel must be called for it: spread over this many events
 * it is not felt. */
#define EVENTS_PER_TIME 64

_Thread_local struct culet_writer culet_writer;

static pthread_key_t ending;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static bool has_loan(const struct culet_writer *writer)
{
    return writer->chunk && writer->epoch == atomic_load(&culet_shared->epoch);
}

/* The thread ends: another one can write on in its chunk. */
static void give_back(struct culet_writer *writer)
{
    struct culet_trace_chunk *chunk = writer->chunk;
    bool lent = has_loan(writer);

    writer->chunk = NULL;
    if (lent)
        culet_file_return(chunk);
}

static void end_of_thread(void *own)
{
    struct culet_writer *writer = own;

    writer->busy = true;
    writer->leaving = true;
    give_back(writer);
    writer->busy = false;
}

/* The process ends in good order; what is recorded after this is in the file only if `culet trace` collects it. */
__attribute__((destructor)) static void end_of_process(void)
{
    int saved = errno;

    culet_writer.busy = true;
    culet_file_flush_all();
    culet_writer.busy = false;
    errno = saved;
}

static void make_key(void)
{
    has_key = pthread_key_create(&ending, end_of_thread) == 0;
}

/* Without a key (the program uses all 1,024) the chunks of ended threads are left as they are. */
static void introduce(struct culet_writer *writer)
{
    writer->number = culet_file_thread();
    pthread_once(&once, make_key);
    if (has_key)
        pthread_setspecific(ending, writer);
}

static void put_time(struct culet_writer *writer)
{
    uint8_t *at = culet_writer_at(writer);

    *at++ = CULET_EVENT_TIME;
    at = culet_put(at, culet_file_time());
    atomic_store_explicit(&writer->chunk->used, (uint32_t)(at - (uint8_t *)writer->chunk), memory_order_release);
}

static void put_thread(struct culet_writer *writer)
{
    uint8_t *at = culet_writer_at(writer);

    writer->expected = atomic_load(&culet_sequence);
    writer->got = writer->gone = 0;
    *at++ = CULET_EVENT_THREAD;
    at = culet_put(at, writer->number);
    at = culet_put(at, writer->expected);
    atomic_store_explicit(&writer->chunk->used, (uint32_t)(at - (uint8_t *)writer->chunk), memory_order_release);
}

/* Room for THREAD, TIME and an event. */
static bool roomy(const struct culet_trace_chunk *chunk)
{
    return atomic_load_explicit(&chunk->used, memory_order_relaxed) <= CULET_TRACE_CHUNK - 3 * CULET_EVENT_MAX;
}

/* A loan of a chunk with room; false when there is none to be had. */
static bool borrow(struct culet_writer *writer)
{
    do {
        if (has_loan(writer))
            culet_file_full(writer->chunk);
        writer->chunk = culet_file_lend();
        writer->epoch = atomic_load(&culet_shared->epoch);
    } while (writer->chunk && !roomy(writer->chunk));
    if (!writer->chunk)
        return false;
    if (!writer->number)
        introduce(writer);
    put_thread(writer);
    return true;
}

bool culet_writer_prepare(struct culet_writer *writer)
{
    int saved = errno;
    bool stays = has_loan(writer) && roomy(writer->chunk) &&
                 !atomic_load_explicit(&culet_shared->stopped, memory_order_relaxed);

    bool ready = stays || borrow(writer);
    if (ready) {
        put_time(writer);
        writer->pass = writer->epoch;
        writer->countdown = writer->leaving ? 1 : EVENTS_PER_TIME;
    }
    errno = saved;
    return ready;
}

void culet_writer_pause(struct culet_writer *writer)
{
    int saved = errno;

    if (writer->leaving) {
        give_back(writer);
    } else {
        writer->pass = CULET_NO_PASS;
        if (has_loan(writer))
            culet_file_flush(writer->chunk);
    }
    errno = saved;
}
