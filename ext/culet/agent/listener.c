#include "agent/listener.h" /* ruby.h defines _GNU_SOURCE, hence first */

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
#include "agent/peer.h"
#include "agent/socket.h"

/* From linux/prctl.h, which older distributions' headers may lack: "Yama" in ASCII. */
#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

#define STACK_BYTES ((size_t)256 << 10)
#define CLIENTS 16
#define NOT_ROOTS 12       /* clients that are not root's: root is let in even if the process's own user floods it */
#define OF_ONE_PROCESS 2
#define READ_MS 2000       /* for a question to come */
#define PATIENCE_MS 100    /* the same while others wait to be let in */
#define WORK_MS 10000      /* for an answer, beyond its limit */
#define REST_MS 100        /* after the kernel refused a connection for want of something */
#define BREATHER_MS 10     /* after so many refusals, as whoever is refused can come again at once */
#define REFUSALS 64
#define LARGEST_COPIED ((off_t)1 << 30)

/* Of the question that the main thread has. LEFT: nobody waits for the answer that is being worked on. */
enum state { IDLE, ASKED, WORKED_ON, ANSWERED, LEFT };

static struct {
  pthread_mutex_t lock; /* for all that follows; held for moments only */
  enum state state;
  struct culet_question question;
  int64_t until; /* when it is given up */
  struct culet_text text;
  struct culet_copy copy; /* ended -1: none */
  char sentence[CULET_SENTENCE_BYTES + 1];
  int signal;
  int started;
  int ended;
  int no_child; /* a fork is under way whose child is to have no agent */
  int error;    /* why nobody listens; 0: somebody does */
  int bell;     /* an eventfd: the main thread has changed the state; -1: none */
  struct culet_agent_socket socket;
  struct culet_client clients[CLIENTS]; /* changed by the listener alone; their descriptors with the lock */
} agent = {.lock = PTHREAD_MUTEX_INITIALIZER, .copy = {-1, -1}, .bell = -1, .socket = {.fd = -1}};

/* The listener's own. */
static struct culet_client *asking; /* whose question the main thread has; NULL: it hung up */
static uint64_t turns;
static unsigned refusals;

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

/* A fork meanwhile: no child keeps a connection that it does not know of. */
static void
drop(struct culet_client *client)
{
  pid_t copy = client->stage == CLIENT_COPYING ? client->copy_pid : 0;

  lock();
  culet_client_close(client);
  if (asking == client && agent.state == ASKED) agent.state = IDLE;
  unlock();
  if (asking == client) asking = NULL;
  if (copy > 0) (void)waitpid(copy, NULL, WNOHANG); /* as in leave_copy */
}

static void
answer(struct culet_client *client, struct culet_text *text, const char *error)
{
  lock();
  culet_client_answer(client, text, error);
  unlock();
  if (asking == client) asking = NULL;
}

static struct culet_client *
oldest(enum culet_stage stage)
{
  struct culet_client *found = NULL;

  for (struct culet_client *one = agent.clients; one < agent.clients + CLIENTS; one++)
    if (one->stage == stage && (found == NULL || one->turn < found->turn)) found = one;
  return found;
}

static struct culet_client *
free_place(void)
{
  struct culet_client *slow = oldest(CLIENT_READING), *vacant = oldest(CLIENT_NONE);

  if (vacant == NULL && slow != NULL && culet_now_ms() - slow->since >= PATIENCE_MS) drop(vacant = slow);
  return vacant;
}

/* Whether there are as many of its kind as may be. */
static int
is_crowded(const struct culet_peer *peer)
{
  int of_process = 0, not_roots = 0;

  for (const struct culet_client *one = agent.clients; one < agent.clients + CLIENTS; one++) {
    if (one->stage == CLIENT_NONE) continue;
    of_process += peer->pid > 0 && one->peer.pid == peer->pid;
    not_roots += one->peer.uid != 0;
  }
  return of_process >= OF_ONE_PROCESS || (peer->uid != 0 && not_roots >= NOT_ROOTS);
}

/* ---- being asked ---- */

