/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that end on a computed value, without a wait in each step: the host sees the value of `lag` steps ago, while
 * later steps are in flight.
 *
 *     trama_watch *watch;
 *     double r;
 *     bool known;
 *     trama_watch_create(executable, 2, &watch);
 *     do {
 *         trama_run(executable, target);
 *         trama_watch_next(watch, residual, &r, sizeof r, &known);
 *     } while (!known || r > 1e-6);
 *     trama_watch_destroy(&watch);
 *
 * Call i gives exactly the value that call i - lag started to read: the same number on every rank and in every run of
 * the program. So all ranks leave the loop at the same step, `lag` steps after the step whose value ended it. Where the
 * state must not change in these steps, the target can stop changing it (examples/cg.c). */
#ifndef TRAMA_WATCH_H
#define TRAMA_WATCH_H

#include "trama_executable.h"

TRAMA_API_BEGIN

/* A queue of readings of a value, one for each step. */
typedef struct trama_watch trama_watch;

enum { TRAMA_WATCH_MOST = 256 /* largest lag */ };

/* An empty queue of readings. lag is 0 to TRAMA_WATCH_MOST, else E_ARGUMENT. A lag of 0 waits for each step; 1 or 2
 * hide the reading; with trama_config.max_in_flight the host never waits for it. Each reading in the queue keeps
 * buffers of the value's size. One executable may have several watches. Not collective. */
#define trama_watch_create(executable, lag, watch) trama_watch_create_at(TRAMA_HERE, executable, lag, watch)
trama_status trama_watch_create_at(trama_where where, trama_executable *executable, int lag, trama_watch **watch);

/* Starts to read a value as it is at this place of the program. It may be any value that trama_read takes, and another
 * one in each call: in eager mode each step makes its own. Collective.
 *
 * From call number lag + 1 on *known is true, and data receives the whole value whose reading was started `lag` calls
 * ago; bytes is the size that it had then. The call waits for that reading only. In earlier calls *known is false, data
 * is not written, and bytes is the size of the value now. data NULL: this rank takes part and receives nothing.
 *
 * Errors of trama_read, and E_SHAPE for another size: the call then has started and given nothing. E_ORDER after the
 * executable was destroyed. */
#define trama_watch_next(watch, value, data, bytes, known)                                                             \
    trama_watch_next_at(TRAMA_HERE, watch, value, data, bytes, known)
trama_status trama_watch_next_at(trama_where where, trama_watch *watch, const trama_value *value, void *data,
                                 size_t bytes, bool *known);

/* Gives the oldest value in the queue, so that a program gets the last `lag` values, too; *known is false where the
 * queue is empty. Once the queue is empty, trama_watch_next begins as with a new watch. Not collective, but all ranks
 * take equally many values. */
#define trama_watch_rest(watch, data, bytes, known) trama_watch_rest_at(TRAMA_HERE, watch, data, bytes, known)
trama_status trama_watch_rest_at(trama_where where, trama_watch *watch, void *data, size_t bytes, bool *known);

/* Waits for the readings in the queue, drops them, and nulls *watch; NULL is allowed. It may be called before or after
 * trama_executable_destroy, which drops these readings as well. Not collective. */
trama_status trama_watch_destroy(trama_watch **watch);

TRAMA_API_END
#endif
