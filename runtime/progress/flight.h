/* SPDX-License-Identifier: Apache-2.0 */
/* A flight counts what is under way: tasks, messages, acquires. It waits without spinning and says what is missing. It
 * does not know what the things are. */
#ifndef FLIGHT_H
#define FLIGHT_H

#include "context.h"

typedef struct flight flight;

/* A flight with nothing under way, from a pool. One thread adds, waits and frees; any thread lands. Flights are
 * independent of each other. */
flight *flight_new(trama_context *c);

/* n more will land. Before the things are submitted, inside a context_wake bracket. */
void flight_add(flight *f, int n);

/* One has landed. Fits starpu_task.callback_func with callback_arg = the flight. From any thread, never blocks on
 * StarPU. After the last landing the flight may be gone: do not touch it. */
void flight_land(void *f);

/* Nothing is under way. All that landed happened before this returns true. */
bool flight_done(const flight *f);

/* Waits until nothing is under way; wakes the workers itself. `what` names the wait ("trama_read of loss"). Every
 * config.watchdog seconds without any landing it has that reported (watchdog.c), and goes on waiting.
 * OK always; E_ORDER if called from a worker (a codelet or callback), which could never return. */
trama_status flight_wait(trama_context *c, flight *f, const char *what);

/* Gives it back, NULL is allowed. Things may still be under way: it is then recycled by the last landing. */
void flight_free(flight *f);

/* Waits for everything that is under way in the context, as flight_wait does. */
trama_status flight_wait_all(trama_context *c, const char *what);

#endif