static void
turn_away(int connection, const char *word, const char *sentence)
{
  char line[CULET_SENTENCE_BYTES + 16];
  int length = snprintf(line, sizeof(line), "%s%s\n", word, sentence);

  (void)!send(connection, line, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
  close(connection);
  refusals++;
}

/* Accepts with the lock: see drop. */
static void
let_in(void)
{
  struct culet_client *place = free_place();
  struct culet_peer peer;
  const char *refusal;
  int connection;

  lock();
  connection = accept4(agent.socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  refusal = connection >= 0 ? culet_peer_refusal(connection, &peer) : NULL;
  if (connection >= 0 && (refusal != NULL || place == NULL || is_crowded(&peer))) {
    turn_away(connection, refusal != NULL ? "error " : "busy", refusal != NULL ? refusal : "");
  } else if (connection >= 0) {
    int64_t now = culet_now_ms();
    *place = (struct culet_client){.stage = CLIENT_READING, .connection = connection, .peer = peer, .turn = ++turns, .since = now, .until = now + READ_MS};
  }
  unlock();
  if (refusals >= REFUSALS) {
    refusals = 0;
    (void)poll(NULL, 0, BREATHER_MS);
  }
  if (connection < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
    (void)poll(NULL, 0, REST_MS); /* no descriptors or memory left: who waits is served once there are */
}

/*
 * Under Yama's ptrace_scope 1 a process is read by its ancestors alone, or by the one that it names and that one's
 * children: whoever asks for this detail reads the rest from outside.
 */
static void
admit(pid_t asker)
{
  if (asker > 0) (void)prctl(PR_SET_PTRACER, (unsigned long)asker, 0, 0, 0); /* EINVAL: no Yama, nothing to allow */
}

/* ---- the main thread's question ---- */

/* The question whose turn it is. There is one copy of the process at a time, for the memory that it takes. */
static struct culet_client *
next_question(void)
{
  int copying = oldest(CLIENT_COPYING) != NULL;
  struct culet_client *found = NULL;

  for (struct culet_client *one = agent.clients; one < agent.clients + CLIENTS; one++) {
    if (one->stage != CLIENT_QUEUED || (copying && one->question.subject == CULET_UNUSED)) continue;
    if (found == NULL || one->turn < found->turn) found = one;
  }
  return found;
}

static void
refuse_all(const char *sentence)
{
  struct culet_client *client;

  while ((client = oldest(CLIENT_QUEUED)) != NULL) answer(client, NULL, sentence);
}

/*
 * Leaves the oldest question to the main thread, if that has none. The signal is raised in this thread: whoever else is in
 * a system call is not disturbed by it.
 */
static void
ask_main_thread(void)
{
  struct culet_client *client = next_question();

  if (client == NULL) return;
  lock();
  if (agent.state == IDLE && !agent.ended) {
    agent.question = client->question;
    agent.sentence[0] = '\0';
    agent.state = ASKED;
    client->stage = CLIENT_ASKING;
    asking = client;
    agent.until = culet_now_ms() + client->wait_ms;
    admit(client->peer.pid);
    pthread_kill(pthread_self(), agent.signal); /* with the lock: never after culet_listener_end has had it */
  }
  enum state state = agent.state;
  int ended = agent.ended;
  unlock();
  if (ended) refuse_all("it is just ending");
  else if (state == LEFT) refuse_all("it is still counting for an earlier question that was given up; ask again in a while");
}

/* The client whose answer has come, in its next stage. */
static void
hand_over(const struct culet_copy *copy, struct culet_text *text, const char *sentence)
{
  struct culet_client *client = asking;

  if (copy->ended >= 0) {
    lock();
    client->copy = *copy;
    client->copy_pid = 0;
    client->copy_whole = 0;
    client->until = culet_now_ms() + (int64_t)(client->question.limit_seconds * 1000) + WORK_MS;
    client->stage = CLIENT_COPYING;
    unlock();
    asking = NULL;
  } else {
    answer(client, text, sentence[0] != '\0' ? sentence : NULL);
  }
}

/* What became of the question that the main thread has. */
static void
look_at_main_thread(int64_t now)
{
  const char *complaint = NULL;
  char sentence[CULET_SENTENCE_BYTES + 1];
  struct culet_copy copy;
  struct culet_text text;
  enum state state;

  lock();
  state = agent.state;
  if (state == ASKED && now >= agent.until) {
    agent.state = IDLE;
    complaint = "its main thread did not come to run Ruby code in time, it is busy or blocked in C code; ask again, or let it take longer with --wait";
  } else if (state == WORKED_ON && now >= agent.until) {
    agent.state = LEFT;
    complaint = "it began to count its objects and did not come to an end";
  } else if (state == ANSWERED) {
    agent.state = IDLE;
    memcpy(sentence, agent.sentence, sizeof(sentence));
  }
  text = agent.text;
  copy = agent.copy;
  agent.text = (struct culet_text){NULL, 0, 0, 0};
  agent.copy = (struct culet_copy){-1, -1};
  unlock();

  if (state == ANSWERED && asking != NULL) {
    hand_over(&copy, &text, sentence);
  } else if (copy.ended >= 0) {
    close(copy.ended);
    close(copy.text);
  } else {
    culet_text_free(&text);
  }
  if (complaint != NULL && asking != NULL) answer(asking, NULL, complaint);
}

/* ---- a copy's answer ---- */

static void
leave_copy(struct culet_client *client)
{
  lock();
  close(client->copy.ended);
  close(client->copy.text);
  client->stage = CLIENT_ASKING;
  unlock();
  if (client->copy_pid > 0) (void)waitpid(client->copy_pid, NULL, WNOHANG); /* ours where this process is its container's first */
}

static void
map_answer(struct culet_client *client)
{
  struct culet_text text = {NULL, 0, 0, 0};
  struct stat stat;
  void *bytes = MAP_FAILED;

  if (client->copy_whole && fstat(client->copy.text, &stat) == 0 && stat.st_size > 0 && stat.st_size <= LARGEST_COPIED)
    bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, client->copy.text, 0);
  leave_copy(client);
  if (bytes == MAP_FAILED) {
    answer(client, NULL, "the copy of it that was to answer ended before it had; there may be no memory for it");
    return;
  }
  text = (struct culet_text){bytes, (size_t)stat.st_size, (size_t)stat.st_size, 0};
  answer(client, &text, NULL);
}

static void
read_copy(struct culet_client *client)
{
  ssize_t got;

  if (client->copy_pid == 0) {
    pid_t number;
    got = read(client->copy.ended, &number, sizeof(number));
    if (got == (ssize_t)sizeof(number)) client->copy_pid = number;
  } else {
    char byte;
    got = read(client->copy.ended, &byte, 1);
    if (got == 1) client->copy_whole = 1;
  }
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) map_answer(client);
}

/*
 * As long as the copy holds the pipe's other end its number is its own, and so is the descriptor that was got by it before.
 * Before Linux 5.3 it is left to its limit of time.
 */
static void
kill_copy(const struct culet_client *client)
{
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
  struct pollfd ended = {client->copy.ended, POLLIN, 0};
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
  leave_copy(client);
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
  } else if (client->stage == CLIENT_TAKING && events != 0) {
    lock();
    culet_client_send(client);
    unlock();
  } else if ((events & (POLLHUP | POLLERR)) != 0) {
    if (client->stage == CLIENT_COPYING) kill_copy(client);
    drop(client);
  } else if (now >= client->until && client->stage == CLIENT_COPYING) {
    end_copy(client);
  } else if (now >= client->until && (client->stage == CLIENT_READING || client->stage == CLIENT_TAKING)) {
    drop(client);
  }
}

