#define _GNU_SOURCE
#include "writer.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Reading the clock takes 30 ns, or 500 ns with a system call. */
#define EVENTS_PER_TIME 64

_Thread_local struct culet_writer culet_writer;

static _Atomic uint32_t threads;
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static bool has_chunk(const struct culet_writer *writer)
{
    return writer->chunk && writer->epoch == atomic_load(&culet_process->epoch);
}

static void return_chunk(struct culet_writer *writer)
{
    struct culet_trace_chunk *chunk = writer->chunk;
    bool valid = has_chunk(writer);

    writer->chunk = NULL;
    if (valid)
        culet_chunks_return(chunk);
}

static void on_thread_end(void *own)
{
    struct culet_writer *writer = own;

    writer->busy = true;
    writer->exiting = true;
    return_chunk(writer);
    writer->busy = false;
}

/* Not where a signal handler has interrupted the recorder, which may hold the lock. */
static void write_all(void)
{
    int saved = errno;

    if (culet_writer.busy)
        return;
    culet_writer.busy = true;
    culet_chunks_flush_all();
    culet_writer.busy = false;
    errno = saved;
}

/* Later events of this thread are written one by one. */
__attribute__((destructor)) static void on_process_end(void)
{
    if (!culet_writer.busy)
        on_thread_end(&culet_writer);
    write_all();
}

/* Runs no destructors; Ruby's exit! calls it. A child of vfork has its parent's chunks. */
__attribute__((visibility("default"))) _Noreturn void _exit(int status)
{
    if (culet_process->header && culet_process->header->pid == (uint32_t)getpid())
        write_all();
    for (;;)
        syscall(SYS_exit_group, status);
}

/* The file of a child begins with the parent's events before the fork. */
static void make_key(void)
{
    has_key = pthread_key_create(&thread_end, on_thread_end) == 0;
    pthread_atfork(write_all, NULL, NULL);
}

/* Without a key (the program uses all 1,024) the chunks of ended threads are not reused. */
static void register_thread(struct culet_writer *writer)
{
    writer->number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    pthread_once(&once, make_key);
    if (has_key)
        pthread_setspecific(thread_end, writer);
}

static void put_time(struct culet_writer *writer)
{
    uint8_t *at = culet_writer_at(writer);

    *at++ = CULET_EVENT_TIME;
    at = culet_encode_number(at, culet_file_time());
    atomic_store_explicit(&writer->chunk->used, (uint32_t)(at - (uint8_t *)writer->chunk), memory_order_release);
}

static void put_thread(struct culet_writer *writer)
{
    uint8_t *at = culet_writer_at(writer);

    writer->expected = atomic_load(&culet_sequence);
    writer->allocated = writer->freed = 0;
    *at++ = CULET_EVENT_THREAD;
    at = culet_encode_number(at, writer->number);
    at = culet_encode_number(at, writer->expected);
    atomic_store_explicit(&writer->chunk->used, (uint32_t)(at - (uint8_t *)writer->chunk), memory_order_release);
}

/* Room for THREAD, TIME and an event. */
static bool has_room(const struct culet_trace_chunk *chunk)
{
    return atomic_load_explicit(&chunk->used, memory_order_relaxed) <= CULET_TRACE_CHUNK - 3 * CULET_EVENT_MAX;
}

static bool take_chunk(struct culet_writer *writer)
{
    do {
        if (has_chunk(writer))
            culet_chunks_finish(writer->chunk);
        writer->chunk = culet_chunks_take();
        writer->epoch = atomic_load(&culet_process->epoch);
    } while (writer->chunk && !has_room(writer->chunk));
    if (!writer->chunk)
        return false;
    if (!writer->number)
        register_thread(writer);
    put_thread(writer);
    return true;
}

bool culet_writer_prepare(struct culet_writer *writer)
{
    int saved = errno;
    bool keeps = has_chunk(writer) && has_room(writer->chunk) &&
                 !atomic_load_explicit(&culet_process->stopped, memory_order_relaxed);

    bool ready = keeps || take_chunk(writer);
    if (ready) {
        put_time(writer);
        writer->ready_epoch = writer->epoch;
        writer->countdown = writer->exiting ? 1 : EVENTS_PER_TIME;
    }
    errno = saved;
    return ready;
}

void culet_writer_pause(struct culet_writer *writer)
{
    int saved = errno;

    if (writer->exiting) {
        return_chunk(writer);
    } else {
        writer->ready_epoch = CULET_NO_EPOCH;
        if (has_chunk(writer))
            culet_chunks_flush(writer->chunk);
    }
    errno = saved;
}
