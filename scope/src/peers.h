/* peers.h - allocators that are recognised, but not walked: jemalloc, tcmalloc, mimalloc, musl's. Their heaps are
 * told by pages. */
#ifndef CULET_PEERS_H
#define CULET_PEERS_H

/* The name of the one that serves malloc, once the walker has recognised it; NULL: none of them. */
const char *culet_peers_serve(void);

#endif
