/* thread.h - threads of the library, which block all signals and are not joined. */
#pragma once

#include "types.h"

/* No lock held, and not during a fork or inside the dynamic loader. False: not possible. */
bool culet_thread_start(void *(*function)(void *));
