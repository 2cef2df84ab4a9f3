/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that trama calibrate measures, on pieces of n elements, rows or lines of each rank. */
#ifndef EXAMPLES_CALIBRATE_PROGRAMS_H
#define EXAMPLES_CALIBRATE_PROGRAMS_H

#include "calibrate_time.h"

enum { FLAT = 32, HEADS = 16, FEATURES = 64, TASKS = 64 }; /* TASKS: copies of small additions */
enum { ADD_BYTES = 12, ADD_MOVES = 16 };                   /* bytes of an element of an addition; results move twice */
enum { OWN_FLOPS = 7, UPDATE_MOVES = 28 };                 /* of an element of record_own; of one of record_updates */

/* Square products, and flat ones with a square matrix. */
record_copy record_square_f32, record_flat_f32, record_square_f64, record_flat_f64, record_by_vector;
record_copy record_add, record_exponential, record_sum, record_norm, record_transposed, record_loss, record_attention;
record_copy record_attention_gradient;      /* behind the attention that it is of */
record_copy record_negative, record_joined; /* of 1 operand and of 4 */
record_copy record_chain;                   /* 16 small tasks, each of which needs the one before */

/* TURNS flips and sums, on n elements of each worker: of its own tiles, or of those of others. */
enum { TURNS = 16 };
trama_value *record_turns(const calibration *c, trama_program *p, int64_t n, bool others);

/* Ops that the command defines: define_ops comes before these, destroy_ops after their executables are gone. */
void define_ops(void);
void destroy_ops(void);
record_copy
    record_updates; /* of updates_of(c, n) parameters for each of c->least workers, by Adam, with given gradients */
int updates_of(const calibration *c, int64_t n);
enum { OWN_CHAIN = 8, OWN_LINE = 1040 }; /* elements of a row: neighbours do not share lines of the cache */
record_copy record_own_f64;              /* a loop over rows, as programs have it */
record_copy record_own_chain_f32, record_own_chain_f64;

/* A copy of v by a task that also passes over x. record_passes: a chain of PASSES of them, each with n elements that no
 * other one reads. */
trama_value *apply_pass(trama_value *v, trama_value *x);
enum { PASSES = 16 };
record_copy record_passes;

/* [a, b, n] f32 to [a, 1, n]: the sum over b, of which each process that has a single row makes a term. */
trama_value *apply_term(trama_value *x);
record_copy record_terms;

#endif
