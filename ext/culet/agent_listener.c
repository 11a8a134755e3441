#include "agent_listener.h" /* ruby.h defines _GNU_SOURCE, hence first */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* From linux/prctl.h, which older distributions' headers may lack: "Yama" in ASCII. */
#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

#define NAMES 4
#define BACKLOG 64
#define STACK_BYTES ((size_t)256 << 10)
#define LINE_BYTES 128
#define SENTENCE_BYTES 400
#define TALK_MS 10000     /* for one line to come, and for an answer to be taken */
#define LONGEST_MS 600000 /* nobody waits longer */
#define REST_MS 100       /* after the kernel refused a connection for want of something */

/* Of the one question that is dealt with. LEFT: nobody waits for the answer that is being worked on. */
enum state { IDLE, ASKED, WORKED_ON, ANSWERED, LEFT };

static struct {
  pthread_mutex_t lock;     /* for all that follows; held for moments only */
  pthread_cond_t answered;  /* state became ANSWERED */
  enum state state;
  struct culet_question question;
  struct culet_text text;
  char sentence[SENTENCE_BYTES + 1];
  int signal;
  int started;
  int ended;
  int error;      /* why nobody listens; 0: somebody does */
  int listening;  /* socket; -1: none */
  int connection; /* socket of the one who asks; -1: nobody */
} agent = {.lock = PTHREAD_MUTEX_INITIALIZER, .listening = -1, .connection = -1};

static struct timespec
after_ms(long ms)
{
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_sec += ms / 1000;
  time.tv_nsec += ms % 1000 * 1000000;
  if (time.tv_nsec >= 1000000000) {
    time.tv_nsec -= 1000000000;
    time.tv_sec++;
  }
  return time;
}

/* ---- the socket ---- */

