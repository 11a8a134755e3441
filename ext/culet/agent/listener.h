/* agent/listener.h - the native thread that receives requests. It knows no Ruby: it passes each request to the main
 * thread, which a trapped signal wakes.
 *
 * agent/socket.h describes the address, agent/credentials.h the accepted clients, agent/request.h the protocol.
 *
 * The listener's thread answers requests for a reading itself, and keeps the connection for a minute for the next one.
 *
 * The main thread handles one request at a time, in order of arrival. A client that is slow to send its request or to
 * receive its answer is dropped after some seconds and delays no other client. */
#pragma once

/* Starts to listen, in this process and in every process that it forks. To be called once.
 *
 * signal: a signal that Ruby traps; raised in the listener's thread to wake the main thread
 * Returns 0 or an errno. */
int culet_listener_start(int signal);

/* 0 if this process listens, else the errno that prevented it. */
int culet_listener_error(void);

/* Called before and after a fork whose child gets no agent, by the forking thread. */
void culet_listener_no_child(int begins);

/* Stops passing requests to the main thread, because the process ends. */
void culet_listener_end(void);
