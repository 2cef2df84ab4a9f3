/* SPDX-License-Identifier: Apache-2.0 */
/* Between whole tensors and what ranks hold of them. Boxes and terms are computed here once more, from the definition
 * of a layout alone, and distributed values are compared with them. */
#ifndef DIST_VALUES_H
#define DIST_VALUES_H

#include "interpreter.h"
#include "partition.h"

/* Ends a partition; *h, which it has made, is then the one in the plan, whose arrays the end moves. */
plan *partition_end_with(partition **q, const plan_dist_value **h);

/* The box of a process by the definition: the axes of a dim cut it in their order, each into balanced pieces. */
box naive_box(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, int position);

/* Terms of a partial value, and that of a process: row-major along the partial axes. */
int naive_terms(const trama_mesh *mesh, const trama_layout *layout);
int naive_term(const trama_mesh *mesh, const trama_layout *layout, int position);

/* The value of [naive_terms] whole tensors. */
dense combine_terms(const trama_mesh *mesh, const trama_layout *layout, const dense *terms);

/* Random terms, whose sum depends on the order in its last bits. */
dense *random_terms(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, uint64_t seed);
/* Terms of a given value: of P(sum) the first is the value and the others 0, of other kinds all are the value. */
dense *terms_of_value(const trama_mesh *mesh, const trama_layout *layout, const dense *value);
void free_terms(const trama_mesh *mesh, const trama_layout *layout, dense *terms);

/* Writes the terms into the first distributed value of a value in each rank's memory, marking them as written. */
void scatter(const world *w, memory *const *ranks, int value, const dense *terms);

/* The value out of one distributed value a rank. Checks that every process that should hold a box of a term finds it on its
 * place, that nothing else is held, and that replicas are equal to the bit. Returns NULL, or what is wrong (the caller
 * frees). */
char *gather(const world *w, memory *const *ranks, const plan_dist_value *const *dist_values, trama_shape shape,
             dense *result);

#endif
