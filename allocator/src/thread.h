/* thread.h - threads of the library: they block all signals, and nobody waits for them. */
#pragma once

#include "types.h"

/* No lock held, and not during a fork or inside the dynamic loader. False: not possible. */
bool culet_thread_start(void *(*function)(void *));
