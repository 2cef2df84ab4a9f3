/* SPDX-License-Identifier: Apache-2.0 */
/* A fence counts tasks, messages and acquires in flight, without knowing them. A wait for it sleeps, and reports when
 * nothing completes. */
#ifndef FENCE_H
#define FENCE_H

#include "context.h"

typedef struct fence fence;

/* A fence with nothing in flight, from a pool. One thread adds, waits and frees; any thread completes. Fences are
 * independent of each other. */
fence *fence_new(trama_context *c);

/* Adds n to the count. Call it before the n are submitted, inside a context_wake bracket. */
void fence_add(fence *f, int n);

/* Notes that one has completed. A function for starpu_task.callback_func, with callback_arg the fence. Any thread may
 * call it; it never blocks on StarPU. After the last completion the fence may be recycled: do not use it. */
void fence_signal(void *f);

/* Whether nothing is in flight. Where it returns true, the caller sees the effects of all completed work. */
bool fence_done(const fence *f);

/* Waits until nothing is in flight, and wakes the workers. `what` names the wait ("trama_read of loss"). Every
 * config.watchdog seconds without any completion, watchdog_report is called and the wait goes on. TRAMA_OK; E_ORDER in
 * a worker (a codelet or callback), where the wait could never end. */
trama_status fence_wait(trama_context *c, fence *f, const char *what);

/* Waits until at most n are in flight, while others that the caller will submit are counted already. */
void fence_wait_below(trama_context *c, const fence *f, int n, const char *what);

/* Frees the fence; NULL is allowed. While some are in flight, the last completion recycles it. */
void fence_free(fence *f);

/* Waits until nothing is in flight in the whole context, as fence_wait does. */
trama_status fence_wait_all(trama_context *c, const char *what);

#endif
