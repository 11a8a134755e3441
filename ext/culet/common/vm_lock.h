/* common/vm_lock.h - Ractors, and the lock of Ruby's VM, which stops the others. */
#pragma once

#include <ruby.h>
#include <stdbool.h>

/* In the main Ractor, before culet_in_main_ractor. */
void culet_main_ractor_prepare(void);

/* Whether the calling thread is of the main Ractor: a TracePoint belongs to the Ractor that enabled it. */
bool culet_in_main_ractor(void);

/* Whether several Ractors run. May raise. */
int culet_vm_several_ractors(void);

/* Whether this Ruby has the lock for others to take. */
int culet_vm_lock_exists(void);

/* Calls a function with the lock: other Ractors wait at their next safe point, from Ruby 3.4 on before the function is
 * called. Without the lock's functions it is just called. The function must not raise. */
void culet_vm_locked(void (*function)(void *data), void *data);
