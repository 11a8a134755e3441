#include "agent/listener.h" /* first: ruby.h defines _GNU_SOURCE */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/client.h"
#include "agent/credentials.h"
#include "agent/socket.h"
#include "common/tracer.h"

#define STACK_BYTES ((size_t)256 << 10)
#define CLIENTS 16
#define NON_ROOT_CLIENTS 12       /* the rest are reserved for root, in case the process's own user floods it */
#define CLIENTS_PER_PROCESS 2
#define READ_MS 2000       /* for the request to arrive */
#define CROWDED_READ_MS 100    /* the same while further clients wait */
#define WORK_MS 10000      /* for the answer, in addition to the request's limit */
#define ACCEPT_RETRY_MS 100        /* pause when the kernel lacks descriptors or memory */
#define REJECTION_PAUSE_MS 10     /* pause after REJECTIONS_PER_PAUSE, because rejected clients reconnect at once */
#define REJECTIONS_PER_PAUSE 64
#define LARGEST_COPIED ((off_t)1 << 30)

/* State of the main thread's request. ABANDONED: the client is gone, the main thread still works. */
enum state { IDLE, REQUESTED, IN_PROGRESS, ANSWERED, ABANDONED };

static struct {
  pthread_mutex_t lock; /* for the members below; held briefly */
  enum state state;
  struct culet_request request;
  int64_t until; /* deadline */
  struct culet_buffer buffer;
  struct culet_copy copy; /* status -1: none */
  char message[CULET_ERROR_BYTES + 1];
  int signal;
  int started;
  int ended;
  int no_child; /* during a fork whose child gets no agent */
  int error;    /* why the process does not listen; 0: it listens */
  int wakeup;     /* eventfd: the main thread changed the state; -1: none */
  struct culet_agent_socket socket;
  struct culet_client clients[CLIENTS]; /* changed by the listener only; descriptors with the lock */
} agent = {.lock = PTHREAD_MUTEX_INITIALIZER, .copy = {-1, -1}, .wakeup = -1, .socket = {.fd = -1}};

/* Used by the listener thread only. */
static struct culet_client *current; /* whose request the main thread has; NULL: it hung up */
static uint64_t last_sequence;
static unsigned rejections;

static void
lock(void)
{
  pthread_mutex_lock(&agent.lock);
}

static void
unlock(void)
{
  pthread_mutex_unlock(&agent.lock);
}

/* ---- clients ---- */

/* With the lock, so that a child forked meanwhile closes every connection. */
static void
drop(struct culet_client *client)
{
  pid_t copy = client->stage == CLIENT_COPYING ? client->copy_pid : 0;

  lock();
  culet_client_close(client);
  if (current == client && agent.state == REQUESTED) agent.state = IDLE;
  unlock();
  if (current == client) current = NULL;
  if (copy > 0) (void)waitpid(copy, NULL, WNOHANG); /* see close_copy */
}

static void
answer(struct culet_client *client, struct culet_buffer *buffer, const char *error)
{
  lock();
  culet_client_answer(client, buffer, error);
  unlock();
  if (current == client) current = NULL;
}

static struct culet_client *
oldest(enum culet_stage stage)
{
  struct culet_client *found = NULL;

  for (struct culet_client *one = agent.clients; one < agent.clients + CLIENTS; one++)
    if (one->stage == stage && (found == NULL || one->sequence < found->sequence)) found = one;
  return found;
}

static struct culet_client *
free_client(void)
{
  struct culet_client *slow = oldest(CLIENT_READING), *vacant = oldest(CLIENT_NONE);

  if (vacant == NULL && slow != NULL && culet_now_ms() - slow->since >= CROWDED_READ_MS) drop(vacant = slow);
  return vacant;
}

/* Whether the client's process, or its user, has too many connections. */
static int
is_over_limit(const struct culet_credentials *credentials)
{
  int of_process = 0, non_root = 0;

  for (const struct culet_client *one = agent.clients; one < agent.clients + CLIENTS; one++) {
    if (one->stage == CLIENT_NONE) continue;
    of_process += credentials->pid > 0 && one->credentials.pid == credentials->pid;
    non_root += one->credentials.uid != 0;
  }
  return of_process >= CLIENTS_PER_PROCESS || (credentials->uid != 0 && non_root >= NON_ROOT_CLIENTS);
}

/* ---- connections ---- */

