/* SPDX-License-Identifier: Apache-2.0 */
/* State as a list, for checkpoints by hand; trama_save.h makes files of it. A run leaves to the next one:
 *
 * - the values that trama_state_number lists: parameters, the state of their optimizers ("w.m" and "w.v" of adam, "w.b"
 *   of sgd with momentum, the number of the step), the loss scale and its count, the user's own state, and the buffers
 *   of merged gradients;
 * - the position of each target that accumulates gradients in its cycle: trama_merge_position;
 * - the fed inputs. The program feeds them again.
 *
 * To save:
 *
 *     for (int i = 0; i < trama_state_count(run); i++) {
 *         const trama_value *s = trama_state_number(run, i);
 *         size_t bytes = (size_t)trama_shape_count(trama_value_shape(s)) * trama_dtype_size(trama_value_dtype(s));
 *         trama_read(run, s, data, bytes);
 *         save(trama_value_name(s), data, bytes);
 *     }
 *     trama_merge_position(run, train, &position);
 *
 * To go on, in a program that was recorded by the same calls:
 *
 *     trama_merge_resume(run, train, &position);
 *     while (load(name, data, &bytes))
 *         trama_write(run, trama_state_find(run, name), data, bytes);
 *
 * trama_read and trama_write move global values, so the program may go on with another mesh or another number of ranks.
 * With trama_read_local and trama_write_local each rank saves its own boxes and no data moves; the program then goes on
 * with the same mesh and the same ranks.
 *
 * On the same mesh the run that goes on has the bits of a run that was never stopped, except in one case. Within a
 * cycle the buffers of merged gradients hold one term on each process; trama_read adds these terms up, so the last bits
 * may differ. Save between cycles (position.at is 0), when these buffers are not used, or save box by box. */
#ifndef TRAMA_STATE_H
#define TRAMA_STATE_H

#include "trama_executable.h"

TRAMA_API_BEGIN

/* The number of values that live from run to run; value i of them, in the order of recording; the one of that name. 0
 * or NULL where there is none. The values belong to the executable and live as long as it; every call that takes a
 * value of the executable's program takes them. All ranks get the same list. Buffers of merged gradients come last,
 * once k was above 1 (trama_merge_set). In eager mode the list has the state recorded so far. Not collective. */
int trama_state_count(const trama_executable *executable);
const trama_value *trama_state_number(const trama_executable *executable, int i);
const trama_value *trama_state_find(const trama_executable *executable, const char *name);

/* The reverse of trama_read_local: replaces this rank's box i of a parameter or state by data [extent of the box]
 * row-major, bytes its size. Where several processes hold the same box, each writes the same data. No data moves; not
 * collective. E_ARGUMENT for a value that is neither parameter nor state, E_SHAPE for another size. */
#define trama_write_local(executable, state, i, data, bytes)                                                           \
    trama_write_local_at(TRAMA_HERE, executable, state, i, data, bytes)
trama_status trama_write_local_at(trama_where where, trama_executable *executable, const trama_value *state, int i,
                                  const void *data, size_t bytes);

/* The position of a target that accumulates gradients in its cycle. */
typedef struct trama_merge_cycle {
    int64_t k, at;     /* micro-steps of a cycle; done micro-steps of this cycle, 0 to k - 1 */
    double first, sum; /* samples of the first micro-step, and of all done ones; ignored where at is 0 */
} trama_merge_cycle;

/* Gives the position of the target in its cycle. Not collective. E_ARGUMENT for a target that does not accumulate
 * gradients. */
#define trama_merge_position(executable, target, cycle) trama_merge_position_at(TRAMA_HERE, executable, target, cycle)
trama_status trama_merge_position_at(trama_where where, trama_executable *executable, const trama_target *target,
                                     trama_merge_cycle *cycle);

/* Sets the position of the target in its cycle, and makes the buffers of merged gradients where k is above 1: call it
 * before these are written. Collective; all ranks give the same cycle. E_ARGUMENT where cycle is impossible, such as at
 * >= k. */
#define trama_merge_resume(executable, target, cycle) trama_merge_resume_at(TRAMA_HERE, executable, target, cycle)
trama_status trama_merge_resume_at(trama_where where, trama_executable *executable, const trama_target *target,
                                   const trama_merge_cycle *cycle);

TRAMA_API_END
#endif
