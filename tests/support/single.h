/* SPDX-License-Identifier: Apache-2.0 */
/* A program on one device: each op of a target once, on whole tensors, with the reference ops. Values are values: what
 * reads a state reads what it was before the run; states take what updated them when the run is over. */
#ifndef SINGLE_H
#define SINGLE_H

#include "dense.h"

typedef struct single single;

single *single_new(const trama_program *program); /* borrowed */
void single_destroy(single **s);
void single_feed(single *s, const trama_value *input, const dense *data); /* copies */
void single_run(single *s, const trama_target *target);

/* A value of the last run, or a state's content. */
const dense *single_value(const single *s, const trama_value *value);

/* Overwrites a state. */
void single_write(single *s, const trama_value *state, const dense *data);

#endif