static void
reject(int connection, const char *word, const char *message)
{
  char line[CULET_ERROR_BYTES + 16];
  int length = snprintf(line, sizeof(line), "%s%s\n", word, message);

  (void)!send(connection, line, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
  close(connection);
  rejections++;
}

/* Accepts with the lock, as in drop. */
static void
accept_client(void)
{
  struct culet_client *client = free_client();
  struct culet_credentials credentials;
  const char *refusal;
  int connection;

  lock();
  connection = accept4(agent.socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  refusal = connection >= 0 ? culet_credentials_refusal(connection, &credentials) : NULL;
  if (connection >= 0 && (refusal != NULL || client == NULL || is_over_limit(&credentials))) {
    reject(connection, refusal != NULL ? "error " : "busy", refusal != NULL ? refusal : "");
  } else if (connection >= 0) {
    int64_t now = culet_now_ms();
    *client = (struct culet_client){.stage = CLIENT_READING, .connection = connection, .credentials = credentials, .sequence = ++last_sequence, .since = now, .until = now + READ_MS};
  }
  unlock();
  if (rejections >= REJECTIONS_PER_PAUSE) {
    rejections = 0;
    (void)poll(NULL, 0, REJECTION_PAUSE_MS);
  }
  if (connection < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
    (void)poll(NULL, 0, ACCEPT_RETRY_MS); /* out of descriptors or memory: the client waits in the backlog */
}

/* ---- the main thread's request ---- */

/* The oldest queued request. One copy of the process at a time, because of its memory. */
static struct culet_client *
next_request(void)
{
  int copying = oldest(CLIENT_COPYING) != NULL;
  struct culet_client *found = NULL;

  for (struct culet_client *one = agent.clients; one < agent.clients + CLIENTS; one++) {
    if (one->stage != CLIENT_QUEUED || (copying && one->request.kind == CULET_UNUSED)) continue;
    if (found == NULL || one->sequence < found->sequence) found = one;
  }
  return found;
}

static void
fail_all(const char *message)
{
  struct culet_client *client;

  while ((client = oldest(CLIENT_QUEUED)) != NULL) answer(client, NULL, message);
}

/*
 * Passes the oldest request to the main thread, if it has none. The signal is raised in this thread, so that no system
 * call of another thread is interrupted.
 */
static void
pass_to_main_thread(void)
{
  struct culet_client *client = next_request();

  if (client == NULL) return;
  lock();
  if (agent.state == IDLE && !agent.ended) {
    agent.request = client->request;
    agent.message[0] = '\0';
    agent.state = REQUESTED;
    client->stage = CLIENT_IN_PROGRESS;
    current = client;
    agent.until = culet_now_ms() + client->wait_ms;
    if (client->credentials.pid > 0) (void)culet_allow_tracer(client->credentials.pid); /* the client reads the rest from outside */
    pthread_kill(pthread_self(), agent.signal); /* with the lock: never after culet_listener_end */
  }
  enum state state = agent.state;
  int ended = agent.ended;
  unlock();
  if (ended) fail_all("it is just ending");
  else if (state == ABANDONED) fail_all("it is still counting for an earlier question that was given up; ask again in a while");
}

/* Passes the main thread's answer to the client. */
static void
deliver(const struct culet_copy *copy, struct culet_buffer *buffer, const char *message)
{
  struct culet_client *client = current;

  if (copy->status >= 0) {
    lock();
    client->copy = *copy;
    client->copy_pid = 0;
    client->copy_whole = 0;
    client->until = culet_now_ms() + (int64_t)(client->request.limit_seconds * 1000) + WORK_MS;
    client->stage = CLIENT_COPYING;
    unlock();
    current = NULL;
  } else {
    answer(client, buffer, message[0] != '\0' ? message : NULL);
  }
}

/* Handles the main thread's answer, or a missed deadline. */
static void
check_main_thread(int64_t now)
{
  const char *problem = NULL;
  char message[CULET_ERROR_BYTES + 1];
  struct culet_copy copy;
  struct culet_buffer buffer;
  enum state state;

  lock();
  state = agent.state;
  if (state == REQUESTED && now >= agent.until) {
    agent.state = IDLE;
    problem = "its main thread did not come to run Ruby code in time, it is busy or blocked in C code; ask again, or let it take longer with --wait";
  } else if (state == IN_PROGRESS && now >= agent.until) {
    agent.state = ABANDONED;
    problem = "it began to count its objects and did not come to an end";
  } else if (state == ANSWERED) {
    agent.state = IDLE;
    memcpy(message, agent.message, sizeof(message));
  }
  buffer = agent.buffer;
  copy = agent.copy;
  agent.buffer = (struct culet_buffer){NULL, 0, 0, 0};
  agent.copy = (struct culet_copy){-1, -1};
  unlock();

  if (state == ANSWERED && current != NULL) {
    deliver(&copy, &buffer, message);
  } else if (copy.status >= 0) {
    close(copy.status);
    close(copy.output);
  } else {
    culet_buffer_free(&buffer);
  }
  if (problem != NULL && current != NULL) answer(current, NULL, problem);
}

/* ---- answers of copies ---- */

static void
close_copy(struct culet_client *client)
{
  lock();
  close(client->copy.status);
  close(client->copy.output);
  client->stage = CLIENT_IN_PROGRESS;
  unlock();
  if (client->copy_pid > 0) (void)waitpid(client->copy_pid, NULL, WNOHANG); /* the copy is our child if this process is its container's first */
}

static void
map_answer(struct culet_client *client)
{
  struct culet_buffer buffer = {NULL, 0, 0, 0};
  struct stat stat;
  void *bytes = MAP_FAILED;

  if (client->copy_whole && fstat(client->copy.output, &stat) == 0 && stat.st_size > 0 && stat.st_size <= LARGEST_COPIED)
    bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, client->copy.output, 0);
  close_copy(client);
  if (bytes == MAP_FAILED) {
    answer(client, NULL, "the copy of it that was to answer ended before it had; there may be no memory for it");
    return;
  }
  buffer = (struct culet_buffer){bytes, (size_t)stat.st_size, (size_t)stat.st_size, 0};
  answer(client, &buffer, NULL);
}

static void
read_copy(struct culet_client *client)
{
  ssize_t got;

  if (client->copy_pid == 0) {
    pid_t number;
    got = read(client->copy.status, &number, sizeof(number));
    if (got == (ssize_t)sizeof(number)) client->copy_pid = number;
  } else {
    char byte;
    got = read(client->copy.status, &byte, 1);
    if (got == 1) client->copy_whole = 1;
  }
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) map_answer(client);
}

/*
 * While the copy holds the other end of the pipe its PID cannot be reused, so the pidfd is the copy's. Before Linux 5.3
 * only the copy's CPU limit ends it.
 */
static void
kill_copy(const struct culet_client *client)
{
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
  struct pollfd ended = {client->copy.status, POLLIN, 0};
  int copy = client->copy_pid > 0 ? (int)syscall(SYS_pidfd_open, client->copy_pid, 0) : -1;

  if (copy < 0) return;
  if (poll(&ended, 1, 0) >= 0 && (ended.revents & POLLHUP) == 0) (void)syscall(SYS_pidfd_send_signal, copy, SIGKILL, NULL, 0);
  close(copy);
#else
  (void)client;
#endif
}

static void
end_copy(struct culet_client *client)
{
  kill_copy(client);
  close_copy(client);
  answer(client, NULL, "the copy of it that was to answer did not come to an end");
}

/* ---- the thread ---- */

static void
serve(struct culet_client *client, short events, short copy_events, int64_t now)
{
  if (client->stage == CLIENT_COPYING && copy_events != 0) {
    read_copy(client);
  } else if (client->stage == CLIENT_READING && events != 0) {
    lock();
    culet_client_read(client);
    unlock();
  } else if (client->stage == CLIENT_SENDING && events != 0) {
    lock();
    culet_client_send(client);
    unlock();
  } else if ((events & (POLLHUP | POLLERR)) != 0) {
    if (client->stage == CLIENT_COPYING) kill_copy(client);
    drop(client);
  } else if (now >= client->until && client->stage == CLIENT_COPYING) {
    end_copy(client);
  } else if (now >= client->until && (client->stage == CLIENT_READING || client->stage == CLIENT_SENDING)) {
    drop(client);
  }
}

static int64_t
earlier(int64_t one, int64_t other)
{
  return one < 0 || other < one ? other : one;
}

/* Milliseconds to the next deadline; -1: none. */
static int
next_timeout(int64_t now)
{
  int64_t next = -1;

  for (const struct culet_client *one = agent.clients; one < agent.clients + CLIENTS; one++)
    if (one->stage == CLIENT_READING || one->stage == CLIENT_COPYING || one->stage == CLIENT_SENDING) next = earlier(next, one->until);
  lock();
  if (agent.state == REQUESTED || agent.state == IN_PROGRESS) next = earlier(next, agent.until);
  unlock();
  if (next < 0) return -1;
  next = next > now ? next - now : 0;
  return next < INT_MAX ? (int)next : INT_MAX;
}

static void
drain_wakeups(void)
{
  uint64_t count;

  (void)!read(agent.wakeup, &count, sizeof(count));
}

enum { WAKE_UP, LISTENER, FIRST_CLIENT, FIRST_COPY = FIRST_CLIENT + CLIENTS, FDS = FIRST_COPY + CLIENTS };

static void
wait_and_serve(struct pollfd *fds)
{
  int64_t now;

  fds[WAKE_UP] = (struct pollfd){agent.wakeup, POLLIN, 0};
  fds[LISTENER] = (struct pollfd){agent.socket.fd, POLLIN, 0};
  for (int i = 0; i < CLIENTS; i++) {
    const struct culet_client *one = &agent.clients[i];
    fds[FIRST_CLIENT + i] = (struct pollfd){one->stage != CLIENT_NONE ? one->connection : -1, culet_client_events(one), 0};
    fds[FIRST_COPY + i] = (struct pollfd){one->stage == CLIENT_COPYING ? one->copy.status : -1, POLLIN, 0};
  }
  if (poll(fds, FDS, next_timeout(culet_now_ms())) < 0) return;
  if (fds[WAKE_UP].revents != 0) drain_wakeups();
  now = culet_now_ms();
  check_main_thread(now);
  for (int i = 0; i < CLIENTS; i++)
    if (fds[FIRST_CLIENT + i].fd >= 0) serve(&agent.clients[i], fds[FIRST_CLIENT + i].revents, fds[FIRST_COPY + i].revents, now);
  if (fds[LISTENER].revents != 0) accept_client();
  pass_to_main_thread();
}

static void *
run_thread(void *unused)
{
  struct pollfd fds[FDS];

  (void)unused;
  prctl(PR_SET_NAME, "culet-agent", 0, 0, 0);
  for (;;) wait_and_serve(fds);
  return NULL;
}

/* The thread blocks all signals except the one that it raises. Returns 0 or an errno. */
static int
start_thread(void)
{
  sigset_t but_ours, before;
  pthread_attr_t attributes;
  pthread_t thread;
  int error;

  sigfillset(&but_ours);
  sigdelset(&but_ours, agent.signal);
  if ((error = pthread_attr_init(&attributes)) != 0) return error;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_sigmask(SIG_SETMASK, &but_ours, &before);
  error = pthread_create(&thread, &attributes, run_thread, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}

/* Opens the socket and starts the thread. Returns 0 or an errno. */
static int
listen_now(int sweep)
{
  if ((agent.error = culet_agent_socket_open(&agent.socket, sweep)) != 0) return agent.error;
  agent.wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  agent.error = agent.wakeup < 0 ? errno : start_thread();
  if (agent.error != 0) {
    culet_agent_socket_close(&agent.socket, 0);
    if (agent.wakeup >= 0) close(agent.wakeup);
    agent.wakeup = -1;
  }
  return agent.error;
}

/* ---- fork ---- */

/* The child has no listener thread and needs a socket of its own. */
static void
in_child(void)
{
  pthread_mutex_init(&agent.lock, NULL);
  culet_agent_socket_close(&agent.socket, 1);
  if (agent.wakeup >= 0) close(agent.wakeup);
  agent.wakeup = -1;
  for (struct culet_client *one = agent.clients; one < agent.clients + CLIENTS; one++) culet_client_close(one);
  if (agent.copy.status >= 0) {
    close(agent.copy.status);
    close(agent.copy.output);
  }
  agent.copy = (struct culet_copy){-1, -1};
  culet_buffer_free(&agent.buffer);
  agent.state = IDLE;
  current = NULL;
  if (!agent.ended && !agent.no_child) listen_now(0);
}

void
culet_listener_no_child(int begins)
{
  agent.no_child = begins;
}

/* ---- called by the main thread ---- */

int
culet_listener_start(int signal)
{
  if (agent.started) return agent.error;
  agent.started = 1;
  agent.signal = signal;
  if ((agent.error = pthread_atfork(lock, unlock, in_child)) != 0) return agent.error;
  return listen_now(1);
}

int
culet_listener_error(void)
{
  return agent.error;
}

static void
wake_listener(void)
{
  static const uint64_t once = 1;

  (void)!write(agent.wakeup, &once, sizeof(once));
}

/* The deadline is now that of the answer. */
int
culet_listener_take(struct culet_request *request)
{
  int requested;

  lock();
  requested = agent.state == REQUESTED;
  if (requested) {
    agent.state = IN_PROGRESS;
    *request = agent.request;
    agent.until = culet_now_ms() + (int64_t)(request->limit_seconds * 1000) + WORK_MS;
    wake_listener();
  }
  unlock();
  return requested;
}

static void
answered(struct culet_buffer *buffer, const struct culet_copy *copy, const char *error)
{
  lock();
  if (agent.state == IN_PROGRESS) {
    agent.buffer = *buffer;
    agent.copy = *copy;
    snprintf(agent.message, sizeof(agent.message), "%s", error != NULL ? error : "");
    agent.state = ANSWERED;
  } else {
    culet_buffer_free(buffer);
    if (copy->status >= 0) {
      close(copy->status);
      close(copy->output);
    }
    agent.state = IDLE;
  }
  wake_listener();
  unlock();
}

void
culet_listener_answer(struct culet_buffer *buffer, const char *error)
{
  answered(buffer, &(struct culet_copy){-1, -1}, error);
}

void
culet_listener_answer_later(const struct culet_copy *copy)
{
  answered(&(struct culet_buffer){NULL, 0, 0, 0}, copy, NULL);
}

void
culet_listener_end(void)
{
  lock();
  agent.ended = 1;
  culet_agent_socket_forget(&agent.socket);
  unlock();
}