static int64_t
earlier(int64_t one, int64_t other)
{
  return one < 0 || other < one ? other : one;
}

/* When something is due; -1: nothing is. */
static int
next_timeout(int64_t now)
{
  int64_t next = -1;

  for (const struct culet_client *one = agent.clients; one < agent.clients + CLIENTS; one++)
    if (one->stage == CLIENT_READING || one->stage == CLIENT_COPYING || one->stage == CLIENT_TAKING) next = earlier(next, one->until);
  lock();
  if (agent.state == ASKED || agent.state == WORKED_ON) next = earlier(next, agent.until);
  unlock();
  if (next < 0) return -1;
  next = next > now ? next - now : 0;
  return next < INT_MAX ? (int)next : INT_MAX;
}

static void
hear_bell(void)
{
  uint64_t rings;

  (void)!read(agent.bell, &rings, sizeof(rings));
}

enum { WAKE_UP, LISTENER, FIRST_CLIENT, FIRST_COPY = FIRST_CLIENT + CLIENTS, POLLED = FIRST_COPY + CLIENTS };

static void
wait_and_serve(struct pollfd *polled)
{
  int64_t now;

  polled[WAKE_UP] = (struct pollfd){agent.bell, POLLIN, 0};
  polled[LISTENER] = (struct pollfd){agent.socket.fd, POLLIN, 0};
  for (int i = 0; i < CLIENTS; i++) {
    const struct culet_client *one = &agent.clients[i];
    polled[FIRST_CLIENT + i] = (struct pollfd){one->stage != CLIENT_NONE ? one->connection : -1, culet_client_events(one), 0};
    polled[FIRST_COPY + i] = (struct pollfd){one->stage == CLIENT_COPYING ? one->copy.ended : -1, POLLIN, 0};
  }
  if (poll(polled, POLLED, next_timeout(culet_now_ms())) < 0) return;
  if (polled[WAKE_UP].revents != 0) hear_bell();
  now = culet_now_ms();
  look_at_main_thread(now);
  for (int i = 0; i < CLIENTS; i++)
    if (polled[FIRST_CLIENT + i].fd >= 0) serve(&agent.clients[i], polled[FIRST_CLIENT + i].revents, polled[FIRST_COPY + i].revents, now);
  if (polled[LISTENER].revents != 0) let_in();
  ask_main_thread();
}

