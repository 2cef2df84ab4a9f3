/* SPDX-License-Identifier: Apache-2.0 */
/* Between host memory and the shards of this rank: acquire, copy, release. `call` names the user's call for the watchdog. */
#ifndef HOST_H
#define HOST_H

#include "compiled_program.h"

/* The box b of a whole tensor [shape] in host memory, row-major. */
trama_view host_view(const void *data, trama_dtype dtype, trama_shape shape, const box *b);

/* Into one piece of a distributed value; and into all that this rank has of a value, from the whole tensor. */
trama_status host_to_piece(instance *in, const plan_local_box *piece, const trama_view *from, const char *call);
trama_status host_to_value(value_ref at, const void *data, trama_shape shape, const char *call);

/* Out of a region, packed row-major. */
trama_status host_from_region(instance *in, const plan_region *region, void *data);

#endif
