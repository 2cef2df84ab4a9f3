/* SPDX-License-Identifier: Apache-2.0 */
/* The updates of one trama_minimize: state and scalars that they share. */
#ifndef UPDATES_H
#define UPDATES_H

#include "optimizer.h"

/* An assignment of a rule: a state, and its new value. */
typedef struct assignment {
    trama_value *state, *value;
} assignment;

/* A scalar made once: from a value by a cast, or from an optimizer by its schedule. */
typedef struct converted {
    const void *from;
    trama_value *to;
} converted;

typedef struct trama_updates {
    trama_where where;
    const trama_optimizer *optimizer;
    trama_program *program;
    int first_value;    /* first value that this trama_minimize made */
    trama_value *scale; /* state, of the loss; NULL: none */
    trama_value *effect;
    trama_value **step;            /* effect->step_parts; the number is made on the first request */
    trama_value *factor;           /* all gradients are multiplied by it; NULL: 1 */
    double most;                   /* clamp of elements after that */
    trama_value *gradient, *held;  /* for the running rule: raw; clipped, on request */
    ARRAY(assignment) assignments; /* of the running rule */
    ARRAY(converted) converted;    /* scalars */
} trama_updates;

/* State of the whole optimizer. In a recorded program a number makes the name unique. */
trama_value *updates_state(const trama_updates *all, const char *what, trama_dtype dtype, double initial);

/* A scalar constant. */
trama_value *updates_number(const trama_updates *all, trama_dtype dtype, double value);

/* Casts a scalar once for all parameters of one type. */
trama_value *updates_cast(trama_updates *all, trama_value *value, trama_dtype dtype);

/* Assigns value to state, if the step is taken; returns the updated state. */
trama_value *updates_assign(const trama_updates *all, trama_value *state, trama_value *value);

/* Adds an updated state to what the step does; NULL: nothing. */
void updates_effect(const trama_updates *all, trama_value *updated);

#endif
