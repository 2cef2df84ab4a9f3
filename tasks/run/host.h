/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between host memory and the shards of this rank: acquire, copy, release. `call` names the user's call for the
 * watchdog. */
#ifndef HOST_H
#define HOST_H

#include "compiled_program.h"

/* The box b of a whole tensor [shape] in host memory, row-major. */
trama_view host_view(const void *data, trama_dtype dtype, trama_shape shape, const box *b);

/* The same box without gaps, row-major at data. */
trama_view host_dense(trama_view of, void *data);

/* Copies into one local box of a distributed value; and the whole tensor into all boxes that this rank has of a
 * value. */
trama_status host_to_piece(instance *in, const plan_local_box *piece, const trama_view *from, const char *call);
trama_status host_to_value(value_ref at, const void *data, trama_shape shape, const char *call);

/* Whether a local box is a zero term of a P(sum), which the first process along the axis holds; and zeros into it. */
bool host_holds_zero(const plan_dist_value *h, const plan_local_box *piece);
trama_status host_zero_to_piece(instance *in, const plan_local_box *piece, const char *call);

/* Copies a region out, row-major without gaps. */
trama_status host_from_region(instance *in, const plan_region *region, void *data);

#endif