static void *
listen_for_ever(void *unused)
{
  struct pollfd polled[POLLED];

  (void)unused;
  prctl(PR_SET_NAME, "culet-agent", 0, 0, 0);
  for (;;) wait_and_serve(polled);
  return NULL;
}

/* The thread takes no signals but the one that it raises itself. Returns 0 or an error's number. */
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
  error = pthread_create(&thread, &attributes, listen_for_ever, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}

/* Opens the socket and starts the thread. Returns 0 or an error's number. */
static int
listen_now(int sweep)
{
  if ((agent.error = culet_agent_socket_open(&agent.socket, sweep)) != 0) return agent.error;
  agent.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  agent.error = agent.bell < 0 ? errno : start_thread();
  if (agent.error != 0) {
    culet_agent_socket_close(&agent.socket, 0);
    if (agent.bell >= 0) close(agent.bell);
    agent.bell = -1;
  }
  return agent.error;
}

/* ---- fork ---- */

/* A child has none of its parent's threads, and a number of its own. */
static void
in_child(void)
{
  pthread_mutex_init(&agent.lock, NULL);
  culet_agent_socket_close(&agent.socket, 1);
  if (agent.bell >= 0) close(agent.bell);
  agent.bell = -1;
  for (struct culet_client *one = agent.clients; one < agent.clients + CLIENTS; one++) culet_client_close(one);
  if (agent.copy.ended >= 0) {
    close(agent.copy.ended);
    close(agent.copy.text);
  }
  agent.copy = (struct culet_copy){-1, -1};
  culet_text_free(&agent.text);
  agent.state = IDLE;
  asking = NULL;
  if (!agent.ended && !agent.no_child) listen_now(0);
}

void
culet_listener_no_child(int begins)
{
  agent.no_child = begins;
}

/* ---- for the main thread ---- */

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
ring(void)
{
  static const uint64_t once = 1;

  (void)!write(agent.bell, &once, sizeof(once));
}

/* From here on it has the time that the answer may take. */
int
culet_listener_take(struct culet_question *question)
{
  int asked;

  lock();
  asked = agent.state == ASKED;
  if (asked) {
    agent.state = WORKED_ON;
    *question = agent.question;
    agent.until = culet_now_ms() + (int64_t)(question->limit_seconds * 1000) + WORK_MS;
    ring();
  }
  unlock();
  return asked;
}

static void
answered(struct culet_text *text, const struct culet_copy *copy, const char *error)
{
  lock();
  if (agent.state == WORKED_ON) {
    agent.text = *text;
    agent.copy = *copy;
    snprintf(agent.sentence, sizeof(agent.sentence), "%s", error != NULL ? error : "");
    agent.state = ANSWERED;
  } else {
    culet_text_free(text);
    if (copy->ended >= 0) {
      close(copy->ended);
      close(copy->text);
    }
    agent.state = IDLE;
  }
  ring();
  unlock();
}

void
culet_listener_answer(struct culet_text *text, const char *error)
{
  answered(text, &(struct culet_copy){-1, -1}, error);
}

void
culet_listener_answer_later(const struct culet_copy *copy)
{
  answered(&(struct culet_text){NULL, 0, 0, 0}, copy, NULL);
}

void
culet_listener_end(void)
{
  lock();
  agent.ended = 1;
  culet_agent_socket_forget(&agent.socket);
  unlock();
}
