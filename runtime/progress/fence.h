/* SPDX-License-Identifier: Apache-2.0 */
/* A fence counts what is under way: tasks, messages, acquires. It waits without spinning and says what is missing. It
 * does not know what the things are. */
#ifndef FENCE_H
#define FENCE_H

#include "context.h"

typedef struct fence fence;

/* A fence with nothing under way, from a pool. One thread adds, waits and frees; any thread completes. Fences are
 * independent of each other. */
fence *fence_new(trama_context *c);

/* n more will complete. Before the things are submitted, inside a context_wake bracket. */
void fence_add(fence *f, int n);

/* One has completed. Fits starpu_task.callback_func with callback_arg = the fence. From any thread, never blocks on
 * StarPU. After the last completion the fence may be gone: do not touch it. */
void fence_signal(void *f);

/* Nothing is under way. All that completed happened before this returns true. */
bool fence_done(const fence *f);

/* Waits until nothing is under way; wakes the workers itself. `what` names the wait ("trama_read of loss"). Every
 * config.watchdog seconds without any completion it has that reported (watchdog.c), and goes on waiting.
 * OK always; E_ORDER if called from a worker (a codelet or callback), which could never return. */
trama_status fence_wait(trama_context *c, fence *f, const char *what);

/* Gives it back, NULL is allowed. Things may still be under way: it is then recycled by the last completion. */
void fence_free(fence *f);

/* Waits for everything that is under way in the context, as fence_wait does. */
trama_status fence_wait_all(trama_context *c, const char *what);

#endif
