/* SPDX-License-Identifier: Apache-2.0 */
/* Blueprints: programs, and single ops, made into plans. Pure data: nothing here allocates buffers or submits. */
#ifndef BLUEPRINT_H
#define BLUEPRINT_H

#include "instance.h"

/* What planning needs to know of the context and its processes. */
typedef struct planning {
    const process_map *map;
    const machine *machine;
    plan_options options;
    int rank;
    faults *faults;
} planning;

/* By the options of the context; map NULL where nothing has a layout. */
planning planning_in(const trama_context *context, const process_map *map);

/* All that a partition is made from, for one rank: this one, or another whose plan is looked at. Borrows everything. */
plan_source planning_source(const planning *p, const blueprint *of, const layouts *l, int rank);

const plan_holding *located_holding(located at);

/* A program of one op, or of one fed value, with layouts of its own. */
typedef struct snippet {
    blueprint of;
    trama_program *program;
    layouts l;
    int result; /* first value id of the results; the fed value */
} snippet;

/* One op on operands that are somewhere. E_LAYOUT where they are on different meshes. And one without operands, whose result
 * is laid out as told. */
trama_status snippet_of_op(const planning *p, const trama_node *node, const located *operands, const layouts *l,
                           const trama_mesh *single, snippet **made);
trama_status snippet_of_source(const planning *p, const char *name, const trama_op *op,
                               const trama_attributes *attributes, const trama_mesh *mesh, const trama_layout *layout,
                               snippet **made);

/* A value that the host feeds. */
snippet *snippet_of_feed(const planning *p, const trama_value *value, trama_shape shape, const trama_mesh *mesh,
                         const trama_layout *layout);

/* A value resharded into fresh buffers: to the readers' mesh, say. */
snippet *snippet_of_copy(const planning *p, const trama_value *value, located from, const trama_mesh *mesh,
                         const trama_layout *layout);

/* A tensor in the host's boxes; an input that lies in them as its layout wants it, NULL where it does not; and one
 * value's content to where another one is. */
snippet *snippet_of_stated(const planning *p, const char *name, trama_dtype dtype, trama_shape shape,
                           const spots *stated);
snippet *snippet_of_view(const planning *p, const trama_value *value, located stated, const trama_mesh *mesh,
                         const trama_layout *layout);
snippet *snippet_of_move(const planning *p, const char *name, located from, located to);

/* The op without operands that gives state its first content, and its attributes. */
const trama_op *state_source(const trama_value *v, trama_attributes *attributes);

void snippet_destroy(snippet **s);

#endif
