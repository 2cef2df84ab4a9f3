/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that end on a value of the device, without a stop in each step: the host looks at what the value was `lag` steps
 * ago, while the steps since are under way.
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
 * Call i hands out the value of call i - lag exactly, never "whatever is ready": the same number on every rank and in
 * every run, so that all ranks leave the loop at the same step, `lag` steps after the one that they learn of. A target
 * for which these are too many can hold its state itself (examples/cg.c). */
#ifndef TRAMA_WATCH_H
#define TRAMA_WATCH_H

#include "trama_executable.h"

TRAMA_API_BEGIN

/* Readings of a value, step after step. */
typedef struct trama_watch trama_watch;

enum { TRAMA_WATCH_MOST = 256 /* steps that a watch may lag */ };

/* A queue of readings with nothing in it. lag 0 waits for each step, 1 or 2 hide the reading, and as many steps as a run
 * may be ahead (trama_config.max_in_flight) leave the host nothing to wait for; at most TRAMA_WATCH_MOST, since each keeps
 * buffers of the value's size. One executable may have several. E_ARGUMENT for another lag. Not collective. */
#define trama_watch_create(executable, lag, watch) trama_watch_create_at(TRAMA_HERE, executable, lag, watch)
trama_status trama_watch_create_at(trama_where where, trama_executable *executable, int lag, trama_watch **watch);

/* Starts to read a value as it is at this place of the program, which is any that trama_read takes, and not always the
 * same (in eager mode each step makes its own). From the call number lag + 1 on *known is true, and data gets the whole
 * of what was read `lag` calls ago, bytes its size then; before, data is left alone, and bytes is the size of what is
 * read now. Waits for that one only. data NULL: this rank takes part and receives nothing. Errors as of trama_read, E_SHAPE for other bytes; then nothing was started
 * and nothing is handed out. E_ORDER after the executable was destroyed. Collective. */
#define trama_watch_next(watch, value, data, bytes, known)                                                             \
    trama_watch_next_at(TRAMA_HERE, watch, value, data, bytes, known)
trama_status trama_watch_next_at(trama_where where, trama_watch *watch, const trama_value *value, void *data,
                                 size_t bytes, bool *known);

/* The oldest that is not yet handed out, for those who want the last ones too: *known false where there is none. The
 * next call of trama_watch_next is then as the first one, once none is left. Not collective, if all ranks take as many. */
#define trama_watch_rest(watch, data, bytes, known) trama_watch_rest_at(TRAMA_HERE, watch, data, bytes, known)
trama_status trama_watch_rest_at(trama_where where, trama_watch *watch, void *data, size_t bytes, bool *known);

/* Waits for what it has started, drops it, and nulls *watch; NULL is allowed. Before or after the executable's end, which
 * drops what is under way. Not collective. */
trama_status trama_watch_destroy(trama_watch **watch);

TRAMA_API_END
#endif