static socklen_t
name_socket(struct sockaddr_un *address, int number)
{
  struct stat space = {0};
  char *name = address->sun_path + 1; /* a leading zero byte: abstract */
  size_t room = sizeof(address->sun_path) - 1;
  int length;

  memset(address, 0, sizeof(*address));
  address->sun_family = AF_UNIX;
  /* Without /proc the inode is told as 0; the asker tries that too. */
  (void)stat("/proc/self/ns/pid", &space);
  length = snprintf(name, room, "culet-agent/%ld/%llu", (long)getpid(), (unsigned long long)space.st_ino);
  if (number > 0) length += snprintf(name + length, room - (size_t)length, "/%d", number);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Returns the socket, or -1 with errno set. */
static int
open_socket(void)
{
  int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int number = 0, error;
  struct sockaddr_un address;

  if (socket_fd < 0) return -1;
  while (number < NAMES && bind(socket_fd, (struct sockaddr *)&address, name_socket(&address, number)) != 0) {
    if (errno != EADDRINUSE) break;
    number++;
  }
  if (number < NAMES && listen(socket_fd, BACKLOG) == 0) return socket_fd;
  error = errno;
  close(socket_fd);
  errno = error;
  return -1;
}

/* ---- talking ---- */

static int
wait_for(int socket_fd, short events, int ms)
{
  struct pollfd wanted = {socket_fd, events, 0};
  int found;

  do found = poll(&wanted, 1, ms);
  while (found < 0 && errno == EINTR);
  return found > 0;
}

static void
send_all(int socket_fd, const char *bytes, size_t length)
{
  while (length > 0) {
    ssize_t sent = send(socket_fd, bytes, length, MSG_NOSIGNAL);
    if (sent > 0) {
      bytes += sent;
      length -= (size_t)sent;
    } else if (errno != EINTR && (errno != EAGAIN || !wait_for(socket_fd, POLLOUT, TALK_MS))) {
      return; /* who asked is gone, or takes nothing */
    }
  }
}

static void
send_error(int socket_fd, const char *sentence)
{
  char line[SENTENCE_BYTES + 16];
  int length = snprintf(line, sizeof(line), "error %s\n", sentence);

  send_all(socket_fd, line, (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1);
}

/* Reads one line, without its end. Returns whether there was one. */
static int
receive_line(int socket_fd, char *line)
{
  size_t length = 0;

  while (length < LINE_BYTES - 1 && wait_for(socket_fd, POLLIN, TALK_MS)) {
    ssize_t got = recv(socket_fd, line + length, LINE_BYTES - 1 - length, 0);
    char *end;
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return 0;
    if (got < 0) continue;
    end = memchr(line + length, '\n', (size_t)got);
    length += (size_t)got;
    if (end != NULL) {
      *end = '\0';
      return 1;
    }
  }
  return 0;
}

/* ---- one question ---- */

/* Waits until the question is answered or the time is over. With the lock. */
static void
wait_in_state(enum state state, long ms)
{
  struct timespec until = after_ms(ms);

  while (agent.state == state && pthread_cond_timedwait(&agent.answered, &agent.lock, &until) == 0) continue;
}

static double
limit_seconds(const struct culet_question *question)
{
  return question->about_strings ? question->strings.limit_seconds : question->objects.limit_seconds;
}

/*
 * Leaves the question to the main thread and waits. With the lock. Returns NULL with the answer in agent.text, or a
 * sentence. The signal is raised in this thread: whoever else is in a system call is not disturbed by it.
 */
static const char *
ask_main_thread(long wait_ms)
{
  if (agent.ended) return "it is just ending";
  if (agent.state == LEFT) return "it is still counting for an earlier question that was given up; ask again in a while";
  agent.sentence[0] = '\0';
  agent.state = ASKED;
  pthread_kill(pthread_self(), agent.signal); /* with the lock: never after culet_listener_end has had it */
  wait_in_state(ASKED, wait_ms);
  if (agent.state == ASKED) {
    agent.state = IDLE;
    return "its main thread did not come to run Ruby code in time, it is busy or blocked in C code; ask again, or let it take longer with --wait";
  }
  wait_in_state(WORKED_ON, (long)(limit_seconds(&agent.question) * 1000) + wait_ms + TALK_MS);
  if (agent.state == WORKED_ON) {
    agent.state = LEFT;
    return "it began to count its objects and did not come to an end";
  }
  agent.state = IDLE;
  return agent.sentence[0] != '\0' ? agent.sentence : NULL;
}

static void
answer_question(int socket_fd, const struct culet_question *question, long wait_ms)
{
  struct culet_text text;
  char sentence[SENTENCE_BYTES + 1] = "", line[64];
  const char *error;

  pthread_mutex_lock(&agent.lock);
  agent.question = *question;
  error = ask_main_thread(wait_ms);
  if (error != NULL) snprintf(sentence, sizeof(sentence), "%s", error);
  text = agent.text;
  agent.text = (struct culet_text){NULL, 0, 0, 0};
  pthread_mutex_unlock(&agent.lock);

  if (error != NULL) {
    send_error(socket_fd, sentence);
  } else {
    send_all(socket_fd, line, (size_t)snprintf(line, sizeof(line), "ok %zu\n", text.length));
    send_all(socket_fd, text.bytes, text.length);
  }
  culet_text_free(&text);
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

/* Understands a line. Returns whether it is a question. */
static int
parse_question(const char *line, struct culet_question *question, long *wait_ms)
{
  unsigned long long from;
  long limit_ms;

  memset(question, 0, sizeof(*question));
  question->about_strings = sscanf(line, "culet-agent 1 strings from=%llu collect=%d content=%d limit_ms=%ld wait_ms=%ld", &from,
                                   &question->strings.collect, &question->strings.content, &limit_ms, wait_ms) == 5;
  if (!question->about_strings && sscanf(line, "culet-agent 1 data=%d limit_ms=%ld wait_ms=%ld", &question->objects.data, &limit_ms, wait_ms) != 3) return 0;
  if (limit_ms < 0 || limit_ms > LONGEST_MS || *wait_ms < 0 || *wait_ms > LONGEST_MS) return 0;
  if (question->about_strings) question->strings.from = from;
  question->objects.limit_seconds = question->strings.limit_seconds = (double)limit_ms / 1000;
  return 1;
}

static void
converse(int socket_fd)
{
  struct ucred peer;
  struct culet_question question;
  socklen_t size = sizeof(peer);
  char line[LINE_BYTES];
  long wait_ms;

  if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
  if (peer.uid != 0 && peer.uid != geteuid()) {
    send_error(socket_fd, "it answers its own user and root alone");
    return;
  }
  if (!receive_line(socket_fd, line)) return;
  if (!parse_question(line, &question, &wait_ms)) {
    send_error(socket_fd, "its agent is of another version of culet; ask with that version");
    return;
  }
  admit(peer.pid);
  answer_question(socket_fd, &question, wait_ms);
}

/* ---- the thread ---- */

/* Accepts under the lock, which fork takes too: no child is born with a connection that it does not know of. */
static int
accept_one(void)
{
  pthread_mutex_lock(&agent.lock);
  int socket_fd = accept4(agent.listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  agent.connection = socket_fd;
  pthread_mutex_unlock(&agent.lock);
  return socket_fd;
}

static void
close_connection(void)
{
  pthread_mutex_lock(&agent.lock);
  close(agent.connection);
  agent.connection = -1;
  pthread_mutex_unlock(&agent.lock);
}

static void *
listen_for_ever(void *unused)
{
  (void)unused;
  prctl(PR_SET_NAME, "culet-agent", 0, 0, 0);
  for (;;) {
    if (!wait_for(agent.listening, POLLIN, -1)) continue;
    int socket_fd = accept_one();
    if (socket_fd >= 0) {
      converse(socket_fd);
      close_connection();
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      (void)poll(NULL, 0, REST_MS); /* no descriptors or memory left: who waits is served once there are */
    }
  }
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
listen_now(void)
{
  pthread_condattr_t attributes;

  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&agent.answered, &attributes);
  pthread_condattr_destroy(&attributes);
  if ((agent.listening = open_socket()) < 0) return agent.error = errno;
  if ((agent.error = start_thread()) != 0) {
    close(agent.listening);
    agent.listening = -1;
  }
  return agent.error;
}

/* ---- fork ---- */

static void
before_fork(void)
{
  pthread_mutex_lock(&agent.lock);
}

static void
in_parent(void)
{
  pthread_mutex_unlock(&agent.lock);
}

/* A child has none of its parent's threads, and a number of its own. */
static void
in_child(void)
{
  pthread_mutex_init(&agent.lock, NULL);
  if (agent.listening >= 0) close(agent.listening);
  if (agent.connection >= 0) close(agent.connection);
  agent.listening = agent.connection = -1;
  culet_text_free(&agent.text);
  agent.state = IDLE;
  if (!agent.ended) listen_now();
}

/* ---- for the main thread ---- */

int
culet_listener_start(int signal)
{
  if (agent.started) return agent.error;
  agent.started = 1;
  agent.signal = signal;
  if ((agent.error = pthread_atfork(before_fork, in_parent, in_child)) != 0) return agent.error;
  return listen_now();
}

int
culet_listener_error(void)
{
  return agent.error;
}

int
culet_listener_take(struct culet_question *question)
{
  int asked;

  pthread_mutex_lock(&agent.lock);
  asked = agent.state == ASKED;
  if (asked) {
    agent.state = WORKED_ON;
    *question = agent.question;
    pthread_cond_signal(&agent.answered);
  }
  pthread_mutex_unlock(&agent.lock);
  return asked;
}

void
culet_listener_answer(struct culet_text *text, const char *error)
{
  pthread_mutex_lock(&agent.lock);
  if (agent.state == WORKED_ON) {
    agent.text = *text;
    snprintf(agent.sentence, sizeof(agent.sentence), "%s", error != NULL ? error : "");
    agent.state = ANSWERED;
    pthread_cond_signal(&agent.answered);
  } else {
    culet_text_free(text);
    agent.state = IDLE;
  }
  pthread_mutex_unlock(&agent.lock);
}

void
culet_listener_end(void)
{
  pthread_mutex_lock(&agent.lock);
  agent.ended = 1;
  pthread_mutex_unlock(&agent.lock);
}
