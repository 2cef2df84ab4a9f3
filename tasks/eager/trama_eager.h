/* SPDX-License-Identifier: Apache-2.0 */
/* Eager use: a program whose ops run as soon as they are recorded. The same builders, the same plans. */
#ifndef TRAMA_EAGER_H
#define TRAMA_EAGER_H

#include "trama_executable.h"

TRAMA_API_BEGIN

/* A program and its executable in eager mode: each op that is appended is laid out by forward inference and submitted
 * at once. Collective, as are all builders of this program. Inputs are not used: host arrays come in by trama_constant
 * or trama_tensor. trama_read, trama_read_local, trama_print and trama_write take any of its values. The caller calls
 * trama_executable_destroy first, then trama_program_destroy. */
trama_status trama_eager(trama_context *context, trama_program **program, trama_executable **executable);

/* trama_program_mark answers a mark; trama_program_rewind forgets all values and ops recorded since, except values that
 * trama_keep keeps. A loop that rewinds does not grow. */
int trama_program_mark(trama_program *program);
trama_status trama_program_rewind(trama_program *program, int mark);
trama_value *trama_keep(trama_value *value); /* until the program ends; a kept value survives every rewind */

/* A host array laid out on a mesh: trama_constant, then trama_shard. */
#define trama_tensor(program, dtype, shape, data, mesh, layout)                                                        \
    trama_tensor_at(TRAMA_HERE, program, dtype, shape, data, mesh, layout)
trama_value *trama_tensor_at(trama_where where, trama_program *program, trama_dtype dtype, trama_shape shape,
                             const void *data, const trama_mesh *mesh, const char *layout);

TRAMA_API_END
#endif
