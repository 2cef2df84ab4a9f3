/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs: the plan of one op or of one fed value. Pure data: nothing here allocates buffers or submits. */
#ifndef COMPILED_PROGRAM_H
#define COMPILED_PROGRAM_H

#include "instance.h"

/* The inputs of planning that do not depend on a program. */
typedef struct planning {
    const process_map *map;
    const machine *machine;
    plan_options options;
    int rank;
    faults *faults;
} planning;

/* Planning with the context's options; map NULL where no value has a layout. */
planning planning_in(const trama_context *context, const process_map *map);

/* The source of a partition for one rank: this one, or another whose plan is verified. Borrows everything. */
plan_source planning_source(const planning *p, const compiled_plan *of, const layouts *l, int rank);

const plan_dist_value *value_ref_dist_value(value_ref at);

/* A program of one op, or of one fed value, with its own layouts. */
typedef struct compiled_program {
    compiled_plan of;
    trama_program *program;
    layouts l;
    int result; /* first value id of the results; the fed value */
} compiled_program;

/* One op on operands that have buffers. E_LAYOUT where they are on different meshes. compile_source: an op without
 * operands, its result in the given layout. */
trama_status compile_op(const planning *p, const trama_node *node, const value_ref *operands, const layouts *l,
                        const trama_mesh *single, compiled_program **made);
trama_status compile_source(const planning *p, const char *name, const trama_op *op, const trama_attributes *attributes,
                            const trama_mesh *mesh, const trama_layout *layout, compiled_program **made);

/* A value of this layout, which the host feeds. */
compiled_program *compile_feed(const planning *p, const trama_value *value, trama_shape shape, const trama_mesh *mesh,
                               const trama_layout *layout);

/* A value resharded into new buffers: for a read to the readers' mesh, for example. */
compiled_program *compile_copy(const planning *p, const trama_value *value, value_ref from, const trama_mesh *mesh,
                               const trama_layout *layout);

/* A tensor in the host's boxes; an input as a view of these boxes, NULL where they do not have its layout; and a copy
 * of `from` into the buffers of `to`. */
compiled_program *compile_user_boxes(const planning *p, const char *name, trama_dtype dtype, trama_shape shape,
                                     const box_index *user_boxes);
compiled_program *compile_view(const planning *p, const trama_value *value, value_ref user_boxes,
                               const trama_mesh *mesh, const trama_layout *layout);
compiled_program *compile_move(const planning *p, const char *name, value_ref from, value_ref to);

/* The op without operands that makes the first content of state, and its attributes. */
const trama_op *state_source(const trama_value *v, trama_attributes *attributes);

void compiled_program_destroy(compiled_program **s);

#endif
