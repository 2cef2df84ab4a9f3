/* SPDX-License-Identifier: Apache-2.0 */
/* State as a list, for checkpoints by hand. All that a run leaves for the next one is:
 *
 * - what trama_state_number lists: parameters, the state that optimizers keep beside them ("w.m", "w.v" of adam, "w.b" of
 *   sgd with momentum), their number of the step, the loss scale and its count, state of one's own, and the buffers of
 *   merged gradients;
 * - where each target that merges gradients is in its cycle: trama_merge_position;
 * - what was fed, which is fed again.
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
 * To go on, in a program that was recorded alike:
 *
 *     trama_merge_resume(run, train, &position);
 *     while (load(name, data, &bytes))
 *         trama_write(run, trama_state_find(run, name), data, bytes);
 *
 * trama_read and trama_write move global values, so that another mesh or another number of ranks may go on. With
 * trama_read_local and trama_write_local each rank saves its own boxes and nothing moves; the mesh and the ranks are then
 * the same when it goes on. On the mesh that was saved from, either run then has the bits of one that was never
 * stopped, but for one case: within a cycle the buffers of merged gradients hold a term on each process, which trama_read
 * adds up, so that the last bits may differ. Between cycles (position.at is 0) these buffers are not used. Save there, or
 * box by box. */
#ifndef TRAMA_STATE_H
#define TRAMA_STATE_H

#include "trama_executable.h"

TRAMA_API_BEGIN

/* How many values live from run to run, in the order in which they were recorded; number i of them; the one of that
 * name. The values are the executable's own, as long as it lives, and every call that takes a value of its program takes
 * them. The same on all ranks for the same program; buffers of merged gradients come last, once k was above 1
 * (trama_merge_set). Not collective. 0, NULL where there is none. In eager mode the state that was recorded so far. */
int trama_state_count(const trama_executable *executable);
const trama_value *trama_state_number(const trama_executable *executable, int i);
const trama_value *trama_state_find(const trama_executable *executable, const char *name);

/* The reverse of trama_read_local: replaces box i of this rank of a parameter or state, data [extent of the box] row-major,
 * bytes its size. A box that several processes hold is written by each alike. Nothing moves; not collective. E_ARGUMENT
 * for what is no state, E_SHAPE for other sizes. */
#define trama_write_local(executable, state, i, data, bytes)                                                           \
    trama_write_local_at(TRAMA_HERE, executable, state, i, data, bytes)
trama_status trama_write_local_at(trama_where where, trama_executable *executable, const trama_value *state, int i,
                                  const void *data, size_t bytes);

/* Where a target that merges gradients is. */
typedef struct trama_merge_cycle {
    int64_t k, at;     /* micro-steps of a cycle; those of this one that are done, 0 to k - 1 */
    double first, sum; /* samples of the first of these, and of all of them; no matter where at is 0 */
} trama_merge_cycle;

/* Tells it. Not collective. E_ARGUMENT for a target that does not merge. */
#define trama_merge_position(executable, target, cycle) trama_merge_position_at(TRAMA_HERE, executable, target, cycle)
trama_status trama_merge_position_at(trama_where where, trama_executable *executable, const trama_target *target,
                                     trama_merge_cycle *cycle);

/* Goes on from there, before the buffers of merged gradients are written: those are made where k is above 1. Collective;
 * all ranks give the same. E_ARGUMENT for numbers that no cycle has. */
#define trama_merge_resume(executable, target, cycle) trama_merge_resume_at(TRAMA_HERE, executable, target, cycle)
trama_status trama_merge_resume_at(trama_where where, trama_executable *executable, const trama_target *target,
                                   const trama_merge_cycle *cycle);

TRAMA_API_END
#endif
